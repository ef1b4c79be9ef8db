"""Back up and restore a PostgreSQL store: one file, taken in one snapshot and checked before anything is restored.

The file is a ZIP archive: ``semmem-backup`` (a mark that identifies it), one member per table in COPY's binary format,
and ``manifest.json``, written last, with the number of the schema, the columns, counts and hashes. It is made over
semmem's own connection, because pg_dump would have to be installed in the version of the server.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import time
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from psycopg.errors import InsufficientPrivilege, ReadOnlySqlTransaction
from psycopg.types.json import Jsonb

from semmem.files import new_file, private_folder
from semmem.model.errors import InvalidInput, SchemaTooNew, SchemaTooOld, StoreError
from semmem.model.reports import BackupReport, NamespaceHash
from semmem.stores import backup_manifest
from semmem.stores.postgres import migrate, nodes
from semmem.stores.postgres.connection import Pooled
from semmem.stores.postgres.moving import tables as postgres_tables
from semmem.stores.postgres.moving.copy import alone
from semmem.stores.postgres.moving.tables import END, HEADER, Digest, Table
from semmem.stores.postgres.saved import erase
from semmem.stores.postgres.typed import Connection, only
from semmem.stores.sql_files import migrations, statements, too_old

__all__ = ["KEPT", "backup", "before_migration", "restore", "write_backup"]

KEPT = 3
"""The number of backups before a migration that are kept for one store."""
_FORMAT = 1
_MARK = "semmem-backup"
_BLOCK = 1 << 18
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    KeyError,
    TypeError,
    ValueError,
    OverflowError,
    OSError,
)  # raised by zipfile and json for bytes that they did not write
_SQL = statements("postgres")
Progress = Callable[[int], None] | None


def backup(store: Pooled, file: Path, *, force: bool = False, progress: Progress = None) -> BackupReport:
    """Write all of ``store``, as it is now, into ``file``; see ``write_backup``. ``note`` follows."""
    with store.lasting() as connection:
        return write_backup(connection, file, force=force, progress=progress)


def note(store: Pooled) -> None:
    """Note in ``store`` that a backup of it is where it belongs now."""
    with store.lasting() as connection, suppress(InsufficientPrivilege, ReadOnlySqlTransaction):
        connection.execute(_SQL["meta_backup"])  # who may only read may back up, too


def write_backup(connection: Connection, file: Path, *, force: bool = False, progress: Progress = None) -> BackupReport:
    """Write the store of an open connection into ``file``, closed to other users; return what it holds.

    The file appears when it is complete and on disk. ``progress`` is called with the number of rows done. Raises
    InvalidInput when ``file`` exists and ``force`` is false, OSError when it cannot be written.
    """
    started = time.monotonic()
    with (
        new_file(file, force=force) as out,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
    ):
        archive.writestr(zipfile.ZipInfo(_MARK), f"{_FORMAT}\n")
        with postgres_tables.snapshot(connection):
            manifest = _write_tables(connection, archive, progress)
        archive.writestr(backup_manifest.MANIFEST, _manifest_text(manifest))
    return _report(file, manifest, started)


def _write_tables(connection: Connection, archive: zipfile.ZipFile, progress: Progress) -> dict[str, Any]:
    schema = migrate.number(connection)
    tables: dict[str, Any] = {}
    row_count = 0
    for table in postgres_tables.tables(connection):
        digest = Digest()
        with (
            archive.open(_member(table.name), "w", force_zip64=True) as out,
            contextlib.closing(postgres_tables.read(connection, table, digests=[digest])) as blocks,
        ):
            out.write(HEADER)
            for block in blocks:
                out.write(block)
            out.write(END)
        tables[table.name] = {"columns": table.columns, **digest.as_json()}
        row_count += digest.rows
        if progress is not None:
            progress(row_count)
    newest = schema == migrations("postgres")[-1][0]  # the hashes read the tables of the newest schema
    hashes = postgres_tables.hashes(connection) if newest else {}
    return {
        "format": _FORMAT,
        "schema": schema,
        "written_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "server": connection.info.server_version,
        "memories": only(connection.execute(_SQL["move_size"]))[0],
        "tables": tables,
        "namespaces": {name: dataclasses.asdict(namespace_hash) for name, namespace_hash in hashes.items()},
        "indexed": postgres_tables.indexed(connection),
    }


def _manifest_text(manifest: dict[str, Any]) -> str:
    """Return the manifest as text, without the hashes of the namespaces where these are too long to be read again."""
    text = json.dumps(manifest, ensure_ascii=False, indent=1)
    if len(text.encode()) > backup_manifest.LONGEST:
        text = json.dumps({**manifest, "namespaces": {}}, ensure_ascii=False, indent=1)
    return text


def _member(table: str) -> str:
    return f"tables/{table}.copy"


def _report(file: Path, manifest: Mapping[str, Any], started: float) -> BackupReport:
    return BackupReport(
        file=str(file),
        bytes=file.stat().st_size,
        schema=manifest["schema"],
        memories=manifest["memories"],
        tables={name: table["rows"] for name, table in manifest["tables"].items()},
        namespaces={name: NamespaceHash(**namespace_hash) for name, namespace_hash in manifest["namespaces"].items()},
        seconds=time.monotonic() - started,
    )


# ---------------------------------------------------------------------- back again


def check(file: Path) -> None:
    """Read the whole file and raise the errors of ``restore``, so that no server is started for a bad file."""
    _checked(file)


def restore(store: Pooled, file: Path, *, progress: Progress = None) -> BackupReport:
    """Restore ``file`` into ``store``, which must be empty, in one transaction; return what the file holds.

    The whole file is checked first. A backup of an older schema is migrated like a store. Raises InvalidInput for a
    file that is no complete backup or a store that is not empty, SchemaTooNew or SchemaTooOld for an unknown schema.
    """
    started = time.monotonic()
    manifest = _checked(file)
    newest = migrations("postgres")[-1][0]
    with store.lasting() as connection, alone(connection):
        placing = nodes.placing(connection, new=False)
        with _fitting(file), placing, connection.transaction(), zipfile.ZipFile(file) as archive:
            _check_empty(connection)
            postgres_tables.lock(connection, postgres_tables.tables(connection))
            _check_empty(connection)  # again: somebody may have remembered something meanwhile
            erase(connection)
            if manifest["schema"] < newest:
                connection.execute(_SQL["move_drop"])
                migrate.create(connection)
                migrate.apply(connection, 0, manifest["schema"])
            tables = postgres_tables.tables(connection)
            _load(connection, archive, manifest, tables, progress)
            migrate.apply(connection, manifest["schema"], newest)
            if manifest["namespaces"] and manifest["schema"] == newest:
                hashes = {name: dataclasses.asdict(h) for name, h in postgres_tables.hashes(connection).items()}
                if hashes != manifest["namespaces"]:
                    raise StoreError(f"The restored store differs from {file}, so nothing was kept; try again.")
            _note(connection)
            if manifest["indexed"]:
                postgres_tables.index_vectors(connection)
            memories = only(connection.execute(_SQL["move_size"]))[0]
        postgres_tables.analyze(connection, postgres_tables.tables(connection))
    return _report(file, {**manifest, "memories": memories}, started)


def _check_empty(connection: Connection) -> None:
    """Raise InvalidInput where the store holds memories, or forgotten ones that can be brought back."""
    if memories := only(connection.execute(_SQL["move_size"]))[0]:
        raise InvalidInput(
            f"The store is not empty ({memories:,} memories); restore into an empty one, such as "
            "--url embedded:NEW_FOLDER, or forget its memories first."
        )
    if forgotten := only(connection.execute(_SQL["move_kept"]))[0]:
        raise InvalidInput(
            f"The store keeps {forgotten:,} forgotten memories that can still be brought back; restore into an "
            "empty one, such as --url embedded:NEW_FOLDER, or forget them for good first (--hard)."
        )


def _note(connection: Connection) -> None:
    """Record the restore: the numbers of changes made after the backup will be used again."""
    row = connection.execute(_SQL["meta_get"], {"key": "restored"}).fetchone()
    numbers: dict[str, int] = dict(connection.execute(_SQL["move_numbers"]).fetchall())
    value = {"life": time.time_ns() // 1_000, "before": row[0]["life"] if row else None, "numbers": numbers}
    connection.execute(_SQL["meta_set"], {"key": "restored", "value": Jsonb(value)})


@contextlib.contextmanager
def _fitting(file: Path) -> Iterator[None]:
    """Raise one sentence where a store refuses the rows of a backup."""
    import psycopg

    sentence = f"{file} holds what no store can hold, so nothing was restored; use another backup."
    try:
        yield
    except InvalidInput:
        raise
    except (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError, psycopg.NotSupportedError) as error:
        raise InvalidInput(sentence) from error
    except (KeyError, TypeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise InvalidInput(sentence) from error


def _load(
    connection: Connection,
    archive: zipfile.ZipFile,
    manifest: Mapping[str, Any],
    tables: list[Table],
    progress: Progress,
) -> None:
    """Write every table, then read it back and compare it with the backup."""
    if {t.name: sorted(t.columns) for t in tables} != {n: sorted(h["columns"]) for n, h in manifest["tables"].items()}:
        raise InvalidInput(f"The tables of this backup are not those of schema {manifest['schema']}; it was changed.")
    postgres_tables.clear(connection, tables)
    row_count = 0
    for table in tables:
        entry = manifest["tables"][table.name]
        table = dataclasses.replace(table, columns=tuple(entry["columns"]))
        with archive.open(_member(table.name)) as raw:
            postgres_tables.load(connection, table, _rows(raw))
        if postgres_tables.digest(connection, table).as_json() != {"rows": entry["rows"], "sha256": entry["sha256"]}:
            raise StoreError(f"The table {table.name} differs from the backup; nothing was restored.")
        row_count += entry["rows"]
        if progress is not None:
            progress(row_count)


def _rows(raw: IO[bytes]) -> Generator[bytes, None, None]:
    """Yield a member without COPY's header and end. Raises ValueError where these are missing."""
    if raw.read(len(HEADER)) != HEADER:
        raise ValueError("no header")
    tail = raw.read(_BLOCK)
    while block := raw.read(_BLOCK):
        yield tail[: -len(END)]
        tail = tail[-len(END) :] + block
    if tail[-len(END) :] != END:
        raise ValueError("no end")
    yield tail[: -len(END)]


