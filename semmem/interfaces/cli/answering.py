"""A command of another process, answered from a store that is open: what that process prints."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, TextIO

from typer.main import get_command

from semmem.client.memory import Semmem
from semmem.interfaces.cli.app import program
from semmem.interfaces.cli.asking import LOOKS, READS
from semmem.interfaces.cli.context import CommandLine
from semmem.interfaces.cli.terminal import Terminal
from semmem.model.errors import InvalidInput

__all__ = ["answered"]


class _Printed(io.TextIOWrapper):
    """What a command prints on one stream, as that of the process that asks would take it."""

    def __init__(self, encoding: str, is_terminal: bool) -> None:
        self.raw_bytes = io.BytesIO()
        super().__init__(self.raw_bytes, encoding=encoding, errors="backslashreplace", newline="\n")
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        """Return whether that stream is a terminal."""
        return self._is_terminal

    def taken(self) -> bytes:
        """Return all that was printed."""
        self.flush()
        return self.raw_bytes.getvalue()


@dataclass(slots=True, kw_only=True)
class _Answered(CommandLine):
    """The common options of a command of another process, the store that is open, and what is printed."""

    memory: Semmem
    asked: str
    """The URL by which the process that asks chose this one; empty without one."""
    printed: _Printed
    said: _Printed
    columns: int
    variables: Mapping[str, str]

    @contextmanager
    def connect(self, *, create: bool = False, **settings: Any) -> Iterator[Semmem]:
        """Give the store that is open. Raises InvalidInput where the command means another one."""
        if create or settings or (self.url or "") != self.asked:
            raise InvalidInput("The command is not about the store that is open.")
        yield self.memory

    @property
    def stdout(self) -> TextIO:
        """Return the stream of results."""
        return self.printed

    @property
    def out(self) -> Terminal:
        """Return the terminal of standard output."""
        return Terminal(file=self.printed, width=self.columns, _environ=self.variables)

    @property
    def err(self) -> Terminal:
        """Return the terminal of standard error."""
        return Terminal(file=self.said, width=self.columns, _environ=self.variables)


def answered(memory: Semmem, words: Sequence[str]) -> tuple[bytes, bytes] | None:
    """Return what a command prints on standard output and error.

    ``words`` are those of ``semmem.interfaces.cli.asking``. None for a command that fails, or has an option that does
    not exist: the process that asks then runs it itself, and tells why.
    """
    url, terminal, columns, encoding, *rest = words
    variables, arguments = rest[: len(LOOKS)], rest[len(LOOKS) :]
    if not arguments or arguments[0] not in READS:
        return None
    if memory.settings.audit:  # a command that fails here runs again where it was given, and would be noted twice
        return None
    printed, said = _Printed(encoding, bool(terminal)), _Printed(encoding, bool(terminal))
    cli = _Answered(
        memory=memory,
        asked=url,
        printed=printed,
        said=said,
        columns=int(columns),
        variables={name: value[1:] for name, value in zip(LOOKS, variables, strict=True) if value},
    )
    try:
        # without --help, which would be printed by this process
        code = _command(arguments[0]).main(arguments, standalone_mode=False, obj=cli, help_option_names=[])
    except (Exception, SystemExit):  # noqa: BLE001  # whatever it is, the process that asks meets it too
        return None
    return None if code else (printed.taken(), said.taken())


@cache
def _command(name: str) -> Any:
    return get_command(program(name))
