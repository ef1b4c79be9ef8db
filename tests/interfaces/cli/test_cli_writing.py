"""The commands that write, as people type them: files by name, bad lines by line, update, everything."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from semmem.client.memory import Semmem
from semmem.importers import place
from semmem.interfaces.cli import progress
from semmem.interfaces.cli.context import CommandLine
from tests.interfaces.cli.program import Call, in_process, stored
from tests.waiting import until


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run the program on an empty SQLite store; return code, output and errors."""
    monkeypatch.setenv("SEMMEM_URL", f"sqlite://{tmp_path}/notes.db")
    return in_process(capfd)


def test_a_file_is_stored_once_however_often_it_is_remembered(call: Call, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "note.md").write_text(f"Tea in {folder}.")
    for _ in range(2):
        for folder in ("one", "two"):
            assert call("remember", str(tmp_path / folder / "note.md"))[0] == 0
    assert sorted(stored(call).values()) == ["Tea in one.", "Tea in two."]
    (tmp_path / "one" / "note.md").write_text("Rum.")
    code, _, err = call("remember", str(tmp_path / "one" / "note.md"))
    assert (code, "call update to change it" in err) == (5, True)


def test_a_file_that_is_no_text_by_its_name_is_told_and_its_name_is_not_stored(call: Call, tmp_path: Path) -> None:
    call("remember", "Tea.", "--id", "a")
    page = tmp_path / "page.html"
    page.write_text("<p>Tea</p>")
    for given, says in [(str(page), "is a file, and only .txt, .md and .jsonl"), ("report.pdf", "There is no file")]:
        code, _, err = call("remember", given)
        assert (code, says in err) == (2, True)
    assert stored(call) == {"a": "Tea."}
    assert call("remember", "--file", str(page))[0] == 0
    assert len(stored(call)) == 2


def test_a_bad_line_is_told_by_file_and_line(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"id": "a", "text": "Tea."}\n\n{"text": ""}\nnot json\n{"id": "b", "text": "Rum."}\n')
    code, _, err = call("remember", str(path))
    assert (code, "bad.jsonl, line 3: The text is empty" in err) == (2, True)
    report = json.loads(call("remember", str(path), "--on-error", "skip", "--json")[1])
    assert [(row["line"], row["position"]) for row in report["rejected"]] == [(3, 1), (4, 2)]
    call("update", "a", "Gin.")
    path.write_text('\n{"id": "a", "text": "Tea."}\n')
    code, _, err = call("remember", str(path))
    assert (code, "bad.jsonl, line 2: The id 'a' is already in the store" in err) == (5, True)


def test_a_memory_is_updated_and_a_version_that_is_not_the_expected_one_is_told(call: Call) -> None:
    call("remember", "Tea.", "--id", "a", "--title", "Drinks", "--tag", "x")
    assert call("update", "a", "Rum.", "--title", "", "--tag", "y")[:2] == (
        0,
        "a in namespace default is at version 2.\n",
    )
    memory = json.loads(call("get", "a", "--json")[1])
    assert (memory["text"], memory["title"], memory["tags"], memory["version"]) == ("Rum.", None, ["y"], 2)
    code, _, err = call("update", "a", "Gin.", "--expected-version", "1")
    assert (code, "is at version 2, not 1: its text is now 'Rum.', and yours is 'Gin.'" in err) == (5, True)
    assert call("update", "a", "Gin.", "--expected-version", "2")[0] == 0
    assert call("update", "b", "Gin.")[0] == 4
    assert call("update", "a")[0] == 2


def test_an_empty_time_takes_the_time_of_a_memory_away(call: Call) -> None:
    call("remember", "Tea.", "--id", "a", "--valid-to", "2031-01-01", "--ttl", "1d")
    assert json.loads(call("get", "a", "--json")[1])["valid_to"] == "2031-01-01T00:00:00+00:00"
    assert call("update", "a", "--valid-to", "", "--expires-at", "")[0] == 0
    memory = json.loads(call("get", "a", "--json")[1])
    assert (memory.get("valid_to"), memory.get("expires_at")) == (None, None)
    code, _, err = call("update", "a", "--valid-to", "soon")
    assert (code, "--valid-to must be a time in ISO 8601" in err) == (2, True)


