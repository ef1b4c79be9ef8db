"""Turn errors of PostgreSQL and libpq into one sentence that says what to do. Pure.

While connecting, libpq reports no SQLSTATE, only text, so its text is matched; the text of a server in another language
is quoted. A sentence never holds a password: see ``without``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote, unquote

import psycopg

from semmem.model.errors import AccessDenied, InvalidInput, StoreError, StoreUnavailable

__all__ = [
    "OLDEST_SERVER",
    "OLDEST_VECTOR",
    "OTHER_SCHEMA",
    "bound_since",
    "error_at_connect",
    "error_at_work",
    "is_absent",
    "lost",
    "moving",
    "planned_for_one",
    "shard_moved",
    "starting",
    "too_old",
    "unprepared",
    "without",
]

OLDEST_SERVER = 15
"""The oldest PostgreSQL that its project still maintains and that semmem is tested with; xid8 would need 13."""
OLDEST_VECTOR = (0, 8)
"""The first pgvector with iterative index scans (hnsw.iterative_scan), which a search within a scope needs."""
OTHER_SCHEMA = ("42703", "42P01", "42P10")
"""What a statement meets where a newer semmem has changed the tables: no such column, table, unique key (SQLSTATE)."""

_PASSWORD_HELP = "check the one in the URL, in PGPASSWORD or in your password file (PGPASSFILE, ~/.pgpass)"
_STATES = "starting up|shutting down|in recovery mode|not yet accepting connections"
_NOT_THERE = "Connection refused|No such file or directory"
_DROPPED = "server closed the connection unexpectedly|Connection reset by peer|Broken pipe"
_COMING_OR_GOING = ("57P01", "57P02", "57P03")  # the server ends sessions, has crashed processes, or accepts none yet
_DISK_FULL = (
    "The disk of the database server is full ({}); free some space there and try again. Nothing of this call was kept "
    "in part."
)
_AT_CONNECT: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (
        r"FATAL:\s+(?P<it>[^\n]*No space left on device)",
        lambda m: _DISK_FULL.format(m["it"]),
    ),
    (
        r'password authentication failed for user "(?P<it>[^"]*)"',
        lambda m: f"The database server refuses the password of the user {m['it']}; {_PASSWORD_HELP}.",
    ),
    (
        r"no password supplied",
        lambda m: f"The database server wants a password and none was given; {_PASSWORD_HELP}.",
    ),
    (
        r'FATAL:\s+database "(?P<it>[^"]*)" does not exist',
        lambda m: f"There is no database {m['it']} on this server; make it with: createdb {m['it']}",
    ),
    (
        r'FATAL:\s+role "(?P<it>[^"]*)" does not exist',
        lambda m: f"There is no database user {m['it']} on this server; make it with: createuser --pwprompt {m['it']}",
    ),
    (
        r"no pg_hba\.conf entry for (?P<it>[^\n]*)",
        lambda m: f"The database server does not admit {m['it']}; let its administrator add a line to pg_hba.conf.",
    ),
    (
        r'permission denied for database "?(?P<it>[^"\n]*)"?',
        lambda m: f"This user may not connect to the database {m['it']}; let its owner grant CONNECT on it.",
    ),
    (
        r"too many clients already|remaining connection slots are reserved|too many connections for",
        lambda m: (
            "The database server has no connection left; close other programs, lower SEMMEM_POOL_SIZE in each process, "
            "or raise max_connections on the server."
        ),
    ),
    (
        rf"the database system is (?P<it>{_STATES})",
        lambda m: f"The database server is {m['it']}; try again in a moment.",
    ),
    (
        rf"(?:server (?:at|on) (?P<it>[^\n]*?) failed: )?(?:{_NOT_THERE})",
        lambda m: f"No database server answers at {_place(m['it'])}; start it there, or correct the address.",
    ),
    (
        'Servname not supported|nodename nor servname|invalid port number|for connection option "port"',
        lambda m: "The port of the database server is no number from 1 to 65535; correct PGPORT, or the store URL.",
    ),
    (
        r'could not translate host name "(?P<it>[^"]*)"|failed to resolve host \'(?P<that>[^\']*)\'',
        lambda m: f"There is no machine named {m['it'] or m['that']}; correct the host in the store URL or in PGHOST.",
    ),
    (
        r"timeout expired",
        lambda m: (
            "The database server does not answer in time; check the host, the port and the firewall, or let the store "
            "URL allow more seconds with connect_timeout."
        ),
    ),
    (
        r"Connection timed out|No route to host|Network is unreachable",
        lambda m: "The machine of the database server does not answer; check the host, the network and its firewall.",
    ),
    (
        r"server does not support SSL",
        lambda m: (
            "The database server offers no encryption and sslmode asks for it; enable ssl there, or lower sslmode."
        ),
    ),
    (
        r'definition of service "(?P<it>[^"]*)" not found|service file "(?P<that>[^"]*)" not found',
        lambda m: f"There is no service {m['it'] or 'file ' + str(m['that'])}; correct PGSERVICE, or PGSERVICEFILE.",
    ),
)
_NODE = r"remote node (?:\S+@)?(?P<it>\S+:\d+) failed|connection marked as essential: (?P<that>\S+:\d+)"
_LAST_WORD = r"received \d+ results from command"
"""psycopg's words where the server, as it ends a session, answers BEGIN or COMMIT twice."""
_MOVED_SHARD = re.compile(r'could not find valid entry for shard \d+|relation "semmem\.\w+_\d{6,}" does not exist')
_STILL = "namespace_is_still"
_MOVING = (
    "This namespace is being renamed, or a rename or a copy fills it, so nothing was changed in it; try again when it "
    "is done. Where it was interrupted, `semmem maintain` ends it."
)
_UNSTORABLE = (None, "22021", "22P05")  # refused by psycopg (a NUL character), or no text in UTF-8
_AT_WORK: dict[str, str] = {
    "53100": _DISK_FULL,
    "53200": "The database server is out of memory ({}); give it more, or ask for less at once.",
    "53400": "A limit set on the database server was reached ({}); raise it there, or ask for less at once.",
    "25006": (
        "This database server takes no writes ({}); connect to the primary, or set default_transaction_read_only off."
    ),
    "42501": "This database user lacks a right ({}); let the owner of semmem's tables grant it.",
    "42P01": "A table of semmem is gone from the database ({}); restore a backup, or open the store anew.",
    "57014": "The database server stopped a statement ({}); try again, or raise its statement_timeout.",
    "55P03": "A lock on the database server was not free in time ({}); try again, or raise its lock_timeout.",
    "40P01": "Other writers kept this one from its turn ({}); try again.",
    "40001": "Other writers kept this one from its turn ({}); try again.",
}


