"""The program: global options, and every command by name."""

from __future__ import annotations

import io
import re
import sys
import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from semmem.interfaces.cli.commands import completion
from semmem.interfaces.cli.context import CommandLine, Debug, Json, Namespace, RecipeName, Url
from semmem.interfaces.cli.context import command as register
from semmem.interfaces.wire import EXIT_INTERRUPTED
from semmem.model.other_names import FORMER_NAMES, OTHER_NAMES, renamed

if TYPE_CHECKING:
    app: typer.Typer
    """The whole program; made when it is first asked for."""

__all__ = ["COMMANDS", "GROUPS", "app", "program", "run"]

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "demo": ("Start", "cli.demo:demo", "url"),
    "remember": ("Memories", "cli.commands.write:remember", "url", "namespace"),
    "update": ("Memories", "cli.commands.write:update", "url", "namespace"),
    "forget": ("Memories", "cli.commands.write:forget", "url", "namespace"),
    "maintain": ("The store", "cli.commands.write:maintain", "url"),
    "recall": ("Memories", "cli.commands.read:recall", "url", "recipe"),
    "explain": ("Memories", "cli.commands.read:explain", "url", "namespace", "recipe"),
    "get": ("Memories", "cli.commands.read:get", "url", "namespace"),
    "list": ("Memories", "cli.commands.read:list_", "url", "namespace"),
    "stats": ("The store", "cli.commands.read:stats", "url"),
    "context": ("Memories", "cli.commands.use:context", "url", "recipe"),
    "feedback": ("Memories", "cli.commands.use:feedback", "url"),
    "judgments": ("Memories", "cli.commands.use:judgments", "url", "namespace"),
    "history": ("Memories", "cli.commands.history:history", "url", "namespace"),
    "forgotten": ("Memories", "cli.commands.history:forgotten", "url", "namespace"),
    "restore-memory": ("Memories", "cli.commands.history:restore_memory", "url", "namespace"),
    "link": ("Memories", "cli.commands.links:link", "url", "namespace"),
    "unlink": ("Memories", "cli.commands.links:unlink", "url", "namespace"),
    "links": ("Memories", "cli.commands.links:links", "url", "namespace"),
    "contradictions": ("Memories", "cli.commands.links:contradictions", "url", "namespace"),
    "near-duplicates": ("Memories", "cli.commands.links:near_duplicates", "url", "namespace"),
    "import": ("Import and export", "cli.commands.import_export:import_", "url", "namespace"),
    "sync": ("Import and export", "cli.commands.sync:sync", "url", "namespace"),
    "export": ("Import and export", "cli.commands.import_export:export", "url"),
    "changes": ("Import and export", "cli.commands.namespaces:changes", "url"),
    "rebuild": ("The store", "cli.commands.whole_store:rebuild", "url"),
    "migrate": ("The store", "cli.commands.whole_store:migrate", "url"),
    "distribute": ("The store", "cli.commands.whole_store:distribute", "url"),
    "row-security": ("The store", "cli.commands.whole_store:row_security", "url"),
    "copy": ("The store", "cli.commands.whole_store:copy"),
    "backup": ("The store", "cli.commands.whole_store:backup", "url"),
    "restore": ("The store", "cli.commands.whole_store:restore", "url"),
    "graph": ("The graph, and proofs", "cli.commands.graph:graph", "url", "namespace"),
    "reach": ("The graph, and proofs", "cli.commands.reach:reach", "url", "namespace", "recipe"),
    "probe": ("The graph, and proofs", "cli.commands.reach:probe", "url", "recipe"),
    "explore": ("Start", "explorer.command:explore", "url", "namespace", "recipe"),
    "doctor": ("Start", "cli.commands.doctor:doctor", "url"),
    "completion": ("Start", "cli.commands.completion:completion"),
    "mcp": ("Agents and servers", "mcp.command:mcp", "url", "of_project", "recipe"),
    "install": ("Agents and servers", "coding_agents.command:install", "url", "of_project"),
    "uninstall": ("Agents and servers", "coding_agents.command:uninstall"),
    "hook": ("Agents and servers", "coding_agents.command:hook", "url", "of_project"),
}
"""The commands by name, in the order of the help.

Each has its heading there, its function (module of ``semmem.interfaces``: name), and the common options that it takes.
"""

