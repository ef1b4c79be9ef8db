"""Open stores by URL. Only the module of the store that is asked for is imported."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from semmem.files import data_folder, expanded, in_no_folder
from semmem.model.errors import InvalidInput, LocalOnly, SchemaTooOld
from semmem.model.reports import Distribution, MigrationReport, RowSecurity
from semmem.stores.sql_files import check_step, migrations, unmigrated

if TYPE_CHECKING:  # importing these takes long, and a hook that asks a server opens no store
    from semmem.model.store import Store
    from semmem.stores.postgres.typed import Connection

__all__ = [
    "Target",
    "check_file",
    "distribute_store",
    "is_server",
    "masked",
    "migrate_store",
    "open_store",
    "parse_url",
    "secure_rows",
]


def open_store(
    url: str | None,
    *,
    home: Path | None = None,
    pool_size: int = 8,
    idle_stop_s: float = 3600.0,
    start_timeout_s: float = 120.0,
    backup_before_migration: bool = True,
    migrate: bool = True,
) -> Store:
    """Return an open store with its schema up to date. Without ``migrate``, an older schema is refused.

    A store with an older schema and memories in it is backed up before it is migrated: an embedded store into the
    folder ``backups`` beside its data, a store on a server into ``backups`` in ``home``, or else in the user's data
    folder.

    Raises InvalidInput for a URL that names no store, StoreUnavailable when its server cannot be reached or started,
    and SchemaTooNew or SchemaTooOld for a schema that this semmem cannot read.
    """
    target = parse_url(url, home=home)
    if not migrate and not _is_made(target):  # opening it would make it
        what, backend = _named(target)
        raise SchemaTooOld(unmigrated(what, 0, migrations(backend)))
    if target.kind == "sqlite":
        from semmem.stores.sqlite.store import SqliteStore

        return SqliteStore(url or "sqlite:", target.path, pool_size=pool_size, migrates=migrate)
    from semmem.stores.postgres.store import PostgresStore

    return PostgresStore(
        url or "embedded:",
        _conninfo(target, idle_stop_s, start_timeout_s),
        pool_size=pool_size,
        start_timeout_s=start_timeout_s,
        before_migration=_before(target, home) if backup_before_migration else None,
        migrates=migrate,
    )


def migrate_store(
    url: str | None,
    *,
    home: Path | None = None,
    idle_stop_s: float = 3600.0,
    start_timeout_s: float = 120.0,
    backup_before_migration: bool = True,
    to: int | None = None,
    dry_run: bool = False,
) -> MigrationReport:
    """Migrate the store at ``url`` to the newest schema, or to schema ``to``, and report the migrations that it ran.

    A ``dry_run`` changes nothing and reports what would run. Backups and errors are those of ``open_store``; a ``to``
    that no migration leads to is InvalidInput.
    """
    target = parse_url(url, home=home)
    what, backend = _named(target)
    known = migrations(backend)
    newest = known[-1][0]
    upto = newest if to is None else to
    ran: list[str] = []
    if target.kind == "sqlite":
        from semmem.stores.sqlite.connection import Filed, schema_of
        from semmem.stores.sqlite.connection import migrate as migrate_file

        if target.path is None:
            raise InvalidInput("A database in memory is always new; name a file after sqlite: to migrate it.")
        schema = schema_of(target.path)
        check_step(what, schema, upto, known)
        if not dry_run:
            Filed(
                url or "sqlite:", target.path, pool_size=1, migration=partial(migrate_file, upto=upto, ran=ran.append)
            ).close()
    else:
        from semmem.stores.postgres.migrate import migrate as migrate_server
        from semmem.stores.postgres.migrate import present

        conninfo = _conninfo(target, idle_stop_s, start_timeout_s)
        schema = present(conninfo, start_timeout_s=start_timeout_s) if _is_made(target) else 0
        check_step(what, schema, upto, known)
        if not dry_run:
            before = _before(target, home) if backup_before_migration else None
            migrate_server(conninfo, before=before, start_timeout_s=start_timeout_s, upto=upto, ran=ran.append)
    if dry_run:
        ran = [name for number, name, _ in known if schema < number <= upto]
    return MigrationReport(before=schema, after=schema if dry_run else upto, newest=newest, migrations=tuple(ran))


def _named(target: Target) -> tuple[str, str]:
    """Return how sentences name a store, and whose migrations it has."""
    return (f"The file {target.path}", "sqlite") if target.kind == "sqlite" else ("This store", "postgres")


def _is_made(target: Target) -> bool:
    """Return whether the file, or the server's folder, is there that opening the store would make."""
    if target.path is None:
        return True
    if target.kind == "sqlite":
        return target.path.exists()
    from semmem.stores.embedded.server import EmbeddedServer

    return EmbeddedServer(target.path).is_made


