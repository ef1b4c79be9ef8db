"""The common options of commands, their store, their output, and how errors are shown."""

from __future__ import annotations

import inspect
import json
import os
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypeVar

import typer

from semmem.interfaces import wire
from semmem.model.errors import InvalidInput
from semmem.model.process.asker import asked_through
from semmem.model.serialization import plain
from semmem.text.control_characters import as_json

if TYPE_CHECKING:
    from rich.console import RenderableType

    from semmem.client.memory import Semmem
    from semmem.config import Settings
    from semmem.interfaces.cli.terminal import Terminal
    from semmem.model.types import MinConfidence

__all__ = [
    "CommandLine",
    "Debug",
    "Json",
    "Namespace",
    "Options",
    "RecipeName",
    "Url",
    "alone",
    "command",
    "least_confidence",
    "moment",
    "not_empty",
    "pairs",
]  # fmt: skip

Value = TypeVar("Value", bound=str | list[str] | None)


def not_empty(value: Value) -> Value:
    """Refuse an empty value of an option, such as an unset variable of the shell gives."""
    if value == "" or (isinstance(value, list) and "" in value):
        raise typer.BadParameter("it is empty; give it a value, or leave the option out.")
    return value


Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        callback=not_empty,
        help="Store: embedded:, embedded:///folder, postgresql://…, sqlite:FILE (default: yours).",
    ),
]

Namespace = Annotated[
    str | None, typer.Option("--namespace", "-n", callback=not_empty, help='The namespace (default: "default").')
]

OfProject = Annotated[
    str | None,
    typer.Option("--namespace", "-n", callback=not_empty, help="The namespace (default: that of the project)."),
]

RecipeName = Annotated[
    str | None, typer.Option("--recipe", callback=not_empty, help="The recipe, that is, the search settings.")
]

Json = Annotated[bool, typer.Option("--json", help="Print only JSON on standard output.")]

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

_COMMON: dict[str, tuple[Any, Any]] = {
    "url": (Url, None),
    "namespace": (Namespace, None),
    "of_project": (OfProject, None),
    "recipe": (RecipeName, None),
    "json": (Json, False),
    "debug": (Debug, False),
}


@dataclass(slots=True)
class CommandLine:
    """The common options of one call, and the two streams: results on standard output, everything else on error."""

    url: str | None = None
    namespace: str = "default"
    recipe: str | None = None
    json: bool = False
    debug: bool = False
    named: bool = False
    """Whether the namespace was given."""
    storing: bool = False
    """Whether the command may have stored memories."""

    @contextmanager
    def connect(self, *, create: bool = False, **settings: Any) -> Iterator[Semmem]:
        """Open the store for the length of the command; ``create`` makes a SQLite file where there is none."""
        import semmem

        self.storing = create
        if not create:
            self._check_file()
        with self._announcing(), semmem.connect(self.url, **settings) as memory:
            yield memory

    @contextmanager
    def _announcing(self) -> Iterator[None]:
        """Say on a terminal that a model is being loaded, since that takes seconds."""
        import logging

        if not sys.stderr.isatty():  # asked of the stream, because under --json nothing is drawn
            yield
            return
        log, handler = logging.getLogger("semmem.embedders"), logging.Handler()
        handler.emit = lambda record: self.say(record.getMessage())  # type: ignore[method-assign]  # all that it does
        before = log.level
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        try:
            yield
        finally:
            log.removeHandler(handler)
            log.setLevel(before)

    def settings(self) -> Settings:
        """Return the settings by which this call opens the store."""
        from semmem.config import Settings

        return Settings.load(**({} if self.url is None else {"url": self.url}))

    def _check_file(self) -> None:
        from semmem.stores import check_file, is_server, parse_url

        settings = self.settings()
        if not is_server(settings.url):
            check_file(parse_url(settings.url, home=settings.home))

    @property
    def stdout(self) -> TextIO:
        """Return the stream of results."""
        return sys.stdout

    @property
    def out(self) -> Terminal:
        """Return the terminal of standard output."""
        from semmem.interfaces.cli.terminal import terminal

        return terminal(False)

    @property
    def err(self) -> Terminal:
        """Return the terminal of standard error."""
        from semmem.interfaces.cli.terminal import terminal

        return terminal(True)

    def give(self, value: Any, show: Callable[[], None]) -> None:
        """Print ``value`` as JSON under ``--json``; otherwise let ``show`` print it for people."""
        if self.json:
            out = self.stdout
            indent = 2 if out.isatty() else None
            out.write(as_json(plain(value), indent=indent, encoding=out.encoding or "utf-8") + "\n")
            out.flush()  # what a full disk does not take is an error of the command
        else:
            show()

    def print_lines(self, lines: Iterable[RenderableType]) -> None:
        """Print lines of text as they are, wrapped to the width."""
        for line in lines:
            self.out.print(line)

    def say(self, sentence: str) -> None:
        """Print one line for people on standard error, so that piped results stay clean."""
        self.err.print(sentence, soft_wrap=True)

    def fail(self, kind: str, sentence: str) -> None:
        """Show an error on standard error; under ``--json`` also as JSON on standard output."""
        if self.json:
            with suppress(OSError):  # a full disk, which may be what is told
                self.give({"error": {"class": kind, "message": sentence}}, lambda: None)
        self.say(sentence)