GROUPS: Mapping[str, tuple[str, str]] = {
    "namespaces": ("The store", "cli.commands.namespaces:names"),
    "serve": ("Agents and servers", "http.command:serving"),
    "keys": ("Agents and servers", "http.command:in_store"),
    "concepts": ("The graph, and proofs", "cli.commands.graph:names"),
    "settings": ("The store", "cli.commands.settings:names"),
    "server": ("The store", "cli.commands.whole_store:app"),
    "log": ("Memories", "cli.commands.log:names"),
    "audit": ("The store", "cli.commands.audit:names"),
    "model": ("The store", "model.command:names"),
}
"""The groups of commands by name, each with its heading and where it is."""

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
    ctx.obj = replace(
        ctx.obj or CommandLine(),
        url=url,
        namespace=namespace or "default",
        recipe=recipe,
        json=json,
        debug=debug,
        named=namespace is not None,
    )


def program(command: str | None = None) -> typer.Typer:
    """Return the program: every command, or, with the name of one, that one alone, so that no other module is loaded.

    A name that no command has is as none.
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
    is_command = command in COMMANDS or command in GROUPS
    for name, (panel, place, *common) in COMMANDS.items():
        if not is_command or name == command:
            register(app, name, *common, panel=panel)(_at(place))
    for name, (panel, place) in GROUPS.items():
        if not is_command or name == command:
            app.add_typer(_at(place), name=name, rich_help_panel=panel)
    return app


def _at(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"semmem.interfaces.{module}"), name)


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


def _by_present_names(args: list[str]) -> list[str]:
    """Return the arguments with the present name of a command that is called by its former one; say so."""
    word = _named(args)
    if word is None or word not in FORMER_NAMES:
        return args
    _warn(renamed(word, FORMER_NAMES[word]))
    index = args.index(word)
    return [*args[:index], FORMER_NAMES[word], *args[index + 1 :]]


def _with_addresses(args: list[str]) -> list[str]:
    """Return the arguments with ``--ray=local`` for a ``--ray`` behind which no address stands; typer has no such."""
    if _named(args) != "import":
        return args
    behind = [*args[1:], ""]
    return [f"{word}=local" if word == "--ray" and not _is_address(behind[i]) else word for i, word in enumerate(args)]


def _is_address(word: str) -> bool:
    return word in ("auto", "local") or (word.rpartition(":")[2].isdecimal() and ":" in word)


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
    argv = _by_present_names(sys.argv[1:] if args is None else args)
    if argv[:1] == ["help"]:
        argv = [*argv[1:], "--help"]
    argv = _with_addresses(argv)
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
    if where is not None and (word := re.match(r"No such command '([\w-]+)'", message)):
        message, path = _no_such_command(word[1], where.command.list_commands(where), path)
    for phrase, ours in _IN_OUR_WORDS.items():
        message = phrase.sub(ours, message)
    end = "" if message.endswith((".", "?")) else "."
    if re.match(r"No such option: -[\d.]", message):
        end += " A negative number stands behind two dashes: -- -1."
    CommandLine(json=json).fail("InvalidInput", f"{message}{end} See: {path} --help")


def _no_such_command(word: str, commands: Collection[str], path: str) -> tuple[str, str]:
    """Return a sentence about a word that is none of the ``commands`` behind ``path``, and whose help says more.

    The sentence names the command that other systems call so, else the nearest.
    """
    sentence = f"No such command '{word}'"
    others = {other: verb for other, verb in OTHER_NAMES.items() if verb in commands}
    if verb := others.get(word):
        return f"{sentence}; the command is {verb}", f"{path} {verb}"
    for near in get_close_matches(word, [*commands, *others], n=1):
        return f"{sentence}. Did you mean '{others.get(near, near)}'?", path
    return sentence, path


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    CommandLine().say(f"Warning: {message}")
