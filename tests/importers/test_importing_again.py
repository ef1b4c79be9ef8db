"""A folder or a file that is imported again: only changes are written, and what belongs to others stays."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.importers.vault import vault
from tests.interfaces.cli.program import Call, in_process


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], store_url: str, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run the program in this process; return code, output and errors."""
    monkeypatch.setenv("SEMMEM_URL", store_url)
    monkeypatch.setenv("SEMMEM_EMBEDDER", "none")
    return in_process(capfd)


def test_again_writes_only_what_changed_and_tells_what_is_gone(call: Call, tmp_path: Path) -> None:
    folder = vault(tmp_path / "v", a="One.", b="Two.", c="Three.", d="Four.")
    how = ["import", "markdown", str(folder), "-n", "n"]

    def told(*more: str) -> dict[str, object]:
        found = json.loads(call(*how, "--json", *more)[1])
        return {key: found[key] for key in ("remembered", "unchanged", "replaced", "gone", "pruned")}

    call("remember", "Mine.", "--id", "own", "-n", "n")
    assert told() == {"remembered": 4, "unchanged": 0, "replaced": 0, "gone": [], "pruned": 0}
    first = {memory["id"]: memory for memory in json.loads(call("list", "-n", "n", "--json")[1])["memories"]}
    assert told() == {"remembered": 0, "unchanged": 4, "replaced": 0, "gone": [], "pruned": 0}
    vault(folder, b="Two, changed.", e="Five.", d=b"\xff")
    os.remove(folder / "c.md")
    assert told() == {"remembered": 1, "unchanged": 1, "replaced": 1, "gone": ["c.md"], "pruned": 0}
    second = {memory["id"]: memory for memory in json.loads(call("list", "-n", "n", "--json")[1])["memories"]}
    assert second.keys() == {"a.md", "b.md", "c.md", "d.md", "e.md", "own"}
    assert second["b.md"]["text"] == "Two, changed."
    assert second["b.md"]["created_at"] == first["b.md"]["created_at"]
    assert second["a.md"] == first["a.md"]
    _, out, err = call(*how)
    assert "3 were there already, 1 row was bad." in " ".join(out.split())
    assert "1 note is deleted, but still remembered; --prune forgets them:\n  c.md" in err
    assert told("--prune") == {"remembered": 0, "unchanged": 3, "replaced": 0, "gone": ["c.md"], "pruned": 1}
    left = {memory["id"] for memory in json.loads(call("list", "-n", "n", "--json")[1])["memories"]}
    assert left == {"a.md", "b.md", "d.md", "e.md", "own"}  # d cannot be read now, and is not gone
    vault(folder, a="\n")
    assert told()["gone"] == ["a.md"]  # a note without text is none
    assert call("import", "markdown", str(tmp_path / "none"), "-n", "n")[0] == 2


def test_a_folder_that_has_lost_all_its_notes_prunes_nothing(call: Call, tmp_path: Path) -> None:
    folder = vault(tmp_path / "v", a="One.", b="Two.")
    call("import", "markdown", str(folder), "-n", "n")
    for path in folder.iterdir():
        path.unlink()
    code, out, err = call("import", "markdown", str(folder), "-n", "n", "--prune")
    assert (code, out) == (2, "")
    assert err.startswith("The source is empty, so its 2 memories are not pruned")
    assert call("get", "a.md", "-n", "n")[0] == 0


def test_a_memory_that_is_not_the_vaults_own_is_never_replaced(call: Call, tmp_path: Path) -> None:
    call("remember", "Mine.", "--id", "a.md", "-n", "n")
    call("import", "markdown", str(vault(tmp_path / "one", b="Theirs.")), "-n", "n")
    two = vault(tmp_path / "two", a="Other.", b="Other.")
    told = json.loads(call("import", "markdown", str(two), "-n", "n", "--json", "--prune")[1])
    assert [row["where"] for row in told["rejected"]] == ["a.md", "b.md"]
    assert (told["remembered"], told["replaced"], told["gone"]) == (0, 0, [])
    assert json.loads(call("get", "a.md", "-n", "n", "--json")[1])["text"] == "Mine."


