"""The program: global options, and every command by name."""

from __future__ import annotations

import io
import re
import sys
import warnings
from typing import Annotated, Any

import typer

from semmem.doors.cli import demo, doctor, graph, import_export, reach, read, settings, store, write
from semmem.doors.cli.context import Debug, Door, Json, Namespace, RecipeName, Url
from semmem.doors.coding_agents import command as coding_agents
from semmem.doors.http import command as serve
from semmem.doors.mcp import command as mcp
from semmem.doors.model import command as model
from semmem.doors.wire import EXIT_INTERRUPTED

__all__ = ["app", "run"]

app = typer.Typer(
    name="semmem",
    help="Memory for AI agents on PostgreSQL: remember, recall, and see why.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from semmem import __version__

        sys.stdout.write(f"semmem {__version__}\n")
        raise typer.Exit


@app.callback()
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


for register in (
    *(demo.register, write.register, import_export.register, import_export.register_export, read.register),
    *(store.register_rebuild, store.register, graph.register, reach.register, reach.register_probe, doctor.register),
    *(mcp.register, coding_agents.register, serve.register),
):
    register(app)
app.add_typer(graph.names, name="concepts")
app.add_typer(settings.names, name="settings")
app.add_typer(store.app, name="server")
app.add_typer(model.names, name="model")


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
    given = sys.argv[1:] if args is None else args
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # the help is typer's own: what the stream lacks is escaped there
            stream.reconfigure(errors="backslashreplace")
    with warnings.catch_warnings():
        warnings.showwarning = _warn
        try:
            code = app(given, prog_name="semmem", standalone_mode=False)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except typer.Abort:  # Ctrl-C, or the end of the input, at a question
            code = EXIT_INTERRUPTED
        except _UsageError as error:
            code = error.exit_code
            if type(error).__name__ != "NoArgsIsHelpError":  # then the help was shown
                _tell_usage(error, json="--json" in given)
    return code if isinstance(code, int) else 0


def _tell_usage(error: Any, *, json: bool) -> None:
    where = getattr(error, "ctx", None)
    path = where.command_path if where is not None else "semmem"
    message = _PHRASES.sub("", error.format_message().strip())
    for phrase, ours in _IN_OUR_WORDS.items():
        message = phrase.sub(ours, message)
    end = "" if message.endswith((".", "?")) else "."
    if re.match(r"No such option: -[\d.]", message):
        end += " A negative number stands behind two dashes: -- -1."
    Door(json=json).fail("InvalidInput", f"{message}{end} See: {path} --help")


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    Door().say(f"Warning: {message}")