def error_at_connect(error: psycopg.Error, conninfo: str = "") -> StoreError | InvalidInput:
    """Return the error to raise where no connection could be made; the password in ``conninfo`` is never quoted."""
    words = _flat(str(error))
    for pattern, sentence in _AT_CONNECT:
        if match := re.search(pattern, words):
            return StoreUnavailable(without(sentence(match), conninfo))
    return StoreUnavailable(without(f"The database server cannot be reached: {words[:400].rstrip('.')}.", conninfo))


def error_at_work(error: psycopg.Error) -> StoreError | InvalidInput | AccessDenied | None:
    """Return the error to raise for a failed statement; None where the fault is semmem's own."""
    if moving(error):
        return StoreUnavailable(_MOVING)
    state = error.sqlstate
    words = _flat(error.diag.message_primary or str(error))[:300].rstrip(".")
    if isinstance(error, psycopg.DataError) and state in _UNSTORABLE:
        return InvalidInput(f"The database server cannot take a value of this call ({words}); correct the value.")
    if state is None and not (isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) or lost(error)):
        return None  # psycopg has refused a statement, so no connection was lost
    if state is None and (full := re.search(_AT_CONNECT[0][0], words)):
        return StoreUnavailable(_DISK_FULL.format(full["it"]))
    if node := re.search(_NODE, words):
        return StoreUnavailable(
            f"The node {node['it'] or node['that']} of this store does not answer, and this call needs it; start it "
            "there. Namespaces on other nodes go on."
        )
    if state is None or state.startswith(("08", "57P")):
        return StoreUnavailable(f"The connection to the database server was lost and did not come back ({words}).")
    if state == "42501" and "row-level security policy" in words:
        return AccessDenied(
            f"The database refuses rows of a namespace that the key of this call may not touch ({words})."
        )
    if state in _AT_WORK:
        return StoreUnavailable(_AT_WORK[state].format(words))
    if state.startswith(("53", "54", "55", "57", "58", "XX", "F0")):
        return StoreUnavailable(f"The database server cannot do this ({words}); its log says more.")
    return None


