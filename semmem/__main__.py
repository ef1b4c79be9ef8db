"""Run the program `semmem`, also as `python -m semmem`."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from contextlib import suppress
from typing import NoReturn


def main() -> None:
    """Run the command line and exit with its code, also where Ctrl-C is pressed before it has been loaded."""
    gc.set_threshold(50_000, 20, 20)  # a start is mostly imports, and garbage collection took a sixth of their time
    try:
        code = _quick()
        if code is not None:
            _leave(code)
        from semmem.interfaces.cli.app import run

        code = run()
        if not gc.isenabled():  # a command that only reads
            _leave(code)
    except KeyboardInterrupt:
        sys.stderr.write("Stopped.\n")
        code = 130
    gc.freeze()  # the end of Python would collect garbage among all that was imported
    sys.exit(code)


def _leave(code: int) -> NoReturn:
    """End without Python's own end, which takes 6 % of a hook with every leg; exit handlers run."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # a client that went away
            stream.flush()
    os._exit(code)


def _open_streams() -> None:
    """Open the standard streams that the client has closed: no other file gets their numbers, and no print fails."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR)  # which has the lowest free number
            setattr(sys, name, os.fdopen(handle, mode, encoding="utf-8"))


def _quick() -> int | None:
    """Run a hook, or a command that another process answers, without the command line; None for what is left to it."""
    name, arguments = "".join(sys.argv[1:2]), sys.argv[2:]
    if name == "hook":
        return _hook(arguments)
    from semmem.interfaces.cli.asking import READS, load_less, quick

    if name not in READS:
        return None
    _open_streams()
    gc.disable()  # it ends before there is much to collect
    if (code := quick((name, *arguments))) is None:
        load_less()
    return code


def _hook(arguments: list[str]) -> int | None:
    """Run a hook of a coding agent; None where its help is asked for."""
    _open_streams()
    if {"session-start", "prompt"} & set(arguments):
        gc.disable()
    from semmem.interfaces.coding_agents.asking import quick

    return quick(arguments)


if __name__ == "__main__":
    main()
