"""The program: global options, and every command by name."""

from __future__ import annotations

import io
import re
import sys
import warnings
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from semmem.doors.cli.commands import completion
from semmem.doors.cli.context import Debug, Door, Json, Namespace, RecipeName, Url
from semmem.doors.wire import EXIT_INTERRUPTED
from semmem.model.other_names import OTHER_NAMES

if TYPE_CHECKING:
    app: typer.Typer
    """The whole program; made when it is first asked for."""

__all__ = ["COMMANDS", "GROUPS", "app", "program", "run"]

COMMANDS = {
    "cli.demo:register": ("demo",),
    "cli.commands.write:register": ("remember", "update", "forget", "maintain"),
    "cli.commands.read:register": ("recall", "explain", "get", "list", "stats"),
    "cli.commands.use:register": ("context", "feedback", "judgements"),
    "cli.commands.life:register": ("history", "forgotten", "restore-memory"),
    "cli.commands.links:register": ("link", "unlink", "links", "contradictions", "near-duplicates"),
    "cli.commands.import_export:register": ("import",),
    "cli.commands.sync:register": ("sync",),
    "cli.commands.import_export:register_export": ("export",),
    "cli.commands.namespaces:register": ("changes",),
    "cli.commands.store:register_rebuild": ("rebuild",),
    "cli.commands.store:register": ("copy", "backup", "restore"),
    "cli.commands.graph:register": ("graph",),
    "cli.commands.reach:register": ("reach",),
    "cli.commands.reach:register_probe": ("probe",),
    "explorer.command:register": ("explore",),
    "cli.commands.doctor:register": ("doctor",),
    "cli.commands.completion:register": ("completion",),
    "mcp.command:register": ("mcp",),
    "coding_agents.command:register": ("install", "uninstall", "hook"),
}
"""What adds commands to a program (module of ``semmem.doors``: function), and their names, in the order of the help."""

_PANELS = {
    "Start": ("demo", "explore", "doctor", "completion"),
    "Memories": (
        "remember", "recall", "context", "explain", "get", "list", "update", "forget", "forgotten", "restore-memory",
        "history", "link", "unlink", "links", "contradictions", "near-duplicates", "feedback", "judgements", "log",
    ),
    "Agents and servers": ("install", "uninstall", "hook", "mcp", "serve", "keys"),
    "Import and export": ("import", "sync", "export", "changes"),
    "The store": (
        "settings", "namespaces", "stats", "maintain", "backup", "restore", "copy", "rebuild", "server", "model",
    ),
    "The graph, and proofs": ("graph", "concepts", "reach", "probe"),
}  # fmt: skip
"""The headings of the help, and the names below each."""

GROUPS = {
    "namespaces": "cli.commands.namespaces:names",
    "serve": "http.command:serving",
    "keys": "http.command:in_store",
    "concepts": "cli.commands.graph:names",
    "settings": "cli.commands.settings:names",
    "server": "cli.commands.store:app",
    "log": "cli.commands.log:names",
    "model": "model.command:names",
}
"""The names of groups of commands, and where each group is."""

_WITH_VALUE = ("--url", "--namespace", "-n", "--recipe")
"""Options before a command that take the next word."""


def _version(value: bool) -> None:
    if value:
        from semmem import __version__

        sys.stdout.write(f"semmem {__version__}\n")
        raise typer.Exit


def options(
    ctx: typer.Context,
    url: Url = None,
    namespace: Namespace = None,
    recipe: RecipeName = None,
    json: Json = False,
    debug: Debug = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options that may stand before any command."""
    ctx.obj = Door(url, namespace or "default", recipe, json=json, debug=debug, named=namespace is not None)


def program(command: str | None = None) -> typer.Typer:
    """Return the program: every command, or, with the name of one, that one and what is added with it.

    Only the modules of these are loaded. A name that no command has is as none.
    """
    app = typer.Typer(
        name="semmem",
        help="Memory for AI agents, on PostgreSQL or in one file: remember, recall, and see why.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(options)
    is_command = command in GROUPS or any(command in names for names in COMMANDS.values())
    for place, names in COMMANDS.items():
        if not is_command or command in names:
            _at(place)(app)
    for name, place in GROUPS.items():
        if not is_command or command == name:
            app.add_typer(_at(place), name=name)
    heading = {name: panel for panel, names in _PANELS.items() for name in names}
    for one in app.registered_commands:
        one.rich_help_panel = heading[one.name or ""]
    for group in app.registered_groups:
        group.rich_help_panel = heading[group.name or ""]
    return app


def _at(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"semmem.doors.{module}"), name)


@cache
def _whole() -> typer.Typer:
    return program()


def __getattr__(name: str) -> Any:
    if name == "app":
        return _whole()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _named(args: Iterable[str]) -> str | None:
    """Return the word that stands where the name of a command does, None where there is none."""
    words = iter(args)
    for word in words:
        if word in _WITH_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return None


_UsageError: type[Any] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
"""The parent of typer's errors about options and arguments, which has no public name."""


_PHRASES = re.compile(r"(?<=: )Value error, |, unable to parse string as an? \w+| \(env var: 'None'\)")
_NOT_WHOLE = re.compile(r"Input should be a valid integer|(?<=: )'.*' is not a valid integer")
_NO_NUMBER = re.compile(r"Input should be a valid number|(?<=: )'.*' is not a valid float")
_IN_OUR_WORDS = {_NOT_WHOLE: "it must be a whole number", _NO_NUMBER: "it must be a number"}
"""How the libraries that read the options say what is wrong, in their older and newer versions, and how we do."""


def run(args: list[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Whatever is said, of wrong options and warnings too, goes through the terminal, where no text can act.
    """
    argv = sys.argv[1:] if args is None else args
    if argv[:1] == ["help"]:
        argv = [*argv[1:], "--help"]
    completion.answer_shell()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # the help is typer's own: what the stream lacks is escaped there
            stream.reconfigure(errors="backslashreplace")
    with warnings.catch_warnings():
        warnings.showwarning = _warn
        try:
            code = program(_named(argv))(argv, prog_name="semmem", standalone_mode=False)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except typer.Abort:  # Ctrl-C, or the end of the input, at a question
            code = EXIT_INTERRUPTED
        except _UsageError as error:
            code = error.exit_code
            if type(error).__name__ != "NoArgsIsHelpError":  # then the help was shown
                _tell_usage(error, json="--json" in argv)
    return code if isinstance(code, int) else 0


def _tell_usage(error: Any, *, json: bool) -> None:
    where = getattr(error, "ctx", None)
    path = where.command_path if where is not None else "semmem"
    message = _PHRASES.sub("", error.format_message().strip())
    if (word := re.match(r"No such command '([\w-]+)'", message)) and (verb := OTHER_NAMES.get(word[1])):
        path = f"{path} {verb}"
        message = f"No such command '{word[1]}'; the command is {verb}"
    for phrase, ours in _IN_OUR_WORDS.items():
        message = phrase.sub(ours, message)
    end = "" if message.endswith((".", "?")) else "."
    if re.match(r"No such option: -[\d.]", message):
        end += " A negative number stands behind two dashes: -- -1."
    Door(json=json).fail("InvalidInput", f"{message}{end} See: {path} --help")


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    Door().say(f"Warning: {message}")
