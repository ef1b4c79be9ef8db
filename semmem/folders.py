"""Where this platform keeps what belongs to a user: their data, and their settings. Nothing is created."""

from __future__ import annotations

from pathlib import Path

from semmem.errors import InvalidInput

__all__ = ["data", "expanded", "settings"]


def data() -> Path:
    """Return the folder of semmem's data: in XDG_DATA_HOME where that is set.

    Raises InvalidInput for a user without a home.
    """
    if (found := _asked("user_data_path")) is None:
        raise InvalidInput(
            "This user has no home folder to keep memories in; set SEMMEM_HOME to a folder, or name the store, such as "
            "embedded:///FOLDER or sqlite:///FILE."
        )
    return found


def settings() -> Path | None:
    """Return the folder of semmem's settings: in XDG_CONFIG_HOME where that is set; None for a user without a home."""
    return _asked("user_config_path")


def expanded(path: str | Path) -> Path:
    """Return ``path`` with a leading ``~`` replaced. Raises InvalidInput where that stands for no user's home."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise InvalidInput(f"The ~ in {str(path)!r} is no user's home folder; write the path out.") from error


def _asked(which: str) -> Path | None:
    """Ask platformdirs, without its warning about the runtime folder, which semmem does not use."""
    import warnings

    import platformdirs

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            found: Path = getattr(platformdirs, which)("semmem", appauthor=False)
        except RuntimeError:  # neither HOME nor a name in /etc/passwd
            return None
    return found if found.is_absolute() else None
