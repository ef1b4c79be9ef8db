"""Files of one name in several folders: each replaces what it brought in itself, and nothing of another's is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from semmem.doors.cli.app import run

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run the program on an empty SQLite store; return code, output and errors."""
    monkeypatch.setenv("SEMMEM_URL", f"sqlite://{tmp_path}/notes.db")
    monkeypatch.setenv("SEMMEM_EMBEDDER", "none")
    capfd.readouterr()

    def program(*args: str) -> tuple[int, str, str]:
        code = run(list(args))
        out, err = capfd.readouterr()
        return code, out, err

    return program


def stored(call: Call) -> dict[str, str]:
    return {memory["id"]: memory["text"] for memory in json.loads(call("list", "--json")[1])["memories"]}


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


def test_moved_is_refused_where_it_says_nothing(call: Call, tmp_path: Path) -> None:
    table = file(tmp_path / "t.csv", x="Tea.")
    assert call("import", "csv", str(table), "--moved") == (2, "", "--moved goes with --replace.\n")
    code, _, err = call("import", "mem0", str(table), "--moved")
    assert (code, err) == (2, "--moved is an option of import chat, csv, jsonl, markdown, not of import mem0.\n")