def test_a_change_that_cannot_be_stored_leaves_the_old_note(call: Call, tmp_path: Path) -> None:
    folder = vault(tmp_path / "v", a="One.")
    call("import", "markdown", str(folder), "-n", "n")
    vault(folder, a="One\x00.")
    told = json.loads(call("import", "markdown", str(folder), "-n", "n", "--json", "--prune")[1])
    assert [row["where"] for row in told["rejected"]] == ["a.md"]
    assert json.loads(call("get", "a.md", "-n", "n", "--json")[1])["text"] == "One."


def ids(call: Call) -> dict[str, str]:
    return {memory["id"]: memory["text"] for memory in json.loads(call("list", "-n", "n", "--json")[1])["memories"]}


def test_two_vaults_of_one_name_lose_nothing_to_each_other(call: Call, tmp_path: Path) -> None:
    one = vault(tmp_path / "x" / "Notes", a="One.", b="Both have it. [[a]]")
    two = vault(tmp_path / "y" / "Notes", b="Other. [[c]] [[a]]", c="Three.")

    def told(folder: Path, *more: str) -> tuple[object, ...]:
        found = json.loads(call("import", "markdown", str(folder), "-n", "n", "--json", *more)[1])
        return tuple(found[key] for key in ("remembered", "unchanged", "replaced", "gone", "pruned", "rejected"))

    assert told(one) == (2, 0, 0, [], 0, [])
    assert told(two, "--prune") == (2, 0, 0, [], 0, [])
    (apart,) = {id.partition("/")[0] for id in ids(call) if "/" in id}
    assert ids(call) == {
        "a.md": "One.", "b.md": "Both have it. a", f"{apart}/b.md": "Other. c a", f"{apart}/c.md": "Three."
    }  # fmt: skip
    stored = json.loads(call("get", f"{apart}/b.md", "-n", "n", "--json")[1])
    assert stored["metadata"]["vault"] == apart
    assert stored["metadata"]["links"] == [f"{apart}/c.md", "a"]
    (two / "c.md").unlink()
    vault(two, b="Changed.", d=b"\xff")
    vault(one, a="Changed too.")
    assert told(two, "--prune")[:5] == (0, 0, 1, [f"{apart}/c.md"], 1)
    assert told(one, "--prune") == (0, 1, 1, [], 0, [])
    assert ids(call) == {"a.md": "Changed too.", "b.md": "Both have it. a", f"{apart}/b.md": "Changed."}


def test_a_vault_that_was_moved_is_known_by_its_notes_when_that_is_said(call: Call, tmp_path: Path) -> None:
    folder = vault(tmp_path / "x" / "Notes", a="One.", b="Two.", c="Three.")
    call("import", "markdown", str(folder), "-n", "n")
    (tmp_path / "y").mkdir()
    moved = folder.rename(tmp_path / "y" / "Notes")
    vault(moved, c="Changed.")
    told = json.loads(call("import", "markdown", str(moved), "-n", "n", "--json", "--prune", "--moved")[1])
    assert (told["remembered"], told["unchanged"], told["replaced"], told["gone"]) == (0, 0, 3, [])
    assert ids(call) == {"a.md": "One.", "b.md": "Two.", "c.md": "Changed."}


