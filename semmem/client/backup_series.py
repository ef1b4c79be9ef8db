"""A series of backups at one place: a dated file for each, the oldest removed, the newest restored as a drill.

A place is a folder, or the URL of a bucket and a prefix in it (``s3://bucket/prefix``, ``gs://``, ``az://``), whose
credentials and endpoint come from the environment, as that service's own tools read them.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from semmem import transfer
from semmem.config import Settings
from semmem.files import expanded, is_part, new_file
from semmem.model.errors import InvalidInput, MissingExtra, NotFound, StoreUnavailable
from semmem.model.failure import reason
from semmem.model.reports import BackupReport, DrillReport
from semmem.stores import open_store

if TYPE_CHECKING:
    from semmem.client.memory import Semmem

__all__ = ["MOST_KEPT", "Place", "Step", "add", "chosen", "drill", "newest", "place_of"]

MOST_KEPT = 10_000
_DATED = re.compile(r"semmem-(?P<store>[0-9a-f]{8})-(?P<at>\d{8}T\d{6}Z)\.semmem")
_TIME = "%Y%m%dT%H%M%SZ"
_BUCKET = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_SCHEMES = ("s3", "gs", "az")
_PART = 8 << 20
_LEFT_S = 86_400.0
_LONGEST_WHY = 300
_TO_CHECK = "Check its name, and the credentials, region and endpoint in the environment, such as AWS_ACCESS_KEY_ID."
_PLAIN = "An endpoint with http:// needs AWS_ALLOW_HTTP=true in the environment."


class Place(Protocol):
    """Where the backups of a series lie, by name."""

    def names(self) -> list[str]:
        """Return the names of all files here."""

    def new(self, name: str) -> Any:
        """Return a context of a local path to write; at its end the file is whole and here under ``name``."""

    def fetched(self, name: str) -> Any:
        """Return a context of a local path to read the file from."""

    def remove(self, name: str) -> None:
        """Remove a file; one that is gone is no error."""


def place_of(text: str) -> Place | None:
    """Return the folder or the bucket that ``text`` names; None where it can only be one file.

    Raises InvalidInput for a URL of another kind, MissingExtra where no package reads buckets.
    """
    if not _BUCKET.match(text):
        folder = expanded(text)
        return Folder(folder) if folder.is_dir() else None
    scheme, _, rest = text.partition("://")
    if scheme.lower() not in _SCHEMES or not rest.strip("/"):
        raise InvalidInput(f"{text} is no place for backups; name a folder, or a bucket as s3://BUCKET/PREFIX.")
    return Bucket(text.rstrip("/"))


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of this machine."""

    path: Path

    def names(self) -> list[str]:
        return [entry.name for entry in self.path.iterdir() if entry.is_file()]

    @contextmanager
    def new(self, name: str) -> Iterator[Path]:
        for left in filter(lambda file: is_part(file.name), self.path.glob(".*")):
            with suppress(OSError):  # of a backup that was killed; one at work was written a moment ago
                if time.time() - left.lstat().st_mtime > _LEFT_S:
                    left.unlink()
        yield self.path / name  # a backup appears whole or not at all

    @contextmanager
    def fetched(self, name: str) -> Iterator[Path]:
        yield self.path / name

    def remove(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)


class Bucket:
    """A prefix of a bucket, read and written by obstore."""

    def __init__(self, url: str) -> None:
        try:
            import obstore
            from obstore.store import from_url
        except ModuleNotFoundError as error:
            raise MissingExtra(
                f"Backups to {url} need the package obstore: pip install 'semmem[object-store]'"
            ) from error
        self._url, self._obstore = url, obstore
        with self._told():
            self._bucket: Any = from_url(url)

    def names(self) -> list[str]:
        with self._told():
            return [one["path"] for batch in self._obstore.list(self._bucket) for one in batch]

    @contextmanager
    def new(self, name: str) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="semmem-backup-") as folder:
            file = Path(folder) / name
            yield file
            with self._told(), file.open("rb") as raw:
                self._obstore.put(self._bucket, name, raw, chunk_size=_PART)

    @contextmanager
    def fetched(self, name: str) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="semmem-backup-") as folder:
            file = Path(folder) / name
            with new_file(file) as out, self._told():
                for block in self._obstore.get(self._bucket, name).stream(min_chunk_size=_PART):
                    out.write(block)
            yield file

    def remove(self, name: str) -> None:
        with self._told(), suppress(FileNotFoundError):
            self._obstore.delete(self._bucket, name)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Raise what the bucket could not do as one sentence."""
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, FileNotFoundError, PermissionError) as error:
            why = reason(error, 2_000).partition(" Debug source:")[0]
            why = why if len(why) <= _LONGEST_WHY else why[:_LONGEST_WHY].rpartition(" ")[0] + " …"
            what = _PLAIN if "builder error" in why else _TO_CHECK
            raise StoreUnavailable(f"The bucket of {self._url} could not be used: {why}. {what}") from error


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a series: the ``backup`` that was written, its ``name`` at the place, the names ``removed``."""

    name: str
    backup: BackupReport
    removed: tuple[str, ...]