def _checked(file: Path) -> dict[str, Any]:
    """Read the whole file and return its manifest. Raises InvalidInput, SchemaTooNew or SchemaTooOld."""
    if not file.is_file():
        raise InvalidInput(f"There is no file {file}.")
    with file.open("rb") as raw:
        if raw.read(64)[30:].startswith(_MARK.encode()) is False:
            raise InvalidInput(f"{file} is not a backup of semmem; `semmem backup FILE` writes one.")
    broken = f"{file} is damaged or was cut off, so nothing was restored; use another backup."
    newest = migrations("postgres")[-1][0]
    try:
        with zipfile.ZipFile(file) as archive:
            names = backup_manifest.members(archive, file.stat().st_size)
            format, schema, whole = backup_manifest.read(archive)
            if format > _FORMAT:
                raise SchemaTooNew(
                    f"This backup has format {format} and this version of semmem reads up to {_FORMAT}; upgrade "
                    "semmem as docs/operate.md says"
                )
            if schema > newest:
                raise SchemaTooNew(
                    f"This backup has schema {schema} and this version of semmem reads up to {newest}; upgrade "
                    "semmem as docs/operate.md says"
                )
            if (old := too_old("This backup", schema, "postgres")) is not None:
                raise SchemaTooOld(old)
            manifest: dict[str, Any] = whole().model_dump(by_alias=True)
            if names != {_MARK, backup_manifest.MANIFEST, *map(_member, manifest["tables"])}:
                raise InvalidInput(broken)
            for name, entry in manifest["tables"].items():
                sha = hashlib.sha256()
                with archive.open(_member(name)) as member:
                    for block in _rows(member):
                        sha.update(block)
                if sha.hexdigest() != entry["sha256"]:
                    raise InvalidInput(broken)
    except (SchemaTooNew, SchemaTooOld):
        raise
    except _BROKEN as error:
        raise InvalidInput(broken) from error
    return manifest