@pytest.mark.slow
def test_two_transcripts_of_one_name_lose_nothing_to_each_other(call: Call, tmp_path: Path) -> None:
    def transcript(folder: str, *said: str) -> Path:
        path = tmp_path / folder / "chat.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps({"role": "user", "content": text}) + "\n" for text in said))
        return path

    def told(path: Path) -> tuple[object, ...]:
        found = json.loads(call("import", "chat", str(path), "-n", "n", "--json")[1])
        return found["remembered"], found["unchanged"], found["rejected"]

    assert told(transcript("x", "Hi.", "The owl hoots.", "It hoots again.")) == (3, 0, [])
    assert told(transcript("y", "Hi.", "A ferry came.", "It left.")) == (3, 0, [])
    assert sorted(ids(call).values()) == [
        "A ferry came.",
        "Hi.",
        "Hi.",
        "It hoots again.",
        "It left.",
        "The owl hoots.",
    ]
    (apart,) = {id.rpartition(":")[0] for id in ids(call)} - {"chat"}
    assert ids(call)[f"{apart}:1"] == "A ferry came."
    assert told(transcript("y", "Hi.", "A ferry came.", "It left.", "Late.")) == (1, 3, [])
    assert told(transcript("x", "Hi.", "The owl hoots.", "It hoots again.", "Late.")) == (1, 3, [])
    moved = transcript("z", "Hi.", "The owl hoots.", "It hoots again.", "Late.")
    assert told(moved) == (0, 4, [])
    assert len(ids(call)) == 8


def test_a_refused_row_names_the_fields_that_differ_and_rows_with_one_reason_share_a_line(
    call: Call, tmp_path: Path
) -> None:
    table = tmp_path / "t.csv"

    def told(*rows: str) -> list[str]:
        table.write_text("\n".join(("id,title,text,colour", *rows)) + "\n", encoding="utf-8")
        err = call("import", "csv", str(table), "-n", "n")[2]
        return [line for line in err.splitlines() if line.startswith("  line")]

    rows = [f"m{number},Tea,Tea of {number}.,red" for number in range(1, 22)]
    assert told(*rows) == []
    rest = "import with --replace to change it."
    assert told(*rows[:6], "m7,Tea,Rum of 7.,red", *rows[7:]) == [
        f"  line 8: The id 'm7' is already stored with another text; {rest}"
    ]
    assert told("m1,Rum,Rum of 1.,red", *rows[1:]) == [
        f"  line 2: The id 'm1' is already stored with another text and title; {rest}"
    ]
    assert told(rows[0].replace("Tea of", "Rum of"), *(row.replace("red", "blue") for row in rows[1:])) == [
        f"  line 2: The id 'm1' is already stored with another text; {rest}",
        f"  line 3: The id 'm2' is already stored with other metadata ('colour'); {rest} "
        "So 19 more rows: line 4, line 5, line 6, line 7, line 8, …",
    ]


def test_a_refused_row_says_nothing_about_a_sensitive_memory(call: Call, tmp_path: Path) -> None:
    call("remember", "The pin is 4711.", "--id", "pin", "--sensitive", "-n", "n")
    table = tmp_path / "t.csv"
    for text, title in (("The pin is 4712.", ""), ("The pin is 4711.", "Guess")):
        table.write_text(f"id,text,title,sensitive\npin,{text},{title},yes\n", encoding="utf-8")
        assert "The id 'pin' is already stored with other content; " in call("import", "csv", str(table), "-n", "n")[2]


def test_a_note_without_its_front_matter_is_imported_in_part_and_is_no_bad_row(call: Call, tmp_path: Path) -> None:
    folder = vault(tmp_path / "v", a="---\ntitle: [broken\n---\nOne.", b="Two.")
    for counts in ("Imported 2 memories", "2 were there already"):
        _, out, err = call("import", "markdown", str(folder), "-n", "n")
        assert counts in " ".join(out.split())
        assert "0 rows were bad." in " ".join(out.split())
        assert "1 row was imported in part:\n  a.md:3: its front matter is left out: it is not YAML: " in err
    found = json.loads(call("import", "markdown", str(folder), "-n", "n", "--json")[1])
    assert (found["rejected"], [row["where"] for row in found["incomplete"]]) == ([], ["a.md:3"])
