"""Where `semmem serve` answers for a store, noted for other programs of the same user, such as hooks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from urllib.parse import urlsplit

from semmem.doors.http.guard import is_loopback
from semmem.files import new_file, private_folder, state, state_folder
from semmem.model.errors import InvalidInput
from semmem.stores import parse_url

__all__ = ["announced", "server_of", "store_name"]


def store_name(url: str | None, home: Path | None = None) -> str:
    """Return what a store is known by, in hexadecimal digits: the same for every way to write its URL's path.

    Raises InvalidInput for a URL that names no store.
    """
    target = parse_url(url, home=home)
    place = target.dsn if target.path is None else str(target.path)
    return blake2b(f"{target.kind}\n{place}".encode(), digest_size=12).hexdigest()


@contextmanager
def announced(address: str, url: str | None, home: Path | None = None) -> Iterator[None]:
    """Note down that ``address`` answers for the store of ``url``, until the end; of two servers, the later one.

    A user without a home has no notes, and the server runs without.
    """
    try:
        file = _file(store_name(url, home))
        private_folder(file.parent)
        with new_file(file, force=True) as out:
            out.write(json.dumps({"url": address, "process": os.getpid()}).encode())
    except (InvalidInput, OSError):
        yield
        return
    try:
        yield
    finally:
        if state(file).get("process") == os.getpid():
            with suppress(OSError):
                file.unlink()


def server_of(store: str) -> str | None:
    """Return the address that is noted for the store of that name: one of this machine, noted by this very user."""
    try:
        note = state(_file(store))
    except InvalidInput:
        return None
    address = note.get("url")
    if not _lives(note.get("process")):  # killed, and somebody else may have taken the port since
        return None
    return address if isinstance(address, str) and _is_of_this_machine(address) else None


def _is_of_this_machine(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.port) and is_loopback(parts.hostname or "")
    except ValueError:
        return False


def _lives(process: object) -> bool:
    """Return whether that process of this user runs."""
    if isinstance(process, bool) or not isinstance(process, int) or process < 1:
        return False
    try:
        os.kill(process, 0)
    except (OSError, OverflowError):
        return False
    return True


def _file(store: str) -> Path:
    return state_folder() / "servers" / f"{store}.json"
