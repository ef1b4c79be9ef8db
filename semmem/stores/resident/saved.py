"""Save models as files, so that a new process maps a namespace instead of reading it from the store.

A file holds a header, then the arrays of a block. It stands in a folder beside the store, and its name is drawn by
chance. The store records the name in a transaction that sees the state that was saved, or one that follows from it: a
store restored from a backup, or a new one at the same place, has another name or none. Whatever does not match is no
saved model, and is not spoken of.

Who saves or erases holds a lock of the store, and removes with it each file that the store has no name for. So no
process saves what another one has erased, and what a killed process has left is of a state that was the store's then.
On SQLite the whole saving holds that lock; on PostgreSQL its beginning and its end do, see stores/postgres/saved.py.
"""

from __future__ import annotations

import json
import logging
import mmap
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import blake2b
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from semmem.files import is_part, private_folder
from semmem.model.errors import SemmemError, StoreUnavailable
from semmem.stores.resident.block import Block, Rows, aligned
from semmem.stores.resident.model import State

__all__ = [
    "FEWEST",
    "MOST_BEHIND",
    "Register",
    "bytes_of",
    "claim",
    "counts_of",
    "erase_files",
    "in_the_way",
    "is_fresh",
    "is_private",
    "left_out",
    "load",
    "path_of",
    "shrink",
    "tidy",
    "touch",
    "write",
]

_log = logging.getLogger(__name__)

FEWEST = 2_000
"""Smaller namespaces are read as fast."""
MOST_BEHIND = 1_000
"""A saved model is saved anew when more memories were written or removed since."""
_LAYOUT = 1
"""To be raised where an array is made of the rows in another way; another name or type is noticed."""
_MAGIC = b"semmemdl"
_HEAD = len(_MAGIC) + 8 + 16
"""The bytes before the header: the magic, the header's length, its hash."""
_NAME = re.compile(r"[0-9a-f]{32}\.model")


class Register(Protocol):
    """The names of files that a store records, in one transaction that holds the lock of those who save or erase.

    ``folder`` is the folder of the files. ``own`` is the name that the namespace has which is being saved.
    """

    folder: Path

    @property
    def own(self) -> str | None:
        """The name of the file of the namespace; None where there is none."""

    def names(self) -> set[str]:
        """Return the names of the files of all namespaces."""

    def drop(self, name: str) -> None:
        """Forget the name of a file of another namespace."""


def load(path: Path | None, namespace: str, state: State) -> tuple[State, Block] | None:
    """Return what a file that the store names holds of a namespace, which may be of an earlier state than ``state``.

    None where there is nothing to trust.
    """
    touch(path)
    return _found(path, namespace, state)


def touch(path: Path | None) -> None:
    """Note that the namespace of a file is asked: those asked longest ago make room for others.

    The time is given, since the system's own is the same for all files touched within some milliseconds.
    """
    if path is not None:
        now = time.time_ns()
        with suppress(OSError):
            os.utime(path, ns=(now, now))


def is_fresh(
    path: Path | None, namespace: str, state: State, changes: Callable[[Mapping[str, Any]], Iterable[Sequence[Any]]]
) -> bool:
    """Return whether the saved model of a namespace at ``state`` need not be saved again.

    ``changes`` returns the rows of the statement ``resident_changes`` for its parameters: first the id of a memory that
    changed, "" where the changes are not all known any more.
    """
    if (found := _found(path, namespace, state)) is None:
        return False
    saved, _ = found
    if saved == state:
        return True
    if not state.follows(saved) or state.written_since(saved) > MOST_BEHIND:
        return False
    where = {"namespace": namespace, "since": saved.changes}
    ids = {id for id, *_ in changes(where)}  # a change may be of a whole batch
    return "" not in ids and len(ids) <= MOST_BEHIND


def in_the_way(register: Register, size: int, most: int) -> list[str]:
    """Return the names of the files that give way to a new one of ``size`` bytes: those that were asked longest ago.

    All saved models of the store take at most ``most`` bytes, but for a single one.
    """
    others = _named(register, but=register.own)
    return _first_of(others, size + _size(others) - most)


def claim(folder: Path) -> Path:
    """Make an empty file of a name drawn by chance, its owner's alone, under the lock of the store. Raises OSError."""
    path = folder / f"{os.urandom(16).hex()}.model"
    path.touch(0o600, exist_ok=False)
    return path


def write(path: Path, state: State, block: Block) -> None:
    """Write a block into a file that was claimed, to be on disk at the end. Raises OSError, also where it is erased.

    An erased file is not made again: what is written then has no name, and goes when the file is closed.
    """
    with path.open("r+b") as out:
        _write(out, state, block.arrays())
        out.flush()
        os.fsync(out.fileno())


def shrink(register: Register, most: int) -> int:
    """Remove the files that the store has no name for, under the lock of ``register``. Raises OSError.

    With them go the saved models that were asked longest ago until all take at most ``most`` bytes, but not the last.
    Returns how many of these went.
    """
    named = _named(register)
    gone = _first_of(named[:-1], _size(named) - most)
    for name in gone:
        register.drop(name)
    tidy(register.folder, register.names())
    return len(gone)


@contextmanager
def left_out(error_of_store: type[Exception]) -> Iterator[None]:
    """Leave out what fails while models are saved: nothing is lost but a faster first recall."""
    try:
        yield
    except (OSError, MemoryError, SemmemError, error_of_store) as error:
        _log.debug("A model is not saved: %s", error)


