"""Files: the user's folders on this platform, and new files that are complete or not there at all.

A new file is readable by its owner alone and never written through a link.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

from semmem.model.errors import InvalidInput

__all__ = [
    "claimed",
    "data_folder",
    "expanded",
    "file_number",
    "hook_errors",
    "hook_log",
    "in_no_folder",
    "is_part",
    "keep_state",
    "must_be_free",
    "new_file",
    "private_folder",
    "settings_folder",
    "state",
    "state_file",
    "state_folder",
]

_PRIVATE = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_RDWR

_PART = re.compile(r"\.[0-9a-f]{16}\.part")

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)


def must_be_free(path: Path, *, force: bool) -> None:
    """Raise InvalidInput where ``path`` exists, unless ``force``; with ``force`` still where it is not a regular file.

    A link to a device, a pipe or a folder counts as such, for example /dev/stdout.
    """
    try:
        path.lstat()
    except FileNotFoundError:
        return
    try:
        mode = path.stat().st_mode
    except OSError:  # a broken link or a circle of links
        mode = stat.S_IFREG
    if stat.S_ISDIR(mode):
        raise InvalidInput(f"{path} is a folder, not a file.")
    if not stat.S_ISREG(mode):
        raise InvalidInput(f"{path} is a device or a pipe, not a file; export takes - for standard output.")
    if not force:
        raise InvalidInput(f"{path} exists already; choose another name, or overwrite it with --force (force=True).")


def file_number(path: str | Path | None) -> tuple[int, int] | None:
    """Return what tells the file or folder at a path from others that are put there later; None where there is none."""
    if path is not None:
        with suppress(OSError):
            status = os.stat(path)
            return status.st_dev, status.st_ino
    return None


def is_part(name: str) -> bool:
    """Return whether a file has a name that ``new_file`` gives one until it is complete."""
    return _PART.fullmatch(name) is not None


@contextmanager
def new_file(path: Path, *, force: bool = False) -> Iterator[BinaryIO]:
    """Yield a file to write; it gets the name ``path`` at the end, when it is complete and on disk.

    Until then it has an unpredictable name beside ``path``. After an error nothing is left. With ``force`` it replaces
    a file or a link, never the target of a link. Raises InvalidInput where ``path`` exists, at the beginning or
    meanwhile, and OSError where it cannot be written.
    """
    must_be_free(path, force=force)
    part = path.parent / f".{os.urandom(8).hex()}.part"
    handle = os.open(part, _PRIVATE, 0o600)
    try:
        with os.fdopen(handle, "w+b") as out:
            os.fchmod(handle, 0o600)  # whatever the umask
            yield out
            out.flush()
            os.fsync(handle)
            must_be_free(path, force=force)
            if force:
                part.replace(path)
            else:
                _named(part, path)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in _NO_ROOM and error.filename is None:
            error.filename = str(path)  # writing to an open file names none
        raise
    _sync(path.parent)


def private_folder(folder: Path) -> None:
    """Create ``folder`` and the folders above it that are missing, each for its owner alone, whatever the umask.

    Raises OSError.
    """
    if not folder.is_dir():
        private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def in_no_folder(file: Path) -> InvalidInput:
    """Return the error for a SQLite file whose folder does not exist."""
    return InvalidInput(f"There is no folder {file.parent} for the SQLite file; create it first, or correct the path.")


def claimed(path: Path) -> bool:
    """Create ``path`` as an empty file for its owner alone; False where it exists."""
    try:
        os.close(os.open(path, _PRIVATE, 0o600))
    except FileExistsError:
        return False
    return True


def _named(part: Path, path: Path) -> None:
    """Rename ``part`` to ``path`` unless another process has just created that file."""
    try:
        os.link(part, path, follow_symlinks=False)
    except FileExistsError:
        raise InvalidInput(f"{path} was written by another program at the same time; choose another name.") from None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        part.replace(path)  # a file system without hard links: the check a moment ago has to suffice
    else:
        part.unlink()


def _sync(folder: Path) -> None:
    """Sync the folder too, where the file system allows it, so that the file's name is on disk."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def data_folder() -> Path:
    """Return the folder for semmem's data, in XDG_DATA_HOME where that is set.

    Raises InvalidInput for a user without a home folder.
    """
    if (folder := _platform_folder("user_data_path")) is None:
        raise InvalidInput(
            "This user has no home folder for memories; set SEMMEM_HOME to a folder, or name the store, such as "
            "embedded:///FOLDER or sqlite:///FILE."
        )
    return folder


def hook_log() -> Path:
    """Return the log of hooks that run in the background. Raises InvalidInput for a user without a home."""
    return data_folder() / "hook-errors.log"


def hook_errors() -> list[str]:
    """Return the messages of that log, each by its first line, the oldest first; none where there is no log."""
    try:
        lines = _own(hook_log()).decode("utf-8", "replace").splitlines()
        return [line for line in lines if not line.startswith(" ")]
    except OSError:
        return []


def settings_folder() -> Path | None:
    """Return the folder for semmem's settings, in XDG_CONFIG_HOME where that is set; None without a home folder."""
    return _platform_folder("user_config_path")


def state_folder() -> Path:
    """Return the folder for semmem's state between runs, in XDG_STATE_HOME where that is set.

    Raises InvalidInput for a user without a home folder.
    """
    if (folder := _platform_folder("user_state_path")) is None:
        raise InvalidInput("This user has no home folder for notes between runs; set XDG_STATE_HOME to a folder.")
    return folder


def state_file(kind: str, subject: bytes) -> Path:
    """Return the file, without a suffix, that keeps state of one ``kind`` about ``subject``.

    Raises InvalidInput for a user without a home folder.
    """
    return state_folder() / kind / blake2b(subject, digest_size=12).hexdigest()


def state(file: Path) -> dict[str, Any]:
    """Return the JSON object that a file of the state folder holds; an empty one where this user has put none there.

    Whatever else lies there, such as a pipe, a device or a damaged file, counts as no state.
    """
    try:
        values = json.loads(_own(file))
    except (OSError, ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def _own(file: Path) -> bytes:
    """Return what is in a file of this user. Raises OSError for anything else, such as a pipe, a device or a link."""
    handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as opened:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise PermissionError(f"{file} is no file of this user.")
        return opened.read()


def keep_state(file: Path, values: Mapping[str, Any]) -> None:
    """Let a file of the state folder hold a JSON object, whole or not at all. Raises OSError, InvalidInput."""
    private_folder(file.parent)
    with new_file(file, force=True) as out:
        out.write(json.dumps(values).encode())


def expanded(path: str | Path) -> Path:
    """Return ``path`` with a leading ``~`` expanded. Raises InvalidInput where that names no user's home folder."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise InvalidInput(f"The ~ in {str(path)!r} is not the home folder of a user; write the path out.") from error


def _platform_folder(which: str) -> Path | None:
    """Ask platformdirs for a folder, without its warning about the runtime folder, which semmem does not use."""
    import warnings

    import platformdirs

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            folder: Path = getattr(platformdirs, which)("semmem", appauthor=False)
        except RuntimeError:  # neither HOME nor a name in /etc/passwd
            return None
    return folder if folder.is_absolute() else None