@dataclass(frozen=True, slots=True)
class Options:
    """Several options in the place of one parameter of a command, which gets what ``read`` makes of their values.

    They stand in the annotation of that parameter. An option may be such a parameter too.
    """

    parameters: Sequence[inspect.Parameter]
    read: Callable[..., Any]

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Options:
        """Return the parameters of a function as options that it reads."""
        return cls(_parameters(function), function)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters of a function with their annotations as objects."""
    hints = typing.get_type_hints(function, include_extras=True)
    return [p.replace(annotation=hints[p.name]) for p in inspect.signature(function).parameters.values()]


def _options(parameter: inspect.Parameter) -> Options | None:
    return next((one for one in getattr(parameter.annotation, "__metadata__", ()) if isinstance(one, Options)), None)


def _single(parameters: Iterable[inspect.Parameter]) -> Iterator[inspect.Parameter]:
    """Yield parameters, and in the place of one that stands for several options each of these."""
    for one in parameters:
        several = _options(one)
        yield from [one] if several is None else _single(several.parameters)


def _read(parameters: Iterable[inspect.Parameter], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of parameters by name, given those of all single options."""
    return {
        one.name: values[one.name]
        if (several := _options(one)) is None
        else several.read(**_read(several.parameters, values))
        for one in parameters
    }


Command = TypeVar("Command", bound=Callable[..., None])


def command(app: typer.Typer, name: str, *common: str, panel: str | None = None) -> Callable[[Command], Command]:
    """Register a function as the command ``name``; its first argument is the CommandLine.

    ``common`` names the common options that make sense for it, besides ``json`` and ``debug``, which every command
    has. An option given to the command wins over the same option given before its name. ``panel`` is its heading in the
    help.
    """

    def register(function: Command) -> Command:
        app.command(name, help=_paragraphs(function), rich_help_panel=panel)(_opened(function, common))
        return function

    return register


def alone(app: typer.Typer, *common: str) -> Callable[[Command], Command]:
    """Register a function as a group's own command, used when no command of the group follows; else as ``command``."""

    def register(function: Command) -> Command:
        app.callback(invoke_without_command=True, help=_paragraphs(function))(_opened(function, common))
        return function

    return register


def _paragraphs(function: Callable[..., None]) -> str:
    """Return a docstring as help: each paragraph one line, which the terminal breaks where it is narrow."""
    return "\n\n".join(" ".join(part.split()) for part in (inspect.getdoc(function) or "").split("\n\n"))