def counts_of(*, saved: int, unsaved: int) -> dict[str, int]:
    """Return the counts of saved models that ``maintain`` gives, without zeros: see Semmem.maintain."""
    return {name: count for name, count in (("saved", saved), ("unsaved", unsaved)) if count}


def _first_of(files: Sequence[tuple[str, os.stat_result]], surplus: int) -> list[str]:
    """Return the names of the first files that together take ``surplus`` bytes; of all where that is not enough."""
    names = []
    for name, status in files:
        if surplus <= 0:
            break
        surplus -= status.st_size
        names.append(name)
    return names


def _size(files: Iterable[tuple[str, os.stat_result]]) -> int:
    return sum(status.st_size for _, status in files)


def erase_files(folder: Path, names: Collection[str]) -> None:
    """Remove the files that the store does not name, under its lock. Raises StoreUnavailable where one stays."""
    try:
        tidy(folder, names)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise StoreUnavailable(
            f"Saved models of this store in {folder} cannot be removed ({error.strerror}), so nothing was changed; "
            "delete that folder, and try again."
        ) from error


def tidy(folder: Path, names: Collection[str]) -> None:
    """Remove files of saved models, whole or in part, that the store does not name. Raises OSError."""
    for file in os.listdir(folder):
        if (_NAME.fullmatch(file) or is_part(file)) and file not in names:
            (folder / file).unlink(missing_ok=True)


def path_of(folder: Path | None, name: str | None) -> Path | None:
    """Return the file of a name that a store records; None where it is no name of a file."""
    return folder / name if folder is not None and name is not None and _NAME.fullmatch(name) else None


def is_private(folder: Path) -> bool:
    """Make the folder of saved models, and return whether it is this user's, who alone may read it. Raises OSError."""
    private_folder(folder)
    status = folder.lstat()
    return status.st_uid == os.geteuid() and not status.st_mode & 0o077 and not folder.is_symlink()


def bytes_of(register: Register) -> int:
    """Return the bytes that the saved models of a store take, but for that of the namespace which is being saved."""
    return _size(_named(register, but=register.own))


def _named(register: Register, *, but: str | None = None) -> list[tuple[str, os.stat_result]]:
    """Return the files that the store names, each with its status, those that were asked longest ago first.

    The file ``but`` is left out, and empty ones, which are to be written.
    """
    named = []
    for name in register.names() - {but}:
        with suppress(OSError):
            if (status := (register.folder / name).stat()).st_size:
                named.append((name, status))
    return sorted(named, key=lambda one: one[1].st_mtime_ns)


# ---------------------------------------------------------------------- the file


@cache
def _types() -> Mapping[str, np.dtype[Any]]:
    """Return the type of each array, by which a file of another version, or of another byte order, is known."""
    return {name: array.dtype for name, array in Block(Rows.none()).arrays().items()}


def _write(out: BinaryIO, state: State, arrays: Mapping[str, NDArray[Any]]) -> None:
    columns = [[name, str(array.dtype.descr), array.shape] for name, array in arrays.items()]
    header: dict[str, Any] = {"layout": _LAYOUT, "state": state, "arrays": columns}
    raw = json.dumps(header).encode()
    out.write(_MAGIC + len(raw).to_bytes(8, "little") + _hash(raw) + raw)
    offsets, _ = aligned((array.nbytes for array in arrays.values()), out.tell())
    for array, offset in zip(arrays.values(), offsets, strict=True):
        out.write(bytes(offset - out.tell()))
        out.write(np.ascontiguousarray(array).data)


def _found(path: Path | None, namespace: str, state: State) -> tuple[State, Block] | None:
    """Return what a file holds; None where there is no file to trust.

    Its name proves the history of its state, so the server may have started anew since, and written its table anew.
    """
    try:
        if path is None:
            return None
        saved, block = _mapped(path, namespace)
        return saved._replace(server=state.server, file=state.file), block
    except (OSError, ValueError, TypeError, KeyError) as error:
        _log.debug("A saved model is not used: %s", error)
        return None


def _mapped(path: Path, namespace: str) -> tuple[State, Block]:
    """Return what a file holds, its arrays mapped for reading. Raises OSError, and ValueError for other files."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(handle, "rb"):
        if os.fstat(handle).st_uid != os.geteuid():
            raise ValueError("another user's file")
        content = mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
    size = int.from_bytes(content[len(_MAGIC) : len(_MAGIC) + 8], "little")
    raw = content[_HEAD : _HEAD + size]
    if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC) + 8 : _HEAD] != _hash(raw):
        raise ValueError("no header")
    header = json.loads(raw)
    if header["layout"] != _LAYOUT or {n: t for n, t, _ in header["arrays"]} != _expected():
        raise ValueError("another layout")
    arrays = [(name, _types()[name], shape) for name, _, shape in header["arrays"]]
    offsets, end = aligned((prod(shape) * dtype.itemsize for _, dtype, shape in arrays), _HEAD + size)
    if end != len(content):
        raise ValueError("another length")
    mapped = {
        name: np.ndarray(shape, dtype, content, offset)
        for (name, dtype, shape), offset in zip(arrays, offsets, strict=True)
    }
    return State(*header["state"]), Block.from_arrays(namespace, mapped)


def _expected() -> dict[str, str]:
    return {name: str(dtype.descr) for name, dtype in _types().items()}


def _hash(raw: bytes) -> bytes:
    return blake2b(raw, digest_size=16).digest()
