"""No text acts on a terminal: every command with hostile text in every field, in every encoding, as JSON too."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import semmem
from semmem.interfaces.cli import show
from semmem.interfaces.cli.app import app, run
from semmem.interfaces.cli.terminal import Shown, Terminal, terminal
from semmem.text.control_characters import as_json, encodable, visible

HOSTILE = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b31m\x7f\x08\u202eevil\u2066 [red]x[/] :smile: é"
"""Writes the clipboard, clears the screen, changes the colour, turns the line round; and rich's own markup."""
NAME = HOSTILE.replace("/", "")
FORBIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ud800-\udfff]")
OURS = re.compile(r"\x1b\[[0-9;]*m")
"""A change of colour, as rich writes it."""

Call = Callable[..., tuple[int, str]]


@pytest.fixture
def call(capfdbinary: pytest.CaptureFixture[bytes], store_url: str, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run the program in this process and return its code and both its streams, which hold no active character."""
    monkeypatch.setenv("SEMMEM_URL", store_url)
    monkeypatch.setenv("SEMMEM_EMBEDDER", "hashing")
    monkeypatch.setenv("SEMMEM_RECALL_LOG", "true")
    monkeypatch.setenv("SEMMEM_AGENT", HOSTILE)
    terminal.cache_clear()
    capfdbinary.readouterr()

    def program(*args: str) -> tuple[int, str]:
        code = run(list(args))
        streams = capfdbinary.readouterr()
        said = (streams.out + streams.err).decode("utf-8")  # strictly: half a surrogate pair is no UTF-8
        plain = OURS.sub("", said) if "FORCE_COLOR" in os.environ else said
        assert not FORBIDDEN.findall(plain), (args, plain)
        return code, plain

    return program


@pytest.fixture
def filled(call: Call) -> Call:
    """The program on a store with a memory that is hostile in every field."""
    fields = ["--title", HOSTILE, "--author", HOSTILE, "--session", HOSTILE, "--source", HOSTILE, "--tag", HOSTILE]
    fields += ["--metadata", json.dumps({HOSTILE: HOSTILE}), "--id", HOSTILE, "-n", HOSTILE]
    assert call("remember", f"The key of Heron House. {HOSTILE}", *fields)[0] == 0
    assert call("remember", "Heron House has a key, says Petra Lindqvist.", "--id", "b", "-n", HOSTILE)[0] == 0
    return call


def commands(folder: Path) -> list[tuple[int, list[str]]]:
    """Return every command that reads or writes the hostile memory, with its exit code."""
    there, chat, bad = ["-n", HOSTILE], folder / f"{NAME}.jsonl", folder / f"bad {NAME}.jsonl"
    chat.write_text(json.dumps({"role": HOSTILE, "content": HOSTILE}) + f"\n{HOSTILE}\n", encoding="utf-8")
    bad.write_text(f'{{"id": {json.dumps(HOSTILE)}}}\n{HOSTILE}\n', encoding="utf-8")
    vault, table = folder / f"vault {NAME}", folder / f"{NAME}.csv"
    vault.mkdir(exist_ok=True)
    (vault / f"{NAME}.md").write_text(f"---\n{NAME}\n---\n# {HOSTILE}\n#{HOSTILE}", encoding="utf-8")
    table.write_text(f"text,{NAME}\nThe door {NAME},{NAME}\n", encoding="utf-8")
    return [
        (0, ["namespaces"]),
        (2, ["model", "remove", HOSTILE]),
        (0, ["update", HOSTILE, f"The key of Heron House. {HOSTILE}!", *there]),
        (5, ["update", HOSTILE, f"The key. {HOSTILE}", "--expected-version", "1", *there]),
        (0, ["import", "csv", str(table), *there, "--column", f"title={NAME}"]),
        (2, ["import", "csv", str(table), *there, "--column", f"title={HOSTILE}x"]),
        (0, ["import", "markdown", str(vault), *there]),
        (0, ["sync", str(vault), *there]),
        (2, ["copy", f"sqlite:{folder / NAME}.db", f"sqlite:{folder / NAME}.db"]),
        (0, ["server", "status", "--url", f"embedded:{folder / NAME}"]),
        (0, ["server", "stop", "--url", f"embedded:{folder / NAME}"]),
        (2, ["demo", "--data", str(folder / NAME)]),
        (2, ["demo", "--ask", HOSTILE]),
        (0, ["recall", "key of Heron House", *there, "--full"]),
        (0, ["recall", "key of Heron House", *there]),
        (0, ["recall", HOSTILE, *there]),
        (0, ["recall", "key of Heron House", *there, "--token-budget", "1"]),
        (0, ["context", "key of Heron House", *there]),
        (0, ["context", HOSTILE, *there, "--budget", "70"]),
        (4, ["feedback", HOSTILE, *there, "--useful", HOSTILE, "--made-by", HOSTILE]),
        (0, ["judgments", *there]),
        (0, ["log", *there]),
        (0, ["log", *there, "--agent", HOSTILE, "--limit", "1"]),
        (2, ["log", *there, "--asked-after", HOSTILE]),
        (4, ["log", "show", HOSTILE, *there]),
        (4, ["log", "replay", HOSTILE, *there]),
        (0, ["explain", HOSTILE, "--query", "Heron House", *there]),
        (0, ["get", HOSTILE, *there]),
        (0, ["list", *there]),
        (0, ["list", *there, "--author", HOSTILE, "--session", HOSTILE, "--tag", HOSTILE]),
        (0, ["history", HOSTILE, "--diff", *there]),
        (0, ["link", HOSTILE, "see-also", "b", *there, "--made-by", HOSTILE]),
        (2, ["link", HOSTILE, HOSTILE, "b", *there]),
        (0, ["links", HOSTILE, *there]),
        (0, ["unlink", HOSTILE, "see-also", "b", *there]),
        (0, ["stats", "--verify"]),
        (0, ["migrate", "--dry-run"]),
        (8, ["distribute", "--dry-run"]),
        (0, ["row-security"]),
        (0, ["graph", *there]),
        (0, ["graph", *there, "--around", HOSTILE, "--out", str(folder / f"{NAME}.json")]),
        (0, ["contradictions", *there]),
        (0, ["near-duplicates", *there]),
        (0, ["forgotten", *there]),
        (2, ["explore", "--port", "-1", "--no-open", *there]),
        (0, ["concepts", *there]),
        (0, ["concepts", "merge", HOSTILE, "Heron House", *there]),
        (0, ["concepts", "split", HOSTILE, *there]),
        (0, ["settings", "set", "weights.graph", "0.5", *there]),
        (0, ["settings", *there]),
        (2, ["settings", "set", HOSTILE, HOSTILE, *there]),
        (0, ["settings", "unset", "--all", *there]),
        (0, ["export", str(folder / NAME), *there]),
        (0, ["export", "-", *there]),
        (0, ["import", "chat", str(chat), *there]),
        (2, ["import", "chat", str(chat), *there, "--on-error", "abort"]),
        (2, ["import", "csv", f"{folder}/{HOSTILE}", *there]),
        (2, ["sync", f"{folder}/{HOSTILE}", *there]),
        (2, ["remember", str(bad), *there]),
        (2, ["remember", str(bad), *there, "--on-error", "skip"]),
        (5, ["remember", HOSTILE, "--id", HOSTILE, *there]),
        (2, ["remember", "x", "--metadata", HOSTILE]),
        (2, ["remember", "x", "--created-at", HOSTILE]),
        (0, ["backup", str(folder / f"{NAME}.semmem")]),
        (2, ["restore", str(folder / f"no {HOSTILE}")]),
        (2, ["reach", "--recipe", HOSTILE]),
        (0, ["reach", "--weights", f"{HOSTILE}=1,b=1", "--rank-constants", f"{HOSTILE}=60,b=60"]),
        (2, ["probe", "--leg", HOSTILE]),
        (0, ["rebuild", "--extract"]),
        (0, ["maintain"]),
        (0, ["doctor"]),
        (4, ["get", HOSTILE + "x", *there]),
        (2, ["recall", "x", "--sort-by", HOSTILE]),
        (2, ["recall", "x", "--limit", HOSTILE]),
        (2, ["recall", f"--{HOSTILE}"]),
        (2, [HOSTILE]),
        (2, ["stats", "--url", HOSTILE]),
        (2, ["stats", "--url", "sqlite:" + HOSTILE + "/x/y.db"]),
        (0, ["install", "claude-code", "--project", "--dry-run", *there]),
        (2, ["install", HOSTILE]),
        (0, ["uninstall", "claude-code", "--project", "--dry-run"]),
        (2, ["uninstall", HOSTILE]),
        (0, ["hook", HOSTILE]),
        (2, ["mcp", "--http", "--host", HOSTILE]),
        (0, ["forget", HOSTILE, *there]),
        (0, ["forget", HOSTILE, *there, "--yes"]),
        (0, ["restore-memory", HOSTILE, *there]),
        (0, ["forget", HOSTILE, *there, "--yes"]),
        (0, ["changes", *there]),
        (2, ["changes", *there, "--since", HOSTILE]),
        (0, ["namespaces", "limit", HOSTILE, "--most-memories", "999"]),
        (0, ["namespaces", "copy", HOSTILE, f"{HOSTILE} 2"]),
        (0, ["namespaces", "rename", f"{HOSTILE} 2", f"{HOSTILE} 3"]),
        (5, ["namespaces", "rename", f"{HOSTILE} 3", HOSTILE]),
        (0, ["namespaces", "drop", f"{HOSTILE} 3", "--yes"]),
        (0, ["completion", "bash"]),
        (2, ["completion", HOSTILE]),
        (0, ["keys", "list"]),
        (2, ["keys", "add", HOSTILE]),
        (4, ["keys", "rotate", HOSTILE]),
        (4, ["keys", "revoke", HOSTILE]),
        (2, ["keys", "import", f"{folder}/{HOSTILE}"]),
        (0, ["forget", "--all", *there, "--yes"]),
    ]


def test_every_command_is_among_those_that_are_tried(tmp_path: Path) -> None:
    from typer import Typer

    def names(group: Typer) -> set[str]:
        return {str(one.name) for one in group.registered_commands}

    tried = {word for _, args in commands(tmp_path) for word in args[:2]}
    groups = [group.typer_instance for group in app.registered_groups if group.typer_instance is not None]
    assert names(app).union(*map(names, groups)) <= tried


@pytest.mark.slow
@pytest.mark.parametrize("colours", [False, True], ids=["piped", "terminal"])
def test_no_command_lets_a_control_character_through(
    filled: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, colours: bool
) -> None:
    if colours:  # rich then writes its own changes of colour, and nothing else may stand between them
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm-256color")
        terminal.cache_clear()
    codes = [(code, filled(*args), args) for code, args in commands(tmp_path)]
    assert [(code, got, args) for code, got, args in codes if got[0] != code] == []
    terminal.cache_clear()


def test_json_is_the_exact_data_and_acts_no_more_than_the_rest(filled: Call) -> None:
    for args in (["get", HOSTILE], ["list"], ["recall", "key of Heron House"]):
        told = json.loads(filled(*args, "-n", HOSTILE, "--json")[1])
        memory = next(m for m in told.get("memories", told.get("hits", [told])) if m["id"] == HOSTILE)
        assert memory["title"] == HOSTILE
    memory = json.loads(filled("get", HOSTILE, "-n", HOSTILE, "--json")[1])
    assert [memory[key] for key in ("author", "session", "source", "namespace")] == [HOSTILE] * 4
    assert memory["text"] == f"The key of Heron House. {HOSTILE}"
    assert (memory["tags"], memory["metadata"]) == ([HOSTILE], {HOSTILE: HOSTILE})


def test_an_entry_of_the_log_lets_no_control_character_through(filled: Call) -> None:
    there = ["-n", HOSTILE]
    recall_id = json.loads(filled("recall", f"key of Heron House {HOSTILE}", *there, "--json")[1])["id"]
    assert filled("feedback", recall_id, *there, "--useful", HOSTILE, "--made-by", HOSTILE)[0] == 0
    for command in (["log"], ["log", "show", recall_id], ["log", "replay", recall_id]):
        code, said = filled(*command, *there)
        assert (code, "evil" in said) == (0, True), command


@pytest.mark.slow
def test_what_a_process_says_is_harmless_too(store_url: str) -> None:
    environment = {**os.environ, "SEMMEM_URL": store_url, "SEMMEM_EMBEDDER": "hashing"}
    with semmem.connect(store_url, embedder="hashing") as mem:
        mem.remember(f"The key. {HOSTILE}", id="key")
    lines = [
        ["recall", "key"],
        ["--debug", "get", HOSTILE + "\udcff"],  # a byte that is no UTF-8
    ]
    for args, code in zip(lines, (0, 2), strict=True):
        done = subprocess.run([sys.executable, "-m", "semmem", *args], env=environment, capture_output=True)
        said = (done.stdout + done.stderr).decode("utf-8")
        assert done.returncode == code, said
        assert not FORBIDDEN.findall(said), said


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1"])
def test_an_output_of_few_letters_gets_what_it_can_show(store_url: str, encoding: str) -> None:
    environment = {**os.environ, "SEMMEM_URL": store_url, "SEMMEM_EMBEDDER": "hashing", "PYTHONIOENCODING": encoding}

    def said(*args: str, code: int = 0) -> str:
        done = subprocess.run([sys.executable, "-m", "semmem", *args], env=environment, capture_output=True)
        assert done.returncode == code, done.stderr
        return (done.stdout + done.stderr).decode(encoding)

    said("remember", "Zoë says “東京 → Ōsaka” — 🗝 …", "--title", "Ōsaka", "--id", "東")
    shown = said("recall", "Ōsaka")
    assert "\\u014csaka" in shown
    assert re.search("[#%+]{4}", shown)  # the bar
    told = json.loads(said("recall", "Ōsaka", "--json"))
    assert told["hits"][0]["title"] == "Ōsaka"
    assert json.loads(said("get", "東", "--json"))["text"] == "Zoë says “東京 → Ōsaka” — 🗝 …"
    assert "\\u6771" in said("get", "東東", code=4)
    assert "Options" in said("graph", "--help")
    drawn = said("graph")
    assert "Heron" in drawn or "Osaka" in drawn or "\\u" in drawn


@given(st.text())
def test_visible_text_has_no_active_character_and_stays_as_it_is(text: str) -> None:
    shown = visible(text)
    assert not FORBIDDEN.search(shown)
    assert visible(shown) == shown
    assert shown.count("\n") == text.count("\n")
    encodable(shown, "ascii").encode("ascii")
    assert json.loads(as_json(text)) == text == json.loads(as_json(text, encoding="ascii"))
    assert not FORBIDDEN.search(as_json(text))


def test_a_control_character_is_shown_as_its_escape() -> None:
    assert visible("\x1b[31m\x9b\u202e\ud800\ta\r\nb\r") == "\\x1b[31m\\x9b\\u202e\\ud800    a\nb\\x0d"
    assert encodable("█▓ → …é", "ascii") == "#% > ...\\xe9"


def test_the_terminal_cleans_what_others_made() -> None:
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text
    from rich.tree import Tree

    file = io.StringIO()
    console = Terminal(file=file, width=300)
    table = Table(title=HOSTILE)
    table.add_column(HOSTILE)
    table.add_row(Text(HOSTILE))
    table.add_row(HOSTILE)
    for thing in (table, Tree(Text(HOSTILE)), Panel(HOSTILE, title=HOSTILE), Text(HOSTILE), Shown(HOSTILE), HOSTILE):
        console.print(thing)
    assert not FORBIDDEN.findall(file.getvalue())
    assert ":smile:" in file.getvalue()
    assert "[red]x[/]" in file.getvalue()


def test_no_module_of_the_command_line_writes_past_the_terminal() -> None:
    folder = Path(show.__file__).parent
    for path in folder.rglob("*.py"):
        text = path.read_text(encoding="utf-8").partition("if TYPE_CHECKING:")
        if path.name == "terminal.py":
            continue
        source = text[0] + re.sub(r"\A(?:\n    .*|\n)*", "", text[2])
        assert not re.search(r"rich\.(text|console) import|typer\.(secho|echo)|(?<![.\w])print\(", source), path.name