def _opened(function: Callable[..., None], common: tuple[str, ...]) -> Callable[..., None]:
    """Return ``function`` for typer: with the common options among its own, and with errors shown."""
    own = _parameters(function)[1:]
    shared = [*common, "json", "debug"]

    def run(ctx: typer.Context, **arguments: Any) -> None:
        before: CommandLine = ctx.obj or CommandLine()
        mine = {key: arguments.pop(key) for key in shared}
        namespace = mine.get("namespace") or mine.get("of_project")
        cli = replace(
            before,
            url=mine.get("url") or before.url,
            namespace=namespace or before.namespace,
            recipe=mine.get("recipe") or before.recipe,
            json=mine["json"] or before.json,
            debug=mine["debug"] or before.debug,
            named=bool(namespace) or before.named,
        )
        if ctx.invoked_subcommand is not None:
            ctx.obj = cli
            return
        with reporting_errors(cli), asked_through("cli"):
            function(cli, **_read(own, arguments))

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)]
    parameters += [p.replace(kind=keyword) for p in _single(own)]
    for key in shared:
        annotation, default = _COMMON[key]
        parameters.append(inspect.Parameter(key, keyword, annotation=annotation, default=default))
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


@contextmanager
def reporting_errors(cli: CommandLine) -> Iterator[None]:
    """Turn an error into one sentence on standard error and an exit code; under ``--debug`` into a traceback."""
    try:
        yield
    except typer.Exit:
        raise
    except SystemExit as end:  # how rich tells that the reader of our output has gone: nothing more to say
        raise typer.Exit(0 if end.code == 1 else 1) from end
    except KeyboardInterrupt as error:
        note = " Every memory that was acknowledged is stored, and none is stored in part."
        cli.say(f"Stopped.{note if cli.storing else ''}")
        raise typer.Exit(wire.EXIT_INTERRUPTED) from error
    except BrokenPipeError as error:  # the same, from a plain write
        os.dup2(os.open(os.devnull, os.O_WRONLY), cli.stdout.fileno())
        raise typer.Exit(0) from error
    except Exception as error:
        if cli.debug:
            import traceback

            cli.say(traceback.format_exc().rstrip())
        cli.fail(type(error).__name__, _sentence(error))
        wrong_place = isinstance(error, _WRONG_PLACE) and error.filename
        raise typer.Exit(_EXIT_INPUT if wrong_place else wire.answer(error).exit_code) from error


_WRONG_PLACE = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)

_EXIT_INPUT = wire.ERRORS[InvalidInput].exit_code


def _sentence(error: Exception) -> str:
    text = wire.sentence(error)
    return text if wire.is_foreseen(error) else f"{text} (--debug shows where)."


Reveal = Annotated[bool, typer.Option("--reveal", help="Show the texts of sensitive memories.")]


def moment(text: str | None, option: str) -> datetime | None:
    """Return an ISO 8601 time; one without a zone is taken as UTC."""
    from semmem.model.serialization import instant

    if text is None:
        return None
    try:
        return instant(text)
    except ValueError as error:
        raise InvalidInput(f"{option} must be a time in ISO 8601, such as 2026-03-01T09:00, not {text!r}.") from error


def least_confidence(text: str) -> MinConfidence:
    """Return the number in ``text``, or "auto"."""
    if text == "auto":
        return "auto"
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"--min-confidence must be a number from 0 to 1, or auto, not {text!r}.") from None


def pairs(text: str | None) -> dict[str, Any] | None:
    """Return the JSON object in ``text``."""
    if text is None:
        return None
    try:
        value = json.loads(text)
    except RecursionError:
        raise InvalidInput("--metadata is nested too deeply to be read; flatten it.") from None
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise InvalidInput(f"--metadata must be a JSON object, such as '{{\"ticket\": 7}}', not {text!r}.")
    return value