def distribute_store(
    url: str | None,
    *,
    home: Path | None = None,
    idle_stop_s: float = 3600.0,
    start_timeout_s: float = 120.0,
    dry_run: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Distribution:
    """Spread the store at ``url`` over the nodes of Citus; see semmem.stores.postgres.nodes.

    A ``dry_run`` changes nothing and reports what would move. Raises InvalidInput for a file, and SchemaTooOld for a
    store that is not made or not up to date.
    """
    target = parse_url(url, home=home)
    if target.kind == "sqlite":
        raise InvalidInput(
            "A SQLite file lies on one machine; to spread its memories over several, run `semmem export FILE`, and "
            "`semmem import jsonl FILE` into a PostgreSQL store with Citus."
        )
    from semmem.stores.postgres import nodes
    from semmem.stores.postgres.migrate import asked

    conninfo = _conninfo(target, idle_stop_s, start_timeout_s)
    asked(conninfo, partial(nodes.check, mend=nodes.DISTRIBUTE_THERE), start_timeout_s)
    _must_be_newest(conninfo, start_timeout_s, "can be distributed")
    return asked(conninfo, partial(nodes.distribute, dry_run=dry_run, progress=progress), start_timeout_s)


def secure_rows(
    url: str | None,
    *,
    home: Path | None = None,
    idle_stop_s: float = 3600.0,
    start_timeout_s: float = 120.0,
    on: bool | None = None,
) -> RowSecurity:
    """Switch row-level security of the store at ``url`` on or off, or only report it; see stores.postgres.row_security.

    Raises InvalidInput for a file, and SchemaTooOld for a store that is not made or not up to date.
    """
    target = parse_url(url, home=home)
    if target.kind == "sqlite":
        raise InvalidInput(
            "A SQLite file has no users, so it has no row-level security; it belongs to those who may read the file."
        )
    from semmem.stores.postgres import row_security
    from semmem.stores.postgres.migrate import asked

    conninfo = _conninfo(target, idle_stop_s, start_timeout_s)
    _must_be_newest(conninfo, start_timeout_s, "has row-level security")
    work = row_security.state if on is None else partial(row_security.switch, on=on)
    return asked(conninfo, work, start_timeout_s)


def _must_be_newest(conninfo: str | Callable[[], str], start_timeout_s: float, what: str) -> None:
    """Raise SchemaTooOld unless the store has the schema that ``what`` is said of."""
    from semmem.stores.postgres.migrate import present

    schema, newest = present(conninfo, start_timeout_s=start_timeout_s), migrations("postgres")[-1][0]
    if schema != newest:
        has = f"has schema {schema}" if schema else "has no tables of semmem"
        raise SchemaTooOld(f"This store {has}, and schema {newest} {what}; run `semmem migrate` first.")


def _conninfo(target: Target, idle_stop_s: float, start_timeout_s: float) -> str | Callable[[], str]:
    """Return how libpq reaches a store on PostgreSQL; for an embedded one, a function that starts its server."""
    if target.path is None:
        return target.dsn or ""
    from semmem.stores.embedded.server import EmbeddedServer

    return EmbeddedServer(target.path, idle_stop_s=idle_stop_s, start_timeout_s=start_timeout_s).ensure_running


def _before(target: Target, home: Path | None) -> Callable[[Connection, int, int], None]:
    """Return what backs up a store on PostgreSQL before a migration."""
    if target.path is not None:
        return _backup((target.path / "backups").absolute, one_store=True)

    def place() -> Path:  # called only when needed: a user without a home folder may still use a server
        return (data_folder() if home is None else expanded(home)).absolute() / "backups"

    return _backup(place, one_store=False)


def _backup(place: Callable[[], Path], *, one_store: bool) -> Callable[[Connection, int, int], None]:
    def before(connection: Connection, number: int, newest: int) -> None:
        from semmem.stores.postgres.moving.backup import before_migration

        before_migration(place(), one_store=one_store)(connection, number, newest)

    return before


_FORMS = "embedded:[FOLDER], postgresql://…, sqlite:FILE, sqlite::memory: or http://HOST:PORT"


@dataclass(frozen=True)
class Target:
    """The kind of a store and where it is.

    ``path`` is absolute: the data folder of ``embedded``, the file of ``sqlite``, None for ``sqlite::memory:`` and for
    ``postgresql``. ``dsn`` is the URL of ``postgresql`` as it was given, for libpq. It may hold a password, so the repr
    leaves it out.
    """

    kind: Literal["embedded", "postgresql", "sqlite"]
    path: Path | None = None
    dsn: str | None = field(default=None, repr=False)


def is_server(url: str | None) -> bool:
    """Return whether a URL is that of ``semmem serve`` rather than of a store."""
    return url is not None and url.strip().lower().startswith(("http://", "https://"))


def parse_url(url: str | None, *, home: Path | None) -> Target:
    """Parse a store URL.

    None and ``embedded:`` mean ``home``, or the platform's data folder where ``home`` is None. A path after
    ``embedded:`` or ``sqlite:`` is absolute behind ``///`` and otherwise relative to the working folder. It is taken as
    written, without percent-decoding; a leading ``~`` is the user's home. Raises InvalidInput for any other URL,
    without repeating it, because it may hold a password. Raises LocalOnly for the URL of a server.
    """
    text = "" if url is None else url.strip()
    if "\0" in text:
        raise InvalidInput("A store URL cannot hold a NUL character.")
    scheme, colon, rest = text.partition(":")
    scheme = scheme.lower()
    if url is None or (scheme == "embedded" and not rest):
        return Target("embedded", path=(data_folder() if home is None else expanded(home)).absolute())
    if is_server(text):
        raise LocalOnly("This needs the store itself, and the URL is that of a server; pass the store's own URL.")
    if not text:
        raise InvalidInput(f"The store URL is empty; leave it out for the embedded server, or write one of {_FORMS}.")
    if colon and scheme == "embedded":
        return Target("embedded", path=_path(scheme, rest))
    if colon and scheme == "sqlite":
        return Target("sqlite", path=None if rest == ":memory:" else _path(scheme, rest))
    if scheme in ("postgresql", "postgres") and rest.startswith("//"):
        _check_credentials(rest[2:])
        _check_port(rest[2:])
        return Target("postgresql", dsn=text)
    if scheme.startswith(("postgresql", "postgres")):
        raise InvalidInput("A PostgreSQL URL must begin with postgresql:// or postgres:// and nothing before the //.")
    meant = (
        "" if re.search("[:@=]", text) else f" Did you mean {_meant(text)}?"
    )  # the URL may hold a password, so it is not quoted
    raise InvalidInput(f"This is not a store URL that semmem knows; write one of {_FORMS}.{meant}")


def _meant(path: str) -> str:
    """Return the URL of a store at ``path``, guessed from what exists there or from the ending."""
    place = Path(path)
    folder = place.is_dir() or (not place.is_file() and not place.suffix)
    return f"{'embedded' if folder else 'sqlite'}:{path}"


def check_file(target: Target) -> None:
    """Raise InvalidInput for a SQLite file that does not exist, before a command that only reads would create it."""
    path = target.path
    if target.kind != "sqlite" or path is None or path.exists():
        return
    beside = [file.name for file in path.parent.iterdir() if file.is_file()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, beside, 1)
    hint = f"; did you mean {near[0]}?" if near else "; correct the path."
    if not path.parent.is_dir():
        raise in_no_folder(path)
    raise InvalidInput(f"There is no file {path}{hint} The first memory that is remembered there makes it.")


def masked(url: str) -> str:
    """Return a URL with its password masked."""
    url = re.sub(r"(://[^/@:?]*:)[^@]*@", r"\1***@", url)
    return re.sub(r"([?&](?:ssl)?password=)[^&]*", r"\1***", url)


def _check_credentials(rest: str) -> None:
    """Raise InvalidInput for a password that libpq would split, because its error would quote a part as a host name."""
    place = rest.partition("?")[0]
    before, sign, after = place.partition("@")
    if (sign and ("/" in before or "@" in after)) or re.search(r"%(?![0-9A-Fa-f]{2})", before if sign else ""):
        raise InvalidInput(
            "The user or password in the store URL holds a character that has to be percent-encoded: @ is %40, / is "
            "%2F, % is %25."
        )


def _check_port(rest: str) -> None:
    """Raise InvalidInput for a port that is no number, which libpq would blame on the host.

    Without a user the port may be a password whose host was left out, so it is not quoted.
    """
    _, sign, after = rest.partition("/")[0].rpartition("@")
    ports = [host.rpartition("]")[2].rpartition(":")[2] for host in after.partition("?")[0].split(",") if ":" in host]
    ports += [port for value in re.findall(r"[?&]port=([^&]*)", rest) for port in value.split(",")]
    for port in ports:
        if port and not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65_535):
            named = f" {port!r}" if sign else ""
            raise InvalidInput(
                f"The port{named} in the store URL is not a number from 1 to 65535; correct it, such as "
                f"5432, or leave it "
                "out."
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
