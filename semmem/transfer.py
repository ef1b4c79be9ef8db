"""Move whole stores: a copy into another store, a backup into one file, a restore from it, hashes; and the export.

Copies, backups and hashes are for PostgreSQL, embedded or your own server. The export reads every store, so memories
are moved between other stores by export and import.
"""

from __future__ import annotations

import base64
import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semmem.config import Settings
from semmem.embedders import vector_key
from semmem.model.errors import InvalidInput
from semmem.model.memory_fields import STORED
from semmem.model.reports import BackupReport, CopyReport, NamespaceHash
from semmem.model.store import Store, VectorStore
from semmem.model.types import Filters, Memory
from semmem.stores import open_store, parse_url
from semmem.text.passages import embedded_text

if TYPE_CHECKING:
    from semmem.stores.postgres.store import PostgresStore

__all__ = ["Progress", "backup", "check", "copy", "database_id", "exported", "hashes", "note_backup", "restore"]

Progress = Callable[[int], None] | None

_OTHER_WAY = (
    "{} is for stores on PostgreSQL (embedded: or postgresql://…); move memories from and to a SQLite store with "
    "`semmem export` and `semmem import`, and copy its file with `sqlite3 FILE '.backup COPY'`."
)


def copy(
    from_url: str,
    to_url: str,
    *,
    progress: Progress = None,
    copied: Callable[[Store, Settings], object] = lambda *_: None,
    **settings: Any,
) -> CopyReport:
    """Copy the store at ``from_url`` into the one at ``to_url``, which must be empty, and check the copy.

    The copy is bit for bit the source as it was at the start: memories with times and versions, vectors, graph,
    corrections, settings of namespaces. The source may be in use. After an interruption the same call continues. Run
    again after the end, it adds the changes since, unless somebody has changed the copy. ``progress`` is called with
    the number of rows done, ``copied`` with the source at the end.

    Raises InvalidInput for a target that cannot be used, StoreUnavailable if a server fails, StoreError if the copy
    differs from its source.
    """
    from semmem.stores.postgres.moving.copy import copy as copy_store

    chosen = Settings.load(**settings)
    for url in (from_url, to_url):
        if parse_url(url, home=chosen.home).kind == "sqlite":  # before a file of that name is made
            raise InvalidInput(_OTHER_WAY.format("copy"))
    source = _open(from_url, chosen)
    try:
        target = _open(to_url, chosen)
        try:
            report = copy_store(_postgres(source, "copy"), _postgres(target, "copy"), progress=progress)
            copied(source, chosen)
            return report
        finally:
            target.close()
    finally:
        source.close()


def backup(
    store: Store, file: str | os.PathLike[str], *, force: bool, progress: Progress, noted: bool = True
) -> BackupReport:
    """Write all of ``store`` into one file; see semmem.stores.postgres.moving.backup.

    Not ``noted``, the store counts it as its last backup only after ``note_backup``.
    """
    from semmem.stores.postgres.moving.backup import backup as back_up

    postgres = _postgres(store, "backup")
    where = _path(file)
    try:
        report = back_up(postgres, where, force=force, progress=progress)
    except OSError as error:
        raise InvalidInput(f"The backup cannot be written to {where}: {error.strerror or error}.") from error
    if noted:
        note_backup(store)
    return report


def note_backup(store: Store) -> None:
    """Note in ``store`` that its last backup is from now."""
    from semmem.stores.postgres.moving.backup import note

    note(_postgres(store, "backup"))


def restore(store: Store, file: str | os.PathLike[str], *, progress: Progress) -> BackupReport:
    """Restore a backup into an empty store; see semmem.stores.postgres.moving.backup."""
    from semmem.stores.postgres.moving.backup import restore as restore_store

    return restore_store(_postgres(store, "restore"), _path(file), progress=progress)


def check(file: str | os.PathLike[str]) -> None:
    """Raise InvalidInput or SchemaTooNew, before any store is opened, for a file that ``restore`` would refuse."""
    from semmem.stores.postgres.moving import backup

    backup.check(_path(file))


def database_id(store: Store) -> str:
    """Return the id of the database that holds ``store``; a restored store has another one."""
    from semmem.stores.postgres.moving.copy import database_id as id_of

    with _postgres(store, "backup").lasting() as connection:
        return id_of(connection)


def hashes(store: Store, namespace: str | None) -> Mapping[str, NamespaceHash]:
    """Return counts and hashes of one namespace, or of all, from one snapshot of the store."""
    from semmem.stores.postgres.moving import tables

    with _postgres(store, "hashes (stats --verify)").lasting() as connection, tables.snapshot(connection):
        return tables.hashes(connection, namespace)


def _open(url: str, chosen: Settings) -> Store:
    return open_store(
        url,
        home=chosen.home,
        pool_size=2,
        idle_stop_s=chosen.idle_stop_s,
        start_timeout_s=chosen.start_timeout_s,
        backup_before_migration=chosen.backup_before_migration,
        migrate=chosen.migrate,
    )


