"""The command `completion`: the script by which a shell completes commands and options."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Literal

import typer

from semmem.interfaces.cli.context import CommandLine

__all__ = ["answer_shell", "completion"]

VARIABLE = "_SEMMEM_COMPLETE"
"""The variable of the environment by which a shell asks the program for completions; no setting."""


Shell = Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="The shell.", show_default=False)]


def completion(cli: CommandLine, shell: Shell) -> None:
    """Print a script that completes commands and options: eval "$(semmem completion bash)"."""
    from typer._completion_shared import get_completion_script

    script = get_completion_script(prog_name="semmem", complete_var=VARIABLE, shell=shell)

    def show() -> None:
        sys.stdout.write(f"{script}\n")

    cli.give({"shell": shell, "script": script}, show)


def answer_shell() -> None:
    """Let the program answer the question of a shell, where one asks, instead of running a command."""
    if VARIABLE not in os.environ:
        return
    from typer._completion_classes import completion_init

    completion_init()