# ---------------------------------------------------------------------- before a migration


def before_migration(folder: Path, *, one_store: bool) -> Callable[[Connection, int, int], None]:
    """Return the function that ``migrate`` calls before it changes a store: it backs up a store with memories.

    Each database gets a folder of its own in ``folder``, unless ``folder`` belongs to ``one_store``. The last few
    backups are kept.
    """

    def take(connection: Connection, number: int, newest: int) -> None:
        if not only(connection.execute(_SQL["move_size"]))[0]:
            return
        where = folder if one_store else folder / _store_name(connection)
        name = f"before-schema-{newest}-{datetime.now(UTC):%Y%m%dT%H%M%S%f}.semmem"
        try:
            private_folder(where)
            write_backup(connection, where / name)
        except OSError as error:
            raise StoreError(
                f"The store was not migrated from schema {number} to {newest}, because its backup could not be written "
                f"to {where} ({error.strerror or error}); make room there, or skip the backup with "
                "SEMMEM_BACKUP_BEFORE_MIGRATION=false."
            ) from error
        for old in sorted(where.glob("before-schema-*.semmem"), key=lambda f: f.stat().st_mtime)[:-KEPT]:
            old.unlink(missing_ok=True)

    return take


def _store_name(connection: Connection) -> str:
    info = connection.info
    whole = f"{info.host}\n{info.port}\n{info.dbname}"
    plain = "".join(c if c.isalnum() else "_" for c in info.dbname)[:40]
    return f"{plain}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"