def test_all_of_a_namespace_is_all_of_it_whatever_the_times(call: Call) -> None:
    call("remember", "Late.", "--id", "late", "--created-at", "9999-12-31T23:59:59Z")
    call("remember", "Early.", "--id", "early", "--created-at", "0001-01-01T00:00:00Z")
    assert json.loads(call("forget", "--all", "--json")[1])["matched"] == 2
    assert call("forget", "a", "--all", "--yes")[0] == 2
    assert json.loads(call("forget", "--all", "--yes", "--json")[1])["forgotten"] == 2
    assert stored(call) == {}


@pytest.mark.slow
@pytest.mark.parametrize("format", ["csv", "chat", "jsonl"])
def test_a_changed_row_replaces_what_its_own_file_brought_in_and_nothing_else(
    call: Call, tmp_path: Path, format: str
) -> None:
    def file(name: str, **texts: str) -> str:
        path = tmp_path / (f"{name}.csv" if format == "csv" else f"{name}.jsonl")
        if format == "csv":
            path.write_text("id,text\n" + "".join(f"{id},{text}\n" for id, text in texts.items()))
        else:
            field = "content" if format == "chat" else "text"
            path.write_text("".join(json.dumps({"id": id, field: text}) + "\n" for id, text in texts.items()))
        return str(path)

    def told(path: str, *more: str) -> tuple[int, int, int, int]:
        found = json.loads(call("import", format, path, "--json", *more)[1])
        return found["remembered"], found["unchanged"], found["replaced"], len(found["rejected"])

    call("remember", "By hand.", "--id", "hand")
    first = ["--replace"] if format == "jsonl" else []
    assert told(file("one", a="Tea.", b="Rum.", hand="Other."), *first) == (2, 0, 0, 1)
    assert told(file("one", a="Tea.", b="Gin.", hand="Other.")) == (0, 1, 0, 2)
    assert told(file("one", a="Tea.", b="Gin.", hand="Other."), "--replace") == (0, 1, 1, 1)
    assert told(file("two", a="Milk."), "--replace") == (0, 0, 0, 1)
    assert stored(call) == {"a": "Tea.", "b": "Gin.", "hand": "By hand."}
    assert call("import", "mem0", file("one"), "--replace")[0] == 2


@pytest.mark.slow
def test_metadata_that_was_set_by_hand_survives_an_import_of_the_file(call: Call, tmp_path: Path) -> None:
    def told(name: str, table: str) -> tuple[int, int, int, int]:
        path = tmp_path / name
        path.write_text(table)
        found = json.loads(call("import", "csv", str(path), "--replace", "--json")[1])
        return found["remembered"], found["unchanged"], found["replaced"], len(found["rejected"])

    def metadata(id: str) -> object:
        return json.loads(call("get", id, "--json")[1])["metadata"]

    call("remember", "Milk.", "--id", "c")  # as before there was a mark
    assert told("t.csv", "id,text,colour\na,Tea.,red\nb,Rum.,\nc,Milk.,\n") == (2, 1, 0, 0)
    by_hand = {"colour": "red", "imported_from": "t.csv", "reviewed": "yes"}
    assert call("update", "a", "--metadata", json.dumps(by_hand))[0] == 0
    assert metadata("a") == by_hand
    assert told("t.csv", "id,text,colour\na,Tea.,red\nb,Rum.,\n") == (0, 2, 0, 0)
    assert metadata("a") == by_hand
    assert told("t2.csv", "id,text,colour\na,Tea.,red\nb,Rum.,\n") == (0, 2, 0, 0)  # a copy under another name
    assert told("t.csv", "id,text,colour\na,Gin.,blue\nb,Rum.,\n") == (0, 1, 1, 0)
    mark = {"file": "t.csv", "place": place(tmp_path / "t.csv")}
    assert metadata("a") == by_hand | {"colour": "blue", "imported_from": mark}


def test_of_an_edited_export_what_is_the_same_is_unchanged_and_what_is_not_says_what_to_do(
    call: Call, tmp_path: Path
) -> None:
    for id in "abc":
        call("remember", f"Tea of {id}.", "--id", id, "--metadata", '{"k": 1}')
    path = tmp_path / "export.jsonl"
    call("export", str(path))
    path.write_text(path.read_text().replace("Tea of b", "Rum of b"))
    found = json.loads(call("import", "jsonl", str(path), "--replace", "--json")[1])
    assert (found["unchanged"], found["replaced"], [row["where"] for row in found["rejected"]]) == (2, 0, ["line 2"])
    assert found["rejected"][0]["reason"] == (
        "The id 'b' is already stored with another text, and not as one of this source's own memories; change it by "
        "update, or import with --replace the first time too."
    )
    assert stored(call)["b"] == "Tea of b."


