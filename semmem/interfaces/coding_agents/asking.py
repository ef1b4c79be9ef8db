"""The command `semmem hook` in a hurry: ask the process that has the store open, and load the rest only without one.

A client runs it at certain moments, with JSON on standard input. It never fails its client: whatever goes wrong is one
line on standard error, and the exit code is 0. An exit code of 2 would keep a person's prompt from being sent.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from semmem.interfaces.local_socket import Address, address_of, ask

__all__ = ["BUDGET", "EVENTS", "LISTEN", "quick", "run_hook"]

EVENTS = ("session-start", "prompt", "pre-compact", "stop")
LISTEN = "listen"
"""What `semmem hook` is started with to answer other hooks; no event of a client."""

BUDGET = 1_000
"""Tokens of a block."""

_THREADS = "OPENBLAS_NUM_THREADS"
"""How many threads numpy starts when it is loaded: by default one a processor, and one recall has no work for them."""

_WITHIN_S = {"session-start": 5.0, "prompt": 5.0, "pre-compact": 600.0, "stop": 600.0}
"""Seconds that a hook waits for the process that it asks."""


def quick(arguments: Sequence[str]) -> int | None:
    """Run a hook by the arguments behind ``hook``, without the library that reads options: it loads for too long.

    What cannot be read is told on standard error, and the answer is 0 all the same. None for what that library has to
    do, such as ``--help``.
    """
    if {"-h", "--help"} & set(arguments):
        return None
    options: dict[str, Any] = {}
    rest = iter(arguments)
    for word in rest:
        if word == "--detach":
            options["detach"] = True
        elif word in ("--json", "--debug"):
            continue  # every command has them, and a hook prints the same
        elif word in ("--url", "--namespace", "--agent", "--budget", "--lock", "--reply-key"):
            value = next(rest, "")
            if not value or (word in ("--budget", "--lock") and not value.isdecimal()):
                return _unknown(f"{word} {value}")
            options[word[2:].replace("-", "_")] = int(value) if word in ("--budget", "--lock") else value
        elif word in (*EVENTS, LISTEN) and "event" not in options:
            options["event"] = word
        else:
            return _unknown(word)
    if options.get("event") == LISTEN:
        from semmem.interfaces.coding_agents.listening import run_listener

        return run_listener(options.get("url"), options.get("lock"))
    return run_hook(**options) if "event" in options else _unknown("no event")


def _unknown(what: str) -> int:
    _say(f"semmem: A hook cannot use {what!r}; see semmem hook --help. Its events are {', '.join(EVENTS)}.\n")
    return 0


def _say(words: str) -> None:
    """Tell a person on standard error, if it takes the words: a hook ends with 0 all the same."""
    with suppress(OSError, ValueError):
        sys.stderr.write(words)


def run_hook(
    event: str,
    url: str | None = None,
    namespace: str | None = None,
    budget: int = BUDGET,
    agent: str = "claude-code",
    detach: bool = False,
    reply_key: str | None = None,
) -> int:
    """Read the client's JSON, do what the event is for, print a block if there is one; return 0, whatever happens.

    ``detach``: go on in the background and let the client continue. ``reply_key``: print JSON with the block under this
    key.
    """
    try:
        raw = sys.stdin.buffer.read()
        if detach and not _in_background():
            return 0
        folder = os.getcwd()
        address = address_of(url)
        words = [event, namespace or "", str(budget), agent, folder]
        reply = ask(address, words, raw, _WITHIN_S[event])
        if reply is None:
            reply = _alone(address, event, url, namespace, budget, agent, folder, raw)
        out, err = reply
        _print(_json(out, reply_key) if out and reply_key else out, err)
    except KeyboardInterrupt:
        pass
    except Exception as error:  # noqa: BLE001  # a client's turn goes on, whatever it is
        _say(f"semmem: {type(error).__name__}: {' '.join(str(error).split())}\n")
    return 0


def _print(out: bytes, err: bytes) -> None:
    """Write the block, and what is said to a person, as they came."""
    sys.stdout.write(out.decode("utf-8", "replace"))
    sys.stdout.flush()
    _say(err.decode("utf-8", "replace"))


def _json(block: bytes, key: str) -> bytes:
    """Return JSON with the block under ``key``, whose dots lead into objects, as some clients read it."""
    import json

    value: Any = block.decode("utf-8", "replace")
    for name in reversed(key.split(".")):
        value = {name: value}
    return json.dumps(value).encode() + b"\n"


def _alone(
    address: Address,
    event: str,
    url: str | None,
    namespace: str | None,
    budget: int,
    agent: str,
    folder: str,
    raw: bytes,
) -> tuple[bytes, bytes]:
    """Do it in this process, and let a process begin that answers the next hooks."""
    unset = _THREADS not in os.environ
    os.environ.setdefault(_THREADS, "1")
    try:
        from semmem.interfaces.coding_agents.hook import HookOptions, answer_alone

        reply, asked = answer_alone(HookOptions(event, url, namespace, budget, agent, folder), raw)
    finally:
        if unset:  # the process that begins then has as many as it takes
            del os.environ[_THREADS]
    if asked and event in ("session-start", "prompt"):
        from semmem.interfaces.coding_agents.listening import begin_listener

        begin_listener(address, url)
    return reply.block.encode("utf-8", "replace"), "".join(reply.said).encode("utf-8", "replace")


def _in_background() -> bool:
    """Go on in a process of its own; return whether this is that one."""
    if os.fork():
        return False
    from semmem.interfaces.coding_agents.error_log import error_log

    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    with suppress(OSError, ValueError):  # without a log, what goes wrong is lost, and the client still goes on
        sys.stderr = error_log()
    return True
