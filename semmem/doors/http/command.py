"""The commands `serve` and `serve key`: the HTTP API, and the keys of those who may use it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from semmem.doors.cli.context import Door, alone, command

if TYPE_CHECKING:
    from semmem.doors.http.keys import Key, Keys

__all__ = ["serving"]

serving = typer.Typer(add_completion=False)
"""The group of commands under ``semmem serve``."""

keeping = typer.Typer(add_completion=False, no_args_is_help=True, help="Keys of those who may use the server.")
serving.add_typer(keeping, name="key")

KeyFile = Annotated[
    Path | None, typer.Option("--keys", help="File of keys (default: keys.json beside your own semmem.toml).")
]


@alone(serving, "url", "recipe")
def serve(
    door: Door,
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
    rate: Annotated[float, typer.Option(help="Most requests a second of one key or address; 0: any number.")] = 200.0,
    timeout: Annotated[
        float, typer.Option(help="Most seconds that an answer may take, and a body, or an item of a stream, to come.")
    ] = 60.0,
    threads: Annotated[int, typer.Option(help="Most calls at work at once; others wait.")] = 8,
) -> None:
    """Serve the store over HTTP: every verb under /v1, described by /openapi.json.

    Only this machine can reach it, unless --host says otherwise, and then it wants a key (`semmem serve key add`). Once
    there is a key, every request needs one. Ctrl-C finishes what was asked and stops.
    """
    from semmem.doors.http.announcement import announced
    from semmem.doors.http.guard import Guard, check_address
    from semmem.doors.http.limits import Limits
    from semmem.doors.http.server import Server, check_port, need_extra

    need_extra()
    stored_keys = _keys(keys)
    check_address(host, stored_keys)  # before a store is opened
    check_port(port)
    limits = Limits.chosen(max_body=max_body, rate=rate, timeout=timeout, threads=threads)
    guard = Guard.of(allow_host or (), allow_origin or ())
    settings: dict[str, Any] = {"recipe": door.recipe} if door.recipe else {}
    with door.connect(create=True, **settings) as mem:
        door.storing = False
        _ = mem.store  # what is behind a server has none here, and is not served again
        server = Server(mem, host=host, port=port, keys=stored_keys, guard=guard, limits=limits)
        door.give({"url": server.url}, lambda: None)
        flush()
        who = f"with one of {len(stored_keys.list())} keys" if stored_keys else "without a key"
        door.say(f"semmem answers at {server.url}, {who}. Ctrl-C stops it.")
        with announced(server.url, mem.settings.url, mem.settings.home):
            finished = server.run()
        if not finished:
            door.say("Stopped; a verb that was still at work was broken off, and the batch it was at is not stored.")
            flush()
            os._exit(1)  # a thread cannot be ended, and the end of the program would wait for it
    door.say("Stopped.")


@command(keeping, "add")
def add(
    door: Door,
    name: Annotated[str, typer.Argument(help="A name to know the key by.")],
    namespaces: Annotated[
        list[str] | None, typer.Option("--namespace", "-n", help="Only for this namespace; repeatable.")
    ] = None,
    write: Annotated[
        bool, typer.Option("--write/--read", help="Let it change memories and settings, or only read them.")
    ] = False,
    keys: KeyFile = None,
) -> None:
    """Make a key and show it, once: only its hash is stored.

    It is sent as the header `Authorization: Bearer KEY`; semmem.connect takes it as key=…, or from SEMMEM_KEY.
    """
    names = namespaces or ([door.namespace] if door.named else None)
    key, text = _keys(keys).add(name, right="write" if write else "read", namespaces=names)
    door.give({**_row(key), "key": text}, lambda: _show_key(door, key, text))


@command(keeping, "list")
def list_(door: Door, keys: KeyFile = None) -> None:
    """Show the keys by name: what each may do, and where. The keys themselves cannot be shown again."""
    rows = [_row(key) for key in _keys(keys).list()]
    door.give({"keys": rows}, lambda: _show_keys(door, rows))


@command(keeping, "remove")
def remove(door: Door, name: Annotated[str, typer.Argument(help="The name of the key.")], keys: KeyFile = None) -> None:
    """Remove a key: every server refuses it from its next request on."""
    key = _keys(keys).remove(name)
    door.give({"removed": _row(key)}, lambda: door.out.print(f"Removed the key {key.name}.", markup=False))


def flush() -> None:
    """Let a program that reads our output see what was written, such as the address before the first request."""
    import sys

    sys.stdout.flush()
    sys.stderr.flush()


def _keys(file: Path | None) -> Keys:
    from semmem.doors.http.keys import Keys

    return Keys(file)


def _row(key: Key) -> dict[str, Any]:
    """Return what may be shown of a key."""
    return {"name": key.name, "right": key.right, "namespaces": key.namespaces, "created_at": key.created_at}


def _show_key(door: Door, key: Key, text: str) -> None:
    where = ", ".join(key.namespaces) if key.namespaces else "every namespace"
    door.say(f"The key {key.name} may {'read and write' if key.right == 'write' else 'read'} in {where}. It is:")
    door.out.print(text, soft_wrap=True, markup=False)
    door.say("Keep it: it is shown this once.")


def _show_keys(door: Door, rows: list[dict[str, Any]]) -> None:
    if not rows:
        door.out.print("There are no keys; a server on this machine answers without one.")
    for row in rows:
        where = ", ".join(row["namespaces"]) if row["namespaces"] else "every namespace"
        right = "read and write" if row["right"] == "write" else "read"
        door.out.print(f"{row['name']}: {right} in {where}, since {row['created_at'][:10]}", markup=False)