@pytest.mark.parametrize("metadata", ["abc", "", 0, [["a", 1]]])
def test_metadata_that_is_no_mapping_makes_a_bad_row(call: Call, tmp_path: Path, metadata: object) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [{"id": "a", "text": "Tea."}, {"id": "b", "text": "Rum.", "metadata": metadata}]
    rows.append({"id": "c", "text": "Gin.", "namespace": ["x"]})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, _ = call("import", "jsonl", str(path), "--replace", "--json")
    found = json.loads(out)
    assert (code, found["remembered"], found["namespaces"]) == (0, 1, ["default"])
    assert [row["reason"] for row in found["rejected"]] == [
        "metadata must be a mapping with string keys.",
        "namespace must be a string, not list; write str(…) around it.",
    ]


def test_progress_is_told_before_the_first_batch_is_done(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "_PAUSE", 0.05)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    said = ""
    with progress.counting(CommandLine(), "notes.jsonl", 500):
        now[0] = 0.05
        for _ in range(2_000):
            if said := said + capfd.readouterr().err:
                break
            time.sleep(0.05)
    assert said.startswith("notes.jsonl: 0 of 500 memories yet, 0 s")


def test_progress_that_does_not_move_is_told_once_a_minute(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "_PAUSE", 0.01)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    said: list[str] = []

    def told(times: int) -> bool:
        said.append(capfd.readouterr().err)
        return "".join(said).count("\n") >= times

    with progress.counting(CommandLine(), "notes.jsonl", None):
        now[0] = 0.02
        until(lambda: told(1))
        now[0] = 60.0
        time.sleep(0.4)
        assert told(1)
        now[0] = 60.02
        until(lambda: told(2))
    assert "".join(said) == "notes.jsonl: 0 memories yet, 0 s\nnotes.jsonl: 0 memories yet, 60 s\n"


