"""Finding a command: completion in a real shell, `semmem help X`, and hints for the names of other systems."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import semmem
from semmem.interfaces.cli.app import COMMANDS, GROUPS
from semmem.model.other_names import OTHER_NAMES
from tests.interfaces.cli.program import Call, in_process

VERBS = {*COMMANDS, *GROUPS}

BASH = """
eval "$(semmem completion bash)"
COMP_WORDS=({words}); COMP_CWORD={last}
"$(complete -p semmem | sed -E 's/.*-F ([^ ]+).*/\\1/')" semmem
printf '%s\\n' "${{COMPREPLY[@]}}"
"""

FISH = 'semmem completion fish | source; complete -C "{line}"'

ZSHRC = """
PROMPT='ready> '
autoload -Uz compinit && compinit -u -D
eval "$(semmem completion zsh)"
finish() { print -r -- "$BUFFER" > typed; exit }
zle -N finish
bindkey '^X' finish
"""


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    """Run the program in this process; return code, output and errors."""
    return in_process(capfd)


def called_semmem(folder: Path) -> str:
    """Put this program under its name into a folder, and return a PATH with it."""
    program = folder / "semmem"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m semmem "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def typed_in_zsh(line: str, folder: Path) -> str:
    """Return what stands on the line of a real zsh, in a terminal, after ``line`` and the key Tab."""
    (folder / ".zshrc").write_text(ZSHRC, encoding="utf-8")
    ours, its = pty.openpty()
    keys = os.fdopen(ours, "r+b", buffering=0)
    with keys, subprocess.Popen(
        ["zsh", "-i"], stdin=its, stdout=its, stderr=its, cwd=folder, start_new_session=True,
        env={"PATH": called_semmem(folder), "HOME": str(folder), "ZDOTDIR": str(folder), "TERM": "dumb"},
    ) as shell:  # fmt: skip
        os.close(its)
        seen = b""
        while b"ready> " not in seen:
            assert select.select([keys], [], [], 60)[0], seen
            seen += keys.read(4096)
        keys.write(f"{line}\t\x18".encode())
        assert shell.wait(60) == 0
    return (folder / "typed").read_text(encoding="utf-8").strip()


def in_shell(shell: str, script: str, folder: Path) -> list[str]:
    """Return the lines that a real shell prints, in which `semmem` is this program."""
    quiet = {"bash": ["--noprofile", "--norc"], "fish": ["--no-config"]}[shell]
    found = subprocess.run(
        [shutil.which(shell) or shell, *quiet, "-c", script],
        env={"PATH": called_semmem(folder), "HOME": str(folder), "TERM": "dumb"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (found.returncode, found.stderr) == (0, "")
    return found.stdout.splitlines()


@pytest.mark.slow
def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    assert in_shell("bash", BASH.format(words="semmem reme", last=1), tmp_path) == ["remember"]
    assert in_shell("bash", BASH.format(words="semmem server st", last=2), tmp_path) == ["status", "stop"]
    assert "--namespace" in in_shell("bash", BASH.format(words="semmem recall --na", last=2), tmp_path)
    assert in_shell("bash", BASH.format(words="semmem import chatg", last=2), tmp_path) == ["chatgpt"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_commands(tmp_path: Path) -> None:
    lines = in_shell("fish", FISH.format(line="semmem reme"), tmp_path)
    assert [line.split("\t")[0] for line in lines] == ["remember"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_completes_commands_and_arguments(tmp_path: Path) -> None:
    assert typed_in_zsh("semmem reme", tmp_path) == "semmem remember"
    assert typed_in_zsh("semmem import chatg", tmp_path) == "semmem import chatgpt"


@pytest.mark.parametrize(("shell", "mark"), [("bash", "complete -o"), ("zsh", "compdef"), ("fish", "complete --comm")])
def test_each_shell_gets_a_script_of_its_own(call: Call, shell: str, mark: str) -> None:
    code, out, err = call("completion", shell)
    assert (code, mark in out, "semmem" in out, err) == (0, True, True, "")


def test_an_unknown_shell_is_refused_with_those_that_can_be_helped(call: Call) -> None:
    code, out, err = call("completion", "tcsh")
    assert (code, out) == (2, "")
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in " ".join(err.split())


def test_help_shows_the_help_of_a_command_and_of_a_command_in_a_group(call: Call) -> None:
    assert call("help", "forget") == call("forget", "--help")
    assert call("help", "server", "stop") == call("server", "stop", "--help")
    assert call("help") == call("--help")
    assert "the command is recall" in call("help", "search")[2]


@pytest.mark.parametrize("other", sorted(OTHER_NAMES))
def test_the_name_that_another_system_gives_a_verb_is_answered_with_ours(call: Call, other: str) -> None:
    verb = OTHER_NAMES[other]
    assert verb in VERBS
    code, out, err = call(other, "Where is the key?")
    assert (code, out) == (2, "")
    assert " ".join(err.split()) == f"No such command '{other}'; the command is {verb}. See: semmem {verb} --help"


@pytest.mark.parametrize(
    ("mistyped", "said"),
    [
        ("remembr x", "No such command 'remembr'. Did you mean 'remember'? See: semmem --help"),
        ("recal x", "No such command 'recal'. Did you mean 'recall'? See: semmem --help"),
        ("serach x", "No such command 'serach'. Did you mean 'recall'? See: semmem --help"),  # search, mistyped
        ("keys ad x", "No such command 'ad'. Did you mean 'add'? See: semmem keys --help"),
        ("keys delete x", "No such command 'delete'. See: semmem keys --help"),  # forget is none of its commands
        ("frobnicate", "No such command 'frobnicate'. See: semmem --help"),
    ],
)
def test_a_mistyped_command_is_answered_with_the_nearest(call: Call, mistyped: str, said: str) -> None:
    code, out, err = call(*mistyped.split())
    assert (code, out, " ".join(err.split())) == (2, "", said)


def test_python_answers_another_systems_name_with_the_verb(store_url: str) -> None:
    others = sorted(OTHER_NAMES.keys() - {"store"})  # a memory has its store
    with semmem.connect(store_url, embedder="none") as mem:
        for other in others:
            with pytest.raises(AttributeError, match=f"no attribute '{other}'; the verb is {OTHER_NAMES[other]}"):
                getattr(mem, other)
        assert not hasattr(mem, "frobnicate")


def test_the_asynchronous_interface_answers_the_same(store_url: str) -> None:
    async def asked() -> None:
        async with semmem.aconnect(store_url, embedder="none") as mem:
            with pytest.raises(AttributeError, match="no attribute 'search'; the verb is recall"):
                getattr(mem, "search")  # noqa: B009  # a name that the type does not have

    asyncio.run(asked())


@pytest.mark.parametrize(
    ("command", "default"), [("hook", "that of the project"), ("mcp", "that of the project"), ("remember", '"default"')]
)
def test_help_names_the_namespace_that_a_command_takes_by_itself(call: Call, command: str, default: str) -> None:
    words = " ".join(call(command, "--help")[1].replace("│", " ").split())
    assert f"The namespace (default: {default})." in words