def add(
    mem: Semmem, place: Place, *, keep: int, now: datetime | None = None, progress: transfer.Progress = None
) -> Step:
    """Back the store of ``mem`` up to ``place`` under a dated name, then remove all but its newest ``keep``.

    Backups of other stores and all other files at the place stay. Nothing is removed unless the new backup is whole.
    """
    if isinstance(keep, bool) or not isinstance(keep, int) or not 1 <= keep <= MOST_KEPT:
        raise InvalidInput(f"keep must be a whole number from 1 to {MOST_KEPT:,}, not {keep!r}.")
    mark = blake2b(transfer.database_id(mem.store).encode(), digest_size=4).hexdigest()
    name = _unused(mark, (now or datetime.now(UTC)).astimezone(UTC), place.names())
    with place.new(name) as file:
        report = mem.backup(file, progress=progress, noted=False)
    transfer.note_backup(mem.store)  # it is at the place now
    mine = sorted(one for one in place.names() if (found := _DATED.fullmatch(one)) and found["store"] == mark)
    upto = [one for one in mine if one <= name]  # one with a later date was made by a clock that went wrong
    removed = tuple(upto[:-keep])
    for one in removed:
        place.remove(one)
    return Step(name, report, removed)


def _unused(mark: str, at: datetime, names: list[str]) -> str:
    """Return the name of a backup from that time, or from the first second after it that no other one has."""
    while (name := f"semmem-{mark}-{at:{_TIME}}.semmem") in names:
        at += timedelta(seconds=1)
    return name


def newest(place: Place, what: str, now: datetime | None = None) -> list[str]:
    """Return the newest backup of each store at ``place``, which the caller calls ``what``, oldest first.

    One that is dated more than a day ahead counts only where the store has no other: a clock went wrong.
    Raises NotFound where there is none.
    """
    dated = sorted((found["at"], name, found["store"]) for name in place.names() if (found := _DATED.fullmatch(name)))
    if not dated:
        raise NotFound(f"There is no backup of a series at {what}; `semmem backup {what}` writes one.")
    last = f"{(now or datetime.now(UTC)) + timedelta(days=1):{_TIME}}"
    in_turn = sorted(dated, key=lambda one: (one[0] <= last, one[0]))
    of_store = {store: (at, name) for at, name, store in in_turn}
    return [name for _, name in sorted(of_store.values())]


def chosen(text: str, *, every: bool = False) -> tuple[Place, list[str]] | None:
    """Return the place in ``text`` and the backups to restore from there; None where it can only be a file.

    In a bucket a backup may be named. Of a place it is the newest one; with ``every`` that of each store. Raises
    NotFound for a backup that is not there, InvalidInput where several stores have backups and only one can be
    restored, and as ``newest`` and ``place_of`` do.
    """
    before, _, name = text.rpartition("/")
    if _BUCKET.match(text) and _DATED.fullmatch(name) and (place := place_of(before)) is not None:
        if name not in place.names():
            raise NotFound(f"There is no backup {name} at {before}.")
        return place, [name]
    if (place := place_of(text)) is None:
        return None
    names = newest(place, text)
    if len(names) > 1 and not every:
        files = " or ".join(f"{text.rstrip('/')}/{one}" for one in names)
        raise InvalidInput(f"Backups of {len(names)} stores are at {text}; name the one to restore: {files}.")
    return place, names


def drill(file: Path, settings: Settings) -> DrillReport:
    """Restore a backup into a store of its own, which is removed again, and say what it held.

    ``restore`` compares counts and hashes of every namespace with those in the file. Raises what ``restore`` raises.
    """
    from semmem.stores.embedded.server import EmbeddedServer

    started = time.monotonic()
    transfer.check(file)
    with tempfile.TemporaryDirectory(prefix="semmem-drill-") as folder:
        data = Path(folder) / "store"
        try:
            store = open_store(f"embedded://{data}", start_timeout_s=settings.start_timeout_s)
            try:
                report = transfer.restore(store, file, progress=None)
                namespaces = len(store.namespaces())
            finally:
                store.close()
        finally:
            EmbeddedServer(data).stop("fast")
    return DrillReport(file.name, report.bytes, report.memories, namespaces, time.monotonic() - started)