def moving(error: psycopg.Error) -> bool:
    """Return whether a statement failed because its namespace is being renamed, filled or emptied.

    A constraint refuses to number a change then, and a cast the lock of the namespace (namespace.sql).
    """
    return error.sqlstate in ("23514", "22P02") and _STILL in str(error)  # Citus passes on the words alone


def lost(error: psycopg.Error) -> bool:
    """Return whether the server ended a connection, or a node of it one that the server keeps to that node."""
    words = _flat(str(error))
    by_server = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and (
        error.sqlstate is None or error.sqlstate.startswith(("08", "57P"))
    )
    return by_server or re.search(f"{_NODE}|{_LAST_WORD}", words) is not None


def planned_for_one(error: psycopg.Error) -> bool:
    """Return whether a connection plans as for one server, and the store was spread over several since it was made."""
    return error.sqlstate == "0A000" and "could not create distributed plan" in str(error)


def bound_since(error: psycopg.Error) -> bool:
    """Return whether a connection copies into a table whose policies bind it since it was made."""
    return error.sqlstate == "0A000" and "COPY FROM not supported with row-level security" in str(error)


def shard_moved(error: psycopg.Error) -> bool:
    """Return whether a statement was planned for a shard that Citus has split or moved to another node since."""
    return _MOVED_SHARD.search(str(error)) is not None


def unprepared(error: psycopg.Error) -> bool:
    """Return whether a connection counts on a prepared statement that an aborted pipeline took back."""
    return error.sqlstate == "26000"


def starting(error: psycopg.Error) -> bool:
    """Return whether a server that starts, recovers or stops refused or dropped a connection, so a retry may help."""
    if error.sqlstate is not None:
        return error.sqlstate in _COMING_OR_GOING
    return re.search(rf"the database system is ({_STATES})|{_DROPPED}", _flat(str(error))) is not None


def is_absent(error: psycopg.Error) -> bool:
    """Return whether nothing listens at the address, so that a retry helps once the server is started."""
    return error.sqlstate is None and re.search(_NOT_THERE, _flat(str(error))) is not None


def too_old(server: int, vector: str | None) -> str | None:
    """Return a sentence if the server (such as 150004) or its pgvector (such as 0.7.4) is too old, else None.

    ``vector`` is None where the extension does not exist yet.
    """
    if server < OLDEST_SERVER * 10_000:
        version = f"{server // 10_000}.{server % 10_000}" if server >= 100_000 else f"{server // 10_000}"
        return (
            f"This server is PostgreSQL {version} and semmem needs {OLDEST_SERVER} or newer; upgrade it, or leave out "
            "the URL to use the embedded server."
        )
    if vector is not None and _numbers(vector) < OLDEST_VECTOR:
        needed = ".".join(map(str, OLDEST_VECTOR))
        return (
            f"This database has pgvector {vector} and semmem needs {needed} or newer; install that on the server, "
            "then: ALTER EXTENSION vector UPDATE"
        )
    return None


def without(sentence: str, conninfo: str) -> str:
    """Return ``sentence`` with the password of ``conninfo`` masked wherever it is a word of its own."""
    for secret in _secrets(conninfo):
        sentence = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", sentence)
    return sentence


def _secrets(conninfo: str) -> set[str]:
    """Return the passwords in a URL or a conninfo string, both as written and as decoded.

    A password that equals the name of the user or of the database is left out, because masking could not hide it.
    """
    secrets = {m[1] for m in re.finditer(r"://[^/@:]*:([^@]*)@", conninfo)}
    secrets |= {m[1] for m in re.finditer(r"[?&\s](?:password|sslpassword)\s*=\s*([^&\s]+)", f" {conninfo}")}
    secrets = {secret.strip("'") for secret in secrets}
    secrets |= {unquote(secret) for secret in secrets} | {quote(secret) for secret in secrets}
    names = re.search(r"://([^/@:]*)(?::[^@]*)?@[^/]*/?([^?]*)", conninfo)
    return {secret for secret in secrets if secret} - set(names.groups() if names else ())


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version)[:3])


def _place(words: str | None) -> str:
    """Return libpq's ``"127.0.0.1", port 5432`` in the usual form."""
    return "the address given" if words is None else words.replace('"', "").replace(", port ", " port ")


def _flat(words: str) -> str:
    return " ".join(words.split())
