"""The commands graph, concepts and import against a real store."""

from __future__ import annotations

import json
from pathlib import Path

import networkx
import pytest

from tests.interfaces.cli.program import Call, in_process, loaded


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], store_url: str, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run the program in this process on a small store; return code, output and errors."""
    monkeypatch.setenv("SEMMEM_URL", store_url)
    monkeypatch.setenv("SEMMEM_EMBEDDER", "none")
    return in_process(capfd)


@pytest.fixture
def filled(call: Call) -> Call:
    call("remember", "Petra Lindqvist designed it.", "--id", "kestrel", "--title", "Kestrel", "-n", "n")
    call("remember", "She was born in Norrbeck.", "--id", "petra", "--title", "Petra Lindqvist", "-n", "n")
    call("remember", "The ferry to Norrbeck [red]leaks[/red].", "--id", "ferry", "-n", "n")
    return call


def test_a_graph_is_shown_as_a_tree_from_what_was_asked_for(filled: Call) -> None:
    code, out, err = filled("graph", "--around", "petra lindqvist", "--hops", "2", "-n", "n")
    assert (code, err) == (0, "")
    # df 2 of 3 memories: idf = ln(1 + 3/2) / ln(1 + 3) = .9163 / 1.3863 = .66
    assert [line.rstrip() for line in out.splitlines()] == [
        "● Petra Lindqvist  name in 2",
        "├── ■ Kestrel  kestrel  mention 0.66",
        "└── ■ Petra Lindqvist  petra  subject 0.66",
        "    └── ● Norrbeck  name in 2  mention 0.66",
        "        └── ■ The ferry to Norrbeck [red]leaks[/red].  ferry  mention 0.66",
        "3 memories, 2 concepts, 4 edges.",
    ]


def test_a_graph_is_written_in_every_form(filled: Call, tmp_path: Path) -> None:
    for ending in ("html", "graphml", "dot", "json"):
        path = tmp_path / f"petra.{ending}"
        code, out, _ = filled("graph", "--around", "petra", "-n", "n", "--out", str(path))
        assert code == 0
        assert f"Written to {path}." in " ".join(out.split())
        assert "●" not in out  # the counts alone: who writes a file does not want it on the screen
        assert path.stat().st_size > 500
    assert len(networkx.read_graphml(tmp_path / "petra.graphml")) == 5
    again = ("graph", "--around", "petra", "-n", "n", "--out", str(tmp_path / "petra.dot"))
    assert filled(*again)[0::2] == (
        2, f"{tmp_path / 'petra.dot'} already exists; --force overwrites it.\n"
    )  # fmt: skip
    assert filled(*again, "--force")[0] == 0
    assert filled(*again[:-1], str(tmp_path / "none" / "x.dot"))[0] == 2
    told = loaded(filled("graph", "--around", "petra", "-n", "n", "--json"))
    assert told == json.loads((tmp_path / "petra.json").read_text(encoding="utf-8"))


def test_what_cannot_be_drawn_is_told_in_a_sentence(filled: Call, tmp_path: Path) -> None:
    code, out, err = filled("graph", "-n", "n", "--limit", "2")
    assert (code, out) == (2, "")
    assert err.startswith("Namespace 'n' holds 3 memories and parts, more than the 2 that are drawn at once")
    assert filled("graph", "--around", "Nobody", "-n", "n")[0] == 4
    code, _, err = filled("graph", "-n", "n", "--out", str(tmp_path / "x.png"))
    assert (code, err) == (2, "--out must end in .html, .graphml, .dot, .json, not be 'x.png'.\n")
    assert filled("graph", "-n", "empty") == (0, "There is no memory in namespace empty.\n", "")


def test_names_are_listed_merged_and_split(filled: Call) -> None:
    names = loaded(filled("concepts", "--like", "LIND", "-n", "n", "--json"))["concepts"]
    assert names == [{"name": "Petra Lindqvist", "kind": "name", "df": 2, "subjects": 1, "aliases": []}]
    assert loaded(filled("concepts", "merge", "Kestrel", "Norrbeck", "-n", "n", "--json")) == {
        "merged": "Kestrel", "into": "Norrbeck"
    }  # fmt: skip
    merged = loaded(filled("-n", "n", "concepts", "--like", "norr", "--json"))["concepts"]
    assert [(one["name"], one["df"], one["aliases"]) for one in merged] == [("Norrbeck", 3, ["Kestrel"])]
    code, out, err = filled("concepts", "-n", "n")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == ["name", "Norrbeck", "Petra"]
    assert filled("concepts", "split", "Kestrel", "-n", "n")[0] == 0
    apart = loaded(filled("concepts", "--like", "kestrel", "-n", "n", "--json"))["concepts"]
    assert [(one["name"], one["aliases"]) for one in apart] == [("Kestrel", [])]
    assert filled("concepts", "merge", "Kestrel", "Nobody", "-n", "n")[0] == 4
    assert filled("concepts", "--like", "zzz", "-n", "n")[1] == "No name in namespace n is like that.\n"


def test_a_chat_goes_in_but_for_its_bad_rows_and_again_changes_nothing(call: Call, tmp_path: Path) -> None:
    talk = tmp_path / "may.jsonl"
    talk.write_text(
        '{"role": "Ada", "content": "The key is red.", "timestamp": "2026-05-01T09:00:00Z"}\n'
        "nonsense\n"
        '{"role": "Bo", "content": "Mine\\u0000is blue."}\n'
        '{"role": "Bo", "content": "Mine is blue."}\n',
        encoding="utf-8",
    )
    told = loaded(call("import", "chat", str(talk), "-n", "n", "--json"))
    assert (told["remembered"], told["unchanged"]) == (2, 0)
    assert [row["where"] for row in told["rejected"]] == ["line 2", "line 3"]
    assert "NUL" in told["rejected"][1]["reason"]
    memory = loaded(call("get", "may:2", "-n", "n", "--json"))
    assert {key: memory[key] for key in ("text", "author", "session", "position", "created_at")} == {
        "text": "Mine is blue.", "author": "Bo", "session": "may", "position": 2,
        "created_at": "2026-05-01T09:00:00+00:00",
    }  # fmt: skip
    code, out, err = call("import", "chat", str(talk), "-n", "n")
    assert code == 0
    assert "Imported 0 memories into namespace n" in out
    assert "2 were there already, 2 rows were bad." in " ".join(out.split())
    assert "  line 2: it is not JSON." in err.splitlines()


def test_an_import_can_stop_at_the_first_bad_row(call: Call, tmp_path: Path) -> None:
    talk = tmp_path / "may.jsonl"
    talk.write_text('{"role": "Ada", "content": "One."}\n{"role": "Ada", "content": "a\\u0000b"}\n', encoding="utf-8")
    code, out, err = call("import", "chat", str(talk), "--on-error", "abort")
    assert (code, out) == (2, "")
    assert err.startswith("line 2: text contains a NUL character")
    talk.write_text('{"role": "Ada", "content": "One."}\nnonsense\n', encoding="utf-8")
    assert call("import", "chat", str(talk), "--on-error", "abort") == (2, "", "line 2: it is not JSON.\n")
    assert loaded(call("list", "--json"))["memories"] == []
    assert call("import", "chat", str(tmp_path / "no.jsonl"))[0] == 2
