"""The command line in this process: call it, and read its JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from semmem.interfaces.cli.app import run
from semmem.interfaces.cli.terminal import terminal

Call = Callable[..., tuple[int, str, str]]


def in_process(capfd: pytest.CaptureFixture[str]) -> Call:
    """Return a function that runs the program with its arguments; it returns code, output and errors."""

    def program(*args: str) -> tuple[int, str, str]:
        capfd.readouterr()
        terminal.cache_clear()  # a process that begins asks how wide its terminal is
        code = run(list(args))
        terminal.cache_clear()
        out, err = capfd.readouterr()
        return code, out, err

    return program


def loaded(answer: tuple[int, str, str]) -> Any:
    """Return the JSON of an answer that succeeded with nothing on standard error."""
    code, out, err = answer
    assert (code, err) == (0, "")
    return json.loads(out)


def stored(call: Call) -> dict[str, str]:
    """Return the texts of the memories by id."""
    return {memory["id"]: memory["text"] for memory in json.loads(call("list", "--json")[1])["memories"]}
