"""The commands `serve`, `keys` and `serve key`: the HTTP API, and the keys of its clients, in the store or a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeAlias

import typer

from semmem.files import settings_folder
from semmem.interfaces.cli.context import CommandLine, alone, command
from semmem.model.errors import InvalidInput

if TYPE_CHECKING:
    from semmem.interfaces.http.keys import Key, Keys, KeySet, Right, StoredKeys

__all__ = ["end_at_once", "flush", "in_store", "serving"]

Noted: TypeAlias = "Callable[[str, Sequence[Key]], object]"
"""What notes in the audit that a command, by name, has changed some keys."""

serving = typer.Typer(add_completion=False)
"""The group of commands under ``semmem serve``."""

keeping = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Keys in a file, for the servers of one machine."
)
serving.add_typer(keeping, name="key")

in_store = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Keys for HTTP and MCP clients, in the store and so for all its servers.",
)
"""The group of commands ``semmem keys``."""

KeyFile = Annotated[
    Path | None, typer.Option("--keys", help="File of keys (default: keys.json beside your own semmem.toml).")
]


@alone(serving, "url", "recipe")
def serve(
    cli: CommandLine,
    host: Annotated[
        str, typer.Option(help="Address to listen at; any but this machine's own needs a key.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen at; 0 takes a free one.")] = 8765,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name that clients may call this server by (Host); repeatable.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="A web page that may use it, such as https://example.org; repeatable.")
    ] = None,
    keys: KeyFile = None,
    max_body: Annotated[int, typer.Option(help="Most bytes of a request, or of one item of a stream.")] = 16 * 2**20,
    rate: Annotated[float, typer.Option(help="Requests per second of one key or address; 0: any number.")] = 200.0,
    timeout: Annotated[
        float, typer.Option(help="Seconds allowed for an answer, and for receiving a body or one item of a stream.")
    ] = 60.0,
    threads: Annotated[int, typer.Option(help="Calls that run at the same time; others wait.")] = 8,
) -> None:
    """Serve the store over HTTP: every verb under /v1, described at /docs and /openapi.json.

    It listens on this machine only; with another --host it requires a key (`semmem keys add`) or an identity server
    (oidc_issuer). As soon as one key exists, every request needs one. Ctrl-C finishes the running requests and stops.
    """
    from semmem.interfaces.coding_agents.listening import hooks_answered
    from semmem.interfaces.http.guard import Guard
    from semmem.interfaces.http.limits import Limits
    from semmem.interfaces.http.server import Server, check_port, need_extra
    from semmem.interfaces.http.tokens import Tokens

    need_extra()
    tokens = Tokens.of(cli.settings())
    stored_keys = _keys(keys)
    if not host:
        raise InvalidInput("The host is empty; leave it out for 127.0.0.1.")
    check_port(port)
    if tokens is not None and (sentence := tokens.ask()):
        cli.say(f"Warning: {sentence}")
    shared = cli.settings().shared_rate
    limits = Limits.chosen(max_body=max_body, rate=rate, timeout=timeout, threads=threads, shared=shared)
    guard = Guard.of(allow_host or (), allow_origin or ())
    settings: dict[str, Any] = {"recipe": cli.recipe} if cli.recipe else {}
    with cli.connect(create=True, **settings) as mem:
        cli.storing = False
        _ = mem.store  # what is behind a server has none here, and is not served again
        server = Server(mem, host=host, port=port, keys=stored_keys, guard=guard, limits=limits, tokens=tokens)
        cli.give({"url": server.url}, lambda: None)
        flush()
        known = server.service.keys.list()
        who = f"with one of {len(known)} keys" if known else "without a key and so to every user of this machine"
        if tokens is not None:
            who = f"with a token of {tokens.issuer}" + (f", or with one of {len(known)} keys" if known else "")
        cli.say(f"semmem answers at {server.url}, {who}. Ctrl-C stops it.")
        with hooks_answered(cli.url, cli.recipe) as begin:
            begin(mem)
            finished = server.run()
        if not finished:
            end_at_once(cli, "a verb that was still running was interrupted, and its current batch is not stored.")
    cli.say("Stopped.")


Admin = Annotated[
    bool, typer.Option("--admin", help="Let it also change settings and limits, run maintain, manage namespaces.")
]
Writes = Annotated[bool, typer.Option("--write/--read", help="Let it write; by default it may only read.")]
Only = Annotated[list[str] | None, typer.Option("--namespace", "-n", help="Only for this namespace; repeatable.")]
Lasting = Annotated[
    str | None, typer.Option("--expires-in", help="Time until it expires, such as 90d or 12h (default: never).")
]


@command(in_store, "add", "url")
def add_stored(
    cli: CommandLine,
    name: Annotated[str, typer.Argument(help="A name for the key.")],
    namespaces: Only = None,
    write: Writes = False,
    admin: Admin = False,
    expires_in: Lasting = None,
) -> None:
    """Add a key to the store and show it once; only its hash is stored.

    Every server over the store accepts it within a second. A client sends it as the header `Authorization: Bearer KEY`;
    the command line takes it from SEMMEM_KEY, semmem.connect also as key=….
    """
    with _stored(cli, create=True) as (keys, noted):
        _add(cli, keys, name, namespaces, write, admin, expires_in, noted)


@command(in_store, "list", "url")
def list_stored(cli: CommandLine) -> None:
    """List the keys of the store: name, right, namespaces, expiry. The keys themselves cannot be shown again."""
    with _stored(cli) as (keys, _):
        _list(cli, keys)


@command(in_store, "revoke", "url")
def revoke(
    cli: CommandLine, name: Annotated[str, typer.Argument(help="The name of the key.")], keys: KeyFile = None
) -> None:
    """Remove a key, and the older keys that it replaced, from the store; servers refuse them within a second.

    A server that cannot reach the store uses the keys that it has read for 10 seconds at most. A server with a file of
    keys still accepts a key that the file holds too; give the file as --keys to be warned.
    """
    with _stored(cli) as (stored, noted):
        key = stored.remove(name)
        noted("keys revoke", [key])
    warning = _in_file(keys, key)

    def show() -> None:
        cli.out.print(f"Revoked the key {key.name}.", markup=False)
        if warning:
            cli.say(warning)

    cli.give({"removed": _row(key), "warning": warning}, show)


@command(in_store, "rotate", "url")
def rotate(
    cli: CommandLine,
    name: Annotated[str, typer.Argument(help="The name of the key.")],
    overlap: Annotated[
        str, typer.Option(help="How long the old key is still accepted, such as 12h or 7d; 0: not at all.")
    ] = "1d",
    expires_in: Lasting = None,
    keys: KeyFile = None,
) -> None:
    """Replace a key by a new one with the same name, right and namespaces, and show the new one once.

    The old key is accepted for --overlap more, so that its clients can get the new one. The new key never expires
    unless --expires-in is given, even if the old one would have.
    """
    last = timedelta() if overlap == "0" else _time(overlap) or timedelta()
    with _stored(cli) as (stored, noted):
        old, key, text = stored.rotate(name, overlap=last, lasting=_time(expires_in))
        noted("keys rotate", [key])
    warning = _in_file(keys, old)
    row = {**_row(key), "key": text, "old_expires_at": old.expires_at, "warning": warning}

    def show() -> None:
        _show_key(cli, key, text)
        cli.say(
            f"The old key is accepted until {(old.expires_at or '')[:19]} UTC." if last else "The old key has expired."
        )
        if warning:
            cli.say(warning)

    cli.give(row, show)


@command(in_store, "import", "url")
def import_(cli: CommandLine, keys: KeyFile = None) -> None:
    """Copy the keys of a file into the store, so that all its servers accept them; clients keep their keys.

    The file stays, and servers that read it still accept its keys; delete it when no server needs it.
    """
    file = _keys(keys)
    taken = file.list()
    with _stored(cli, create=True) as (stored, noted):
        count = stored.take(taken)
        noted("keys import", taken)
    cli.give(
        {"imported": count, "file": str(file.file)},
        lambda: cli.say(
            f"Imported {count} keys into the store. Servers that read {file.file} still accept them there."
        ),
    )


@command(keeping, "add")
def add(
    cli: CommandLine,
    name: Annotated[str, typer.Argument(help="A name for the key.")],
    namespaces: Only = None,
    write: Writes = False,
    admin: Admin = False,
    expires_in: Lasting = None,
    keys: KeyFile = None,
) -> None:
    """Add a key to the file and show it once; only its hash is stored. `semmem keys add` adds one to the store.

    A client sends it as the header `Authorization: Bearer KEY`; the command line takes it from SEMMEM_KEY,
    semmem.connect also as key=….
    """
    _add(cli, _keys(keys), name, namespaces, write, admin, expires_in)


@command(keeping, "list")
def list_(cli: CommandLine, keys: KeyFile = None) -> None:
    """List the keys of the file: name, right and namespaces. The keys themselves cannot be shown again."""
    _list(cli, _keys(keys))


@command(keeping, "remove")
def remove(
    cli: CommandLine, name: Annotated[str, typer.Argument(help="The name of the key.")], keys: KeyFile = None
) -> None:
    """Remove a key from the file; every server that reads it refuses the key from its next request on."""
    key = _keys(keys).remove(name)
    cli.give({"removed": _row(key)}, lambda: cli.out.print(f"Removed the key {key.name}.", markup=False))


def end_at_once(cli: CommandLine, sentence: str) -> NoReturn:
    """End the program, and say what of it is not finished: a thread cannot be ended, and would be waited for."""
    cli.say(f"Stopped; {sentence}")
    flush()
    os._exit(1)


def flush() -> None:
    """Let a program that reads our output see what was written, such as the address before the first request."""
    sys.stdout.flush()
    sys.stderr.flush()


def _keys(file: Path | None) -> Keys:
    from semmem.interfaces.http.keys import Keys

    return Keys(file)


def _in_file(file: Path | None, key: Key) -> str | None:
    """Return a warning where a file of keys still has ``key``, or one of the keys that it took the place of."""
    from semmem.interfaces.http.keys import principal

    try:
        keys = _keys(file)
        known = keys.list()
    except InvalidInput as error:
        return None if file is None and settings_folder() is None else str(error)
    if not any(principal(one) == principal(key) for one in known):
        return None
    where = "" if file is None else f" --keys {file}"
    return (
        f"The file {keys.file} has the key {key.name} too, and servers that read it still accept that key; remove it "
        f"there with `semmem serve key remove {key.name}{where}`."
    )


@contextmanager
def _stored(cli: CommandLine, *, create: bool = False) -> Iterator[tuple[StoredKeys, Noted]]:
    """Open the store; yield the keys in it, and what notes in the audit the work on some of them.

    Raises LocalOnly for a store behind a server, InvalidInput.
    """
    from semmem.client.audit import note_done
    from semmem.interfaces.http.keys import StoredKeys

    with cli.connect(create=create) as mem:
        cli.storing = False
        kept = mem.store.serving
        if kept is None:
            raise InvalidInput(
                f"A {mem.store.kind} store holds no keys; use a file of keys: `semmem serve key add NAME`."
            )

        def noted(verb: str, keys: Sequence[Key]) -> None:
            for key in keys:
                note_done(mem.store, mem.settings, verb, namespaces=key.namespaces, ids=[key.name])

        yield StoredKeys(kept), noted


def _add(
    cli: CommandLine,
    keys: KeySet,
    name: str,
    namespaces: list[str] | None,
    write: bool,
    admin: bool,
    expires_in: str | None,
    noted: Noted = lambda *_: None,
) -> None:
    right: Right = "admin" if admin else "write" if write else "read"
    where = namespaces or ([cli.namespace] if cli.named else None)
    key, text = keys.add(name, right=right, namespaces=where, lasting=_time(expires_in))
    noted("keys add", [key])
    cli.give({**_row(key), "key": text}, lambda: _show_key(cli, key, text))


def _list(cli: CommandLine, keys: KeySet) -> None:
    rows = [_row(key) for key in keys.list()]
    cli.give({"keys": rows}, lambda: _show_keys(cli, rows))


def _time(text: str | None) -> timedelta | None:
    """Return a time as it is written in an option. Raises InvalidInput."""
    if text is None:
        return None
    units = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
    number = text[:-1]
    if text[-1:] not in units or not number.isascii() or not number.isdecimal() or not 0 < int(number[:9]) <= 100_000:
        raise InvalidInput(f"A time must be like 90d, 12h, 45m or 30s, with a number up to 100000, not {text!r}.")
    return timedelta(**{units[text[-1]]: int(number)})


def _row(key: Key) -> dict[str, Any]:
    """Return what may be shown of a key."""
    return {
        "name": key.name, "right": key.right, "namespaces": key.namespaces, "created_at": key.created_at,
        "expires_at": key.expires_at,
    }  # fmt: skip


_MAY = {"read": "read", "write": "read and write", "admin": "read, write and admin"}


def _show_key(cli: CommandLine, key: Key, text: str) -> None:
    where = ", ".join(key.namespaces) if key.namespaces else "every namespace"
    until = f" until {key.expires_at[:19]} UTC" if key.expires_at else ""
    cli.say(f"The key {key.name} may {_MAY[key.right]} in {where}{until}. It is:")
    cli.out.print(text, soft_wrap=True, markup=False)
    cli.say("Copy it now: it is not shown again. Clients take it from SEMMEM_KEY.")


def _show_keys(cli: CommandLine, rows: list[dict[str, Any]]) -> None:
    if not rows:
        cli.out.print(
            "There are no keys. A server started now needs none; a running server that once had a key stays closed."
        )
    for row in rows:
        where = ", ".join(row["namespaces"]) if row["namespaces"] else "every namespace"
        until = f", until {row['expires_at'][:19]} UTC" if row["expires_at"] else ""
        over = (
            " (expired)" if row["expires_at"] and datetime.fromisoformat(row["expires_at"]) <= datetime.now(UTC) else ""
        )
        text = f"{row['name']}: {_MAY[row['right']]} in {where}, since {row['created_at'][:10]}{until}{over}"
        cli.out.print(text, markup=False)
