"""Files of one name in several folders: each replaces what it brought in itself, and nothing of another's is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.interfaces.cli.program import Call, in_process, stored


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run the program on an empty SQLite store; return code, output and errors."""
    monkeypatch.setenv("SEMMEM_URL", f"sqlite://{tmp_path}/notes.db")
    monkeypatch.setenv("SEMMEM_EMBEDDER", "none")
    return in_process(capfd)


def told(call: Call, format: str, path: Path, *more: str) -> tuple[int, int, int, int]:
    found = json.loads(call("import", format, str(path), "--json", *more)[1])
    return found["remembered"], found["unchanged"], found["replaced"], len(found["rejected"])


def transcript(path: Path, *said: str, role: str = "user") -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps({"role": role, "content": text}) + "\n" for text in said))
    return path


def file(path: Path, **texts: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".csv":
        path.write_text("id,text\n" + "".join(f"{id},{text}\n" for id, text in texts.items()))
    else:
        field = "text" if path.stem == "t" else "content"
        path.write_text("".join(json.dumps({"id": id, field: text}) + "\n" for id, text in texts.items()))
    return path


def test_a_third_transcript_of_one_name_takes_nothing_from_the_second(call: Call, tmp_path: Path) -> None:
    talks = [
        transcript(tmp_path / "a" / "chat.jsonl", "Hi there", "The owl hoots."),
        transcript(tmp_path / "b" / "chat.jsonl", "Hello", "A ferry came."),
        transcript(tmp_path / "c" / "chat.jsonl", "Hello", "It rains.", "It rains on."),
    ]
    assert [told(call, "chat", talk) for talk in talks] == [(2, 0, 0, 0), (2, 0, 0, 0), (3, 0, 0, 0)]
    assert [told(call, "chat", talk, "--replace") for talk in talks] == [(0, 2, 0, 0), (0, 2, 0, 0), (0, 3, 0, 0)]
    assert sorted(stored(call).values()) == [
        "A ferry came.", "Hello", "Hello", "Hi there", "It rains on.", "It rains.", "The owl hoots.",
    ]  # fmt: skip


def test_a_transcript_that_was_told_apart_and_has_grown_is_known_in_another_place(call: Call, tmp_path: Path) -> None:
    told(call, "chat", transcript(tmp_path / "a" / "chat.jsonl", "Hi there"))
    assert told(call, "chat", transcript(tmp_path / "b" / "chat.jsonl", "Hello")) == (1, 0, 0, 0)
    assert told(call, "chat", transcript(tmp_path / "c" / "chat.jsonl", "Hello", "It rains.")) == (1, 1, 0, 0)
    assert told(call, "chat", transcript(tmp_path / "b" / "chat.jsonl", "Hello", "It rains.")) == (0, 2, 0, 0)
    assert len(stored(call)) == 3


@pytest.mark.parametrize(
    ("format", "name"), [("chat", "talk.jsonl"), ("csv", "t.csv"), ("jsonl", "t.jsonl")], ids=lambda value: value
)
def test_a_file_replaces_nothing_of_a_file_of_its_name_in_another_folder(
    call: Call, tmp_path: Path, format: str, name: str
) -> None:
    one, two = file(tmp_path / "a" / name, x="Tea."), file(tmp_path / "b" / name, x="Gin.", y="Rum.")
    assert told(call, format, one, "--replace") == (1, 0, 0, 0)
    assert told(call, format, two, "--replace") == (1, 0, 0, 1)
    assert stored(call) == {"x": "Tea.", "y": "Rum."}
    assert told(call, format, file(one, x="Coffee."), "--replace") == (0, 0, 1, 0)
    assert stored(call) == {"x": "Coffee.", "y": "Rum."}
    assert told(call, format, two, "--replace", "--moved") == (0, 1, 1, 0)
    assert stored(call) == {"x": "Gin.", "y": "Rum."}


def test_a_mark_of_old_that_has_no_place_counts_for_a_file_of_its_name(call: Call, tmp_path: Path) -> None:
    call("remember", "Tea.", "--id", "x", "--metadata", '{"imported_from": "t.csv"}')
    call("remember", "Tea.", "--id", "y", "--metadata", '{"imported_from": "u.csv"}')
    assert told(call, "csv", file(tmp_path / "t.csv", x="Gin.", y="Gin."), "--replace") == (0, 0, 1, 1)
    assert stored(call) == {"x": "Gin.", "y": "Tea."}


def test_a_transcript_whose_beginning_was_edited_is_replaced_and_not_doubled(call: Call, tmp_path: Path) -> None:
    talk = transcript(tmp_path / "a" / "chat.jsonl", "Hi there")
    told(call, "chat", talk)
    assert told(call, "chat", transcript(talk, "Hi again"), "--replace") == (0, 0, 1, 0)
    assert told(call, "chat", transcript(talk, "Hi again", role="Ann"), "--replace") == (0, 0, 1, 0)
    assert stored(call) == {"chat:0": "Hi again"}
    assert told(call, "chat", transcript(talk, "A new talk")) == (1, 0, 0, 0)


def test_a_transcript_that_now_begins_as_another_replaces_its_own_memories(call: Call, tmp_path: Path) -> None:
    told(call, "chat", transcript(tmp_path / "a" / "chat.jsonl", "Hi there"))
    talk = transcript(tmp_path / "b" / "chat.jsonl", "Hello")
    assert told(call, "chat", talk) == (1, 0, 0, 0)
    assert told(call, "chat", transcript(talk, "Hi there"), "--replace") == (0, 0, 1, 0)
    assert list(stored(call).values()) == ["Hi there", "Hi there"]


def test_moved_is_refused_where_it_says_nothing(call: Call, tmp_path: Path) -> None:
    table = file(tmp_path / "t.csv", x="Tea.")
    assert call("import", "csv", str(table), "--moved") == (2, "", "--moved requires --replace.\n")
    code, _, err = call("import", "mem0", str(table), "--moved")
    assert (code, err) == (
        2,
        "--moved is an option of import chat, chatgpt, csv, documents, jsonl, markdown, not of import mem0.\n",
    )


def vault(folder: Path, **notes: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in notes.items():
        (folder / f"{name}.md").write_text(text)
    return folder


def test_a_copy_of_a_vault_takes_nothing_from_the_vault(call: Call, tmp_path: Path) -> None:
    one = vault(tmp_path / "one" / "notes", a="One.", b="Two.", c="Three.", d="Four, newer.", e="Five.")
    bak = vault(tmp_path / "bak" / "notes", a="One.", b="Two.", c="Three.", d="Four.", f="Six.")
    there = {"a.md": "One.", "b.md": "Two.", "c.md": "Three.", "d.md": "Four, newer.", "e.md": "Five."}
    told(call, "markdown", one)
    code, _, err = call("import", "markdown", str(bak), "--prune")
    assert (code, " ".join(err.split())[:155]) == (
        0,
        "Most of these notes were imported from another folder of this name, so nothing is replaced or pruned; if this "
        "is that folder, moved, add --moved. d.md: The",
    )
    assert stored(call) == {**there, "f.md": "Six."}
    assert told(call, "markdown", bak, "--prune", "--moved") == (0, 0, 5, 0)
    assert stored(call) == {"a.md": "One.", "b.md": "Two.", "c.md": "Three.", "d.md": "Four.", "f.md": "Six."}
    assert told(call, "markdown", bak) == (0, 5, 0, 0)  # this folder is the vault's from now on
    assert told(call, "markdown", one) == (1, 3, 0, 1)


def test_what_was_edited_by_hand_stays_while_its_note_is_as_it_was(call: Call, tmp_path: Path) -> None:
    folder = vault(tmp_path / "notes", a="One.", b="---\nx: 1e300\ny: 2\n---\nTwo.")
    told(call, "markdown", folder)
    call("update", "a.md", "By hand.")
    assert told(call, "markdown", folder) == (0, 2, 0, 0)
    assert stored(call)["a.md"] == "By hand."
    vault(folder, a="One, changed.", b="Two, changed.")
    found = json.loads(call("import", "markdown", str(folder), "--json", "--prune")[1])
    assert (found["replaced"], found["gone"]) == (1, [])
    says = (
        "It was edited by hand since it was imported, and what is imported has changed too; semmem import with "
        "--replace overwrites it."
    )
    assert [(row["where"], row["reason"]) for row in found["rejected"]] == [("a.md", says)]
    assert stored(call) == {"a.md": "By hand.", "b.md": "Two, changed."}
    assert told(call, "markdown", folder, "--replace") == (0, 1, 1, 0)
    assert told(call, "markdown", vault(folder, a="Again."), "--prune") == (0, 1, 1, 0)
    assert stored(call)["a.md"] == "Again."


def test_an_edit_by_hand_of_a_note_that_has_not_changed_is_overwritten_when_asked(call: Call, tmp_path: Path) -> None:
    folder = vault(tmp_path / "notes", a="One.")
    told(call, "markdown", folder)
    call("update", "a.md", "--metadata", '{"vault": "notes", "mine": 1}')
    assert told(call, "markdown", folder) == (0, 0, 1, 0)  # the hash is gone with the metadata
    call("update", "a.md", "By hand.")
    assert told(call, "markdown", folder, "--replace") == (0, 0, 1, 0)
    assert stored(call) == {"a.md": "One."}