def _postgres(store: Store, what: str) -> PostgresStore:
    """Return ``store`` if it is on PostgreSQL. Raises InvalidInput that names the other way."""
    from semmem.stores.postgres.store import PostgresStore

    if isinstance(store, PostgresStore):
        return store
    raise InvalidInput(_OTHER_WAY.format(what))


def _path(file: str | os.PathLike[str]) -> Path:
    if not isinstance(file, str | os.PathLike) or not os.fspath(file):
        raise InvalidInput("file must be the path of a backup.")
    return Path(file).expanduser().absolute()


_PAGE = 100

_MOST_PAGE = 1_000

_PAGE_CHARS = 4_000_000
"""The approximate size of one page of texts, so that few long memories take no more memory than many short ones."""


def exported(
    store: Store,
    namespaces: Sequence[str] | None,
    filters: Filters,
    *,
    timed_of: Callable[[Memory, bytes], bool],
    vectors: bool = False,
) -> Iterator[dict[str, Any]]:
    """Yield every whole memory of ``namespaces`` (None: of all) that ``filters`` match, as plain JSON values.

    Namespaces come in the order given (all: by name), the newest memory first within each, as in ``list``. Fields that
    a memory does not have are left out; ``links`` are the links from it, ``text_at`` is when a text began that an
    update has brought, ``untimed`` says that ``created_at`` was taken from the clock, where ``timed_of`` a memory and
    the hash of its content is false. With ``vectors``, vectors are included. In a
    store with given vectors that is ``vector``, a list. Otherwise it is ``embedder``, its fingerprint, and ``vectors``,
    which map the ``vector_key`` of each embedded text (of the memory or its parts) to float32 bytes in base64. Pages
    are read one after the other, so memories written meanwhile may be missing.
    """
    vector_store = store.vectors if vectors else None
    identity = None if vector_store is None else vector_store.embedder()
    for namespace in store.namespaces() if namespaces is None else namespaces:
        cursor: str | None = None
        limit = _PAGE
        while True:
            page = store.list(namespace, filters, limit, cursor)
            ids = [memory.id for memory in page]
            links = _links(store, namespace, ids)
            began = store.life.texts_began(namespace, ids) if store.life is not None and ids else {}
            payloads = store.payload_hashes([(namespace, id) for id in ids]) if ids else {}
            for memory in page:
                begun = {"text_at": _iso(began[memory.id])} if memory.id in began else {}
                payload = payloads.get((namespace, memory.id))
                untimed = {} if payload is None or timed_of(memory, payload) else {"untimed": True}
                row = _row(memory) | begun | untimed | links.get(memory.id, {})
                if vector_store is not None and identity is not None:
                    row |= _vectors(store, vector_store, memory, str(identity["name"]), str(identity["fingerprint"]))
                yield row
            cursor = page.cursor
            if cursor is None:
                break
            longest = sum(len(memory.text) for memory in page) // len(page) + 1
            limit = max(1, min(_MOST_PAGE, 2 * limit, _PAGE_CHARS // longest))


def _links(store: Store, namespace: str, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the links from memories, by id, as fields of their rows."""
    rows: dict[str, dict[str, Any]] = {}
    for link in store.life.links(namespace, ids) if store.life is not None and ids else ():
        if link.from_id in ids:
            fields = {"type": link.type, "to": link.to_id, "since": _iso(link.since), "made_by": link.made_by}
            row = {name: value for name, value in fields.items() if value is not None}
            rows.setdefault(link.from_id, {"links": []})["links"].append(row)
    return rows


_FIELDS = {*STORED, "id", "namespace", "updated_at", "version"}
_EXPORTED = [one.name for one in dataclasses.fields(Memory) if one.name in _FIELDS]


def _row(memory: Memory) -> dict[str, Any]:
    """Return the fields of a memory that have a value, as JSON has them."""
    values = ((name, getattr(memory, name)) for name in _EXPORTED)
    return {name: _plain(value) for name, value in values if not (value is None or value is False or value in ((), {}))}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return _iso(value)
    return list(value) if isinstance(value, tuple) else _sorted(value)


def _sorted(value: Any) -> Any:
    """Return a JSON value with the keys of every object sorted, whatever order the store returns."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(one) for one in value] if isinstance(value, list) else value


def _iso(when: datetime | None) -> str | None:
    return None if when is None else when.astimezone(UTC).isoformat()


def _vectors(store: Store, vectors: VectorStore, memory: Memory, name: str, fingerprint: str) -> dict[str, Any]:
    row_ids = store.row_ids_of(memory.namespace, memory.id)
    owners, values = vectors.vectors_of([memory.namespace], row_ids)
    if not len(owners):
        return {}
    if name.startswith("external:"):
        return {"vector": [float(x) for x in values[0]]}
    pieces = {row_ids[0]: memory} if len(row_ids) == 1 else store.indexed_memories([memory.namespace], row_ids)
    packed = {
        vector_key(embedded_text(pieces[row_id])): base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")
        for row_id, vector in zip(owners.tolist(), values, strict=True)
        if row_id in pieces
    }
    return {"embedder": fingerprint, "vectors": packed}
