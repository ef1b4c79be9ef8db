"""Where a store lives: one URL read into one target."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from semmem import files
from semmem.model.errors import InvalidInput

__all__ = ["Target", "check_file", "masked", "parse_url"]

_FORMS = "embedded:[FOLDER], postgresql://…, sqlite:FILE or sqlite::memory:"


@dataclass(frozen=True)
class Target:
    """A store's kind and its place.

    ``path`` is absolute: the data folder of ``embedded``, the file of ``sqlite``, None for ``sqlite::memory:`` and for
    ``postgresql``. ``dsn`` is the URL of ``postgresql`` as it was given, for libpq; it may hold a password, so it is
    left out of the repr.
    """

    kind: Literal["embedded", "postgresql", "sqlite"]
    path: Path | None = None
    dsn: str | None = field(default=None, repr=False)


def parse_url(url: str | None, *, home: Path | None) -> Target:
    """Read a store URL.

    None and ``embedded:`` mean ``home``, or the platform's folder where that is None too. A path after ``embedded:``
    or ``sqlite:`` is absolute behind ``///`` and relative to the working folder otherwise; it is taken as written
    (no percent-decoding), a leading ``~`` is the user's home. Raises InvalidInput for anything else; the message never
    repeats the URL, for a password may stand in it.
    """
    text = "" if url is None else url.strip()
    if "\0" in text:
        raise InvalidInput("A store URL cannot hold a NUL character.")
    scheme, colon, rest = text.partition(":")
    scheme = scheme.lower()
    if url is None or (scheme == "embedded" and not rest):
        return Target("embedded", path=(files.data() if home is None else files.expanded(home)).absolute())
    if not text:
        raise InvalidInput(f"The store URL is empty; leave it out for the embedded server, or write one of {_FORMS}.")
    if colon and scheme == "embedded":
        return Target("embedded", path=_path(scheme, rest))
    if colon and scheme == "sqlite":
        return Target("sqlite", path=None if rest == ":memory:" else _path(scheme, rest))
    if scheme in ("postgresql", "postgres") and rest.startswith("//"):
        _check_credentials(rest[2:])
        return Target("postgresql", dsn=text)
    if scheme.startswith(("postgresql", "postgres")):
        raise InvalidInput("A PostgreSQL URL must begin with postgresql:// or postgres:// and nothing before the //.")
    meant = (
        "" if re.search("[:@=]", text) else f" Did you mean {_meant(text)}?"
    )  # a password may stand beside one of these
    raise InvalidInput(f"This is not a store URL that semmem knows; write one of {_FORMS}.{meant}")


def _meant(path: str) -> str:
    """Return the URL of a store at ``path``, by what is there or what its ending says."""
    place = Path(path)
    folder = place.is_dir() or (not place.is_file() and not place.suffix)
    return f"{'embedded' if folder else 'sqlite'}:{path}"


def check_file(target: Target) -> None:
    """Raise InvalidInput for a SQLite file that is not there, for whoever only reads: opening it would make it."""
    path = target.path
    if target.kind != "sqlite" or path is None or path.exists():
        return
    beside = [file.name for file in path.parent.iterdir() if file.is_file()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, beside, 1)
    hint = f"; did you mean {near[0]}?" if near else "; correct the path."
    raise InvalidInput(f"There is no file {path}{hint} The first memory that is remembered there makes it.")


def masked(url: str) -> str:
    """Return a URL, of a store or of anything, with its password masked."""
    url = re.sub(r"(://[^/@:?]*:)[^@]*@", r"\1***@", url)
    return re.sub(r"([?&](?:ssl)?password=)[^&]*", r"\1***", url)


def _check_credentials(rest: str) -> None:
    """Refuse a password that libpq would cut in two, for it would then quote one half as the name of a machine."""
    place = rest.partition("?")[0]
    before, at, after = place.partition("@")
    if (at and ("/" in before or "@" in after)) or re.search(r"%(?![0-9A-Fa-f]{2})", before if at else ""):
        raise InvalidInput(
            "The user or password in the store URL holds a character that has to be percent-encoded: @ is %40, / is "
            "%2F, % is %25."
        )


def _path(scheme: str, rest: str) -> Path:
    if rest.startswith("//"):
        if not rest.startswith("///"):
            raise InvalidInput(
                f"{scheme}:// takes no host: write {scheme}:///absolute/path with three slashes, or {scheme}:relative."
            )
        rest = rest[2:]
    if not rest:
        raise InvalidInput(f"{scheme}: needs a path: {scheme}:///absolute/path or {scheme}:relative.")
    try:
        return Path(rest).expanduser().absolute()
    except RuntimeError as error:
        raise InvalidInput(f"The folder ~ in the {scheme}: URL belongs to no user of this machine.") from error
