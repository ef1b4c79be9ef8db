"""A command that only reads, in a hurry: ask the process that has the store open, and load the rest only without one.

What that process does not answer whole, a wrong option or an error too, the command line does by itself afterwards.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from semmem.interfaces.local_socket import COMMAND, address_of, ask

__all__ = ["LOOKS", "READS", "load_less", "quick"]

READS = ("recall", "context", "explain", "get", "list")
"""The commands that another process may answer: they change nothing, and print whatever they find."""

LOOKS = ("COLORTERM", "FORCE_COLOR", "NO_COLOR", "TERM", "TTY_COMPATIBLE")
"""The variables that decide how the library that draws on terminals does so."""

_WITHIN_S = 30.0
"""Seconds that a command waits for the process that it asks."""


def quick(arguments: Sequence[str]) -> int | None:
    """Print the answer of the process that has the store open, and return the exit code; None where none answers.

    A picture is written here, where the path of its file is meant.
    """
    if any(word.startswith("--plot") for word in arguments):
        return None
    terminal = sys.stdout.isatty()
    if terminal and not sys.stderr.isatty():
        return None  # what is answered looks alike on both streams, and a file gets no colours
    url = _url(arguments)
    variables = (f"={os.environ[name]}" if name in os.environ else "" for name in LOOKS)
    look = ("1" if terminal else "", str(_columns(terminal)), sys.stdout.encoding, *variables)
    try:
        reply = ask(address_of(url or None), [COMMAND, url, *look, *arguments], b"", _WITHIN_S)
    except OSError:  # the working folder is gone, say
        return None
    if reply is None:
        return None
    for stream, printed in zip((sys.stdout, sys.stderr), reply, strict=True):
        if not printed:
            continue
        try:
            stream.buffer.write(printed)
            stream.flush()
        except BrokenPipeError:  # who reads it has enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        except OSError as error:  # a full disk, say: in the words in which a command alone tells it
            with suppress(OSError):
                sys.stderr.write(f"{type(error).__name__}: {error} (--debug shows where).\n")
            return 1
    return 0


def load_less() -> None:
    """Let libraries do less when they are loaded: numpy starts no threads, pydantic looks for no plug-ins."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # by default one a processor; a recall needs none
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")


def _url(arguments: Sequence[str]) -> str:
    """Return the value of the last ``--url``, empty without one; the process that answers reads it properly."""
    url = ""
    for word, following in zip(arguments, (*arguments[1:], ""), strict=True):
        if word == "--url":
            url = following
        elif word.startswith("--url="):
            url = word[len("--url=") :]
    return url


def _columns(terminal: bool) -> int:
    """Return how wide the output is: as the variable says, or the terminal; 100 columns where it is none."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    return (os.get_terminal_size(sys.stdout.fileno()).columns or 80) if terminal else 100