def test_vectors_that_were_made_earlier_and_then_discarded_do_not_count_against_the_rate(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_PAUSE", 0.01)
    said = ""
    with progress.counting(CommandLine(), "embedding", 90, earlier=60) as advance:
        for _ in range(2_000):
            advance(20)
            if "20 of" in (said := said + capfd.readouterr().err):
                break
            time.sleep(0.05)
    assert re.search(r"^embedding: 20 of 90 memories, [\d,]+/s", said, re.MULTILINE), said


@pytest.mark.parametrize("command", [["import", "jsonl"], ["remember", "--on-error", "skip", "--file"]])
def test_a_file_whose_every_row_was_bad_is_an_error_and_one_with_a_good_row_is_none(
    call: Call, tmp_path: Path, command: list[str]
) -> None:
    bad, mixed, empty = (tmp_path / name for name in ("bad.jsonl", "mixed.jsonl", "empty.jsonl"))
    bad.write_text("no JSON\n")
    mixed.write_text('no JSON\n{"id": "owl", "text": "An owl."}\n')
    empty.write_text("\n")
    for file, code in ((bad, 2), (mixed, 0), (mixed, 0), (empty, 0)):  # the second time it is unchanged
        assert call(*command, str(file))[0] == code, file.name
    assert call(*command, str(bad), "--json")[0] == 2
    assert stored(call) == {"owl": "An owl."}


def test_an_import_names_the_namespace_that_was_given_though_nothing_came(call: Call, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    assert (
        "0 memories into namespace ours" in call("import", "jsonl", str(tmp_path / "empty.jsonl"), "--into", "ours")[1]
    )


def test_an_import_of_a_folder_says_that_it_is_one(call: Call, tmp_path: Path) -> None:
    assert call("import", "csv", str(tmp_path)) == (2, "", f"{tmp_path} is a folder; import csv reads a file.\n")


def test_doctor_exits_with_eight_where_the_store_does_not_answer(call: Call, tmp_path: Path) -> None:
    assert call("remember", "An owl.")[0] == 0
    assert call("doctor", "--url", f"sqlite://{tmp_path}/notes.db")[0] == 0
    code, out, _ = call("doctor", "--json", "--url", "postgresql:///nowhere?host=/none")
    assert code == 8
    assert "store" in json.loads(out)["degraded"]


def test_an_id_that_is_not_there_is_told_before_a_question_is_asked(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("remember", "An owl.", "--id", "owl")[0] == 0
    asked: list[str] = []
    monkeypatch.setattr(Semmem, "recall", lambda *_, **__: asked.append("recall"))
    assert call("explain", "nope", "--query", "owl")[0] == 4
    assert asked == []


def test_history_shows_each_version_with_its_author_and_its_diff(call: Call) -> None:
    call("remember", "Ana lives in Lisbon.", "--id", "ana")
    assert call("update", "ana", "Ana lives in Porto.", "--by", "clerk")[0] == 0
    code, out, _ = call("history", "ana")
    assert code == 0
    assert [line.split() for line in out.splitlines()][1::2] == [
        ["Ana", "lives", "in", "Lisbon."],
        ["Ana", "lives", "in", "Porto."],
    ]
    assert "by clerk  text" in out
    assert "-Ana lives in Lisbon.\n+Ana lives in Porto." in call("history", "ana", "--diff")[1]
    versions = json.loads(call("history", "ana", "--json", "--diff")[1])["versions"]
    assert [(one["version"], one["changed"], one["changed_by"]) for one in versions] == [
        (1, [], None),
        (2, ["text"], "clerk"),
    ]
    assert "diff" in versions[1]
    code, _, err = call("history", "nobody")
    assert (code, "no memory 'nobody'" in err) == (4, True)


@pytest.mark.slow
def test_links_are_made_listed_and_taken_away_and_a_hit_says_what_supersedes_it(call: Call) -> None:
    for id, text in (("monday", "The port is 5432."), ("friday", "We moved to another port: 6543.")):
        assert call("remember", text, "--id", id)[0] == 0
    code, out, _ = call("link", "friday", "supersedes", "monday", "--made-by", "clerk")
    assert code == 0
    assert out.startswith("friday supersedes monday  (since 20")
    assert out.strip().endswith(", by clerk)")
    (link,) = json.loads(call("links", "monday", "--json")[1])["links"]
    assert (link["from_id"], link["type"], link["to_id"], link["made_by"]) == (
        "friday", "supersedes", "monday", "clerk",
    )  # fmt: skip
    assert "superseded by friday" in call("recall", "port")[1]
    for arguments, expected, said in (
        (("link", "monday", "supersedes", "friday"), 2, "which supersedes it, directly"),
        (("link", "monday", "like", "friday"), 2, "There is no type of link 'like'; choose one of supersedes,"),
        (("link", "monday", "see-also", "nobody"), 4, "There is no memory 'nobody'"),
        (("links", "nobody"), 4, "There is no memory 'nobody'"),
    ):
        code, _, err = call(*arguments)
        assert code == expected
        assert said in " ".join(err.split())
    assert call("unlink", "friday", "supersedes", "monday")[1].strip() == "friday supersedes monday no longer."
    assert call("unlink", "friday", "supersedes", "monday")[1].strip() == "There was no link friday supersedes monday."
    assert call("links", "friday")[1].strip() == "friday has no links."


def test_what_was_forgotten_is_taken_back_unless_it_was_forgotten_hard(call: Call) -> None:
    call("remember", "Tea.", "--id", "a")
    assert call("restore-memory", "a")[0] == 5
    call("forget", "a", "--yes", "--by", "clerk")
    assert stored(call) == {}
    said = call("history", "a")[1]
    assert "forgotten 20" in said
    assert "by clerk" in said
    code, out, _ = call("restore-memory", "a")
    assert (code, out.strip()) == (0, "a in namespace default is back.")
    assert stored(call) == {"a": "Tea."}
    call("forget", "a", "--yes", "--hard")
    code, _, err = call("restore-memory", "a")
    assert (code, "There is no forgotten memory 'a'" in err) == (4, True)


@pytest.mark.slow
def test_what_is_said_again_and_what_it_contradicts_is_told(call: Call) -> None:
    assert call("remember", "Ana lives in Lisbon.", "--id", "old")[0] == 0
    _, out, _ = call("remember", "Ana moved to Porto.")
    assert "It contradicts old; `semmem links` shows both." in out
    assert call("remember", "Ana moved to Porto.")[1].strip().endswith("in namespace default again, 2 times so far.")
