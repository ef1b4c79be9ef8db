"""What is imported says when it is valid and when it expires, whether it is secret, pinned and important."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.importers import BadRow, owned, reader
from semmem.model.errors import BadItem
from semmem.model.types import Memory
from semmem.write.sync import ImportReport

LATE = "2091-05-03T00:00:00+00:00"
GIVEN: dict[str, Any] = {
    "importance": 0.9, "sensitive": True, "pinned": True, "expires_at": LATE, "valid_from": "2020-05-03",
    "valid_to": "2024-05-03T12:00:00Z",
}  # fmt: skip


@pytest.fixture
def mem() -> Iterator[semmem.Semmem]:
    with semmem.connect("sqlite::memory:", embedder="none") as opened:
        yield opened


def life(memory: Memory) -> dict[str, Any]:
    """Return these fields of a memory as they were given."""
    times = {name: getattr(memory, name) for name in ("valid_from", "valid_to", "expires_at")}
    assert times["valid_from"] == datetime(2020, 5, 3, tzinfo=UTC)
    assert times["valid_to"] == datetime(2024, 5, 3, 12, tzinfo=UTC)
    assert times["expires_at"] == datetime.fromisoformat(LATE)
    return {name: getattr(memory, name) for name in ("importance", "sensitive", "pinned")}


WHOLE = {"importance": 0.9, "sensitive": True, "pinned": True}


def brought(mem: semmem.Semmem, format: str, path: Path) -> ImportReport:
    return mem.import_items(reader(format)(path), namespace="n", on_error="skip")


def written(folder: Path, format: str, given: dict[str, Any]) -> Path:
    """Write one memory called "a" in a format; return what is read."""
    if format == "markdown":
        lines = [f"{name}: {json.dumps(value)}" for name, value in given.items()]
        (folder / "a.md").write_text("\n".join(["---", *lines, "---", "The code is 5432.", ""]), encoding="utf-8")
        return folder
    path = folder / {"csv": "a.csv", "jsonl": "a.jsonl", "chat": "a.json"}[format]
    row = {"id": "a.md", **given}
    if format == "csv":
        cells = [json.dumps(value) if isinstance(value, bool) else str(value) for value in row.values()]
        path.write_text(f"text,{','.join(row)}\nThe code is 5432.,{','.join(cells)}\n", encoding="utf-8")
    elif format == "jsonl":
        path.write_text(json.dumps({"text": "The code is 5432.", **row}) + "\n", encoding="utf-8")
    else:
        path.write_text(json.dumps([{"role": "user", "content": "The code is 5432.", **row}]), encoding="utf-8")
    return path


FORMATS = pytest.mark.parametrize("format", ["csv", "jsonl", "chat", "markdown"])


@pytest.mark.slow
@FORMATS
def test_each_format_takes_them_and_again_changes_nothing(mem: semmem.Semmem, format: str, tmp_path: Path) -> None:
    path = written(tmp_path, format, GIVEN)
    assert brought(mem, format, path).remembered == 1
    stored = mem.get("a.md", namespace="n", reveal=True)
    assert (stored.text, life(stored)) == ("The code is 5432.", WHOLE)
    assert {"importance", "sensitive", "pinned", "valid_to", "note_hash"}.isdisjoint(stored.metadata)
    assert mem.recall("code", namespace="n").hits == ()
    again = brought(mem, format, path)
    assert (again.unchanged, again.rejected) == (1, ())


@FORMATS
@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("valid_to", "soon", "'soon'"),
        ("valid_from", "2030-01-01", "must be before valid_to"),
        ("expires_at", "2001-01-01", "expires_at is in the past, so the memory would never be seen"),
        ("ttl", "long", "ttl must be a number of seconds, or such as 30d"),
        ("ttl", "30d", "Give expires_at or ttl, not both"),
        ("sensitive", "perhaps", "sensitive must be "),
        ("pinned", 7, "pinned must be "),
    ],
)
def test_what_is_wrong_is_refused_in_one_sentence_and_nothing_is_stored(
    mem: semmem.Semmem, format: str, name: str, value: Any, why: str, tmp_path: Path
) -> None:
    given = {**GIVEN, name: value, **({"expires_at": ""} if value == "long" else {})}
    path = written(tmp_path, format, {key: one for key, one in given.items() if one != ""})
    bad: list[BadRow] = []
    items = list(reader(format)(path, reject=bad.append))
    reasons = [row.reason for row in bad]
    if items:
        reasons += [row.reason for row in mem.import_items(items, namespace="n", on_error="skip").rejected]
    assert len(reasons) == 1
    assert why in reasons[0]
    assert mem.stats(namespace="n").memories == 0


@FORMATS
def test_a_time_to_live_counts_from_the_first_import(mem: semmem.Semmem, format: str, tmp_path: Path) -> None:
    path = written(tmp_path, format, {"ttl": "30d"})
    brought(mem, format, path)
    first = mem.get("a.md", namespace="n").expires_at
    assert first is not None
    assert timedelta(29) < first - datetime.now(UTC) < timedelta(30)
    assert brought(mem, format, path).unchanged == 1
    assert mem.get("a.md", namespace="n").expires_at == first


def test_an_item_that_gets_a_time_to_live_later_changes_its_memory_once(mem: semmem.Semmem) -> None:
    item = {"id": "a", "text": "The code is 5432."}
    anything = {"authors": ["Ada"]}
    mem.import_items([item | {"author": "Ada"}])
    report = mem.import_items([item | {"author": "Ada", "ttl": "30d"}], owned=anything, replace=True)
    assert (report.replaced, report.unchanged) == (1, 0)
    assert mem.get("a").expires_at is not None
    report = mem.import_items([item | {"author": "Ada", "ttl": "30d"}], owned=anything, replace=True)
    assert (report.replaced, report.unchanged) == (0, 1)


def test_keys_of_metadata_that_a_marked_import_leaves_out_stay_and_its_own_are_replaced(mem: semmem.Semmem) -> None:
    source = {"owned": {"metadata": {"from": "a.csv"}}, "mark": {"from": "a.csv"}, "replace": True}
    mem.import_items([{"id": "a", "text": "The code is 5432.", "metadata": {"page": 1, "mine": True}}], **source)
    report = mem.import_items([{"id": "a", "text": "The code is 5433.", "metadata": {"page": 2}}], **source)
    assert (report.replaced, dict(mem.get("a").metadata)) == (1, {"from": "a.csv", "page": 2, "mine": True})
    report = mem.import_items([{"id": "a", "text": "The code is 5433.", "metadata": {"page": 3}}], **source)
    assert (report.replaced, dict(mem.get("a").metadata)) == (1, {"from": "a.csv", "page": 3, "mine": True})


def test_the_mark_of_a_file_stays_where_an_import_without_one_replaces_the_rest(mem: semmem.Semmem) -> None:
    mem.import_items(
        [{"id": "a", "text": "The code is 5432.", "author": "Ada", "metadata": {"page": 1}}],
        mark={"imported_from": "a.csv"},
    )
    changed = {"id": "a", "text": "The code is 5433.", "author": "Ada", "metadata": {"line": 7}}
    assert mem.import_items([changed], owned={"authors": ["Ada"]}, replace=True).replaced == 1
    assert dict(mem.get("a").metadata) == {"imported_from": "a.csv", "line": 7}


def test_a_note_whose_importance_is_a_word_keeps_it_as_metadata(mem: semmem.Semmem, tmp_path: Path) -> None:
    brought(mem, "markdown", written(tmp_path, "markdown", {"importance": "high", "valid_to": "2024-05-03"}))
    stored = mem.get("a.md", namespace="n")
    assert (stored.importance, stored.metadata["importance"]) == (0.5, "high")
    assert "valid_to" not in stored.metadata


def test_a_note_that_says_another_end_replaces_the_memory(mem: semmem.Semmem, tmp_path: Path) -> None:
    brought(mem, "markdown", written(tmp_path, "markdown", {"valid_to": "2024-05-03"}))
    path = written(tmp_path, "markdown", {"valid_to": "2025-05-03"})
    own = owned("markdown", path)
    report = mem.import_items(reader("markdown")(path), namespace="n", owned=own, replace=True)
    assert (report.replaced, mem.get("a.md", namespace="n").valid_to) == (1, datetime(2025, 5, 3, tzinfo=UTC))


def test_a_sensitive_row_of_a_table_needs_an_id_since_one_of_its_cells_would_tell_of_them(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,sensitive\nThe code is 5432.,yes\nThe gate is green.,no\n", encoding="utf-8")
    bad: list[BadRow] = []
    (item,) = reader("csv")(path, reject=bad.append)
    assert (item["text"], item["sensitive"]) == ("The gate is green.", False)
    assert [(row.where, row.reason) for row in bad] == [
        ("line 2", "it is sensitive and has no id, and an id made from its cells would reveal them; give it one.")
    ]
    path.write_text("text,pinned,importance,id\nx,ON,,a\n", encoding="utf-8")
    with pytest.raises(BadItem, match="line 2: its pinned must be true or false, yes or no, 1 or 0, not 'ON'"):
        list(reader("csv")(path))


def test_messages_take_them_and_what_is_wrong_stores_none(mem: semmem.Semmem) -> None:
    talk = [
        {"role": "user", "content": "The code is 5432.", **GIVEN, "tool_calls": []},
        {"role": "assistant", "content": "Fine."},
    ]
    assert mem.remember_messages(talk, session="s", position=0).remembered == 2
    assert life(mem.get("s:0")) == WHOLE
    assert (mem.get("s:1").importance, mem.get("s:1").pinned) == (0.5, False)
    assert mem.remember_messages(talk, session="s", position=0).unchanged == 2
    with pytest.raises(BadItem, match="valid_to must be an ISO 8601 time"):
        mem.remember_messages([talk[1], {**talk[1], "valid_to": "soon"}], session="t")
    assert [one.session for one in mem.list()] == ["s", "s"]
    lasting = [{"role": "user", "content": "For a day.", "ttl": "1d"}]
    for _ in range(2):
        mem.remember_messages(lasting, session="u", position=0)
    assert mem.get("u:0").expires_at is not None


def test_an_export_and_an_import_keep_all_of_it(mem: semmem.Semmem, tmp_path: Path) -> None:
    mem.remember("The code is 5432.", id="a", namespace="n", **GIVEN)
    mem.remember("The gate is green.", id="b", namespace="n", ttl="30d", pinned=True)
    path = tmp_path / "n.jsonl"
    assert [row["id"] for row in mem.export(namespace="n")] == ["b"]
    rows = mem.export(namespace="n", sensitive=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with semmem.connect("sqlite::memory:", embedder="none") as other:
        assert other.import_items(reader("jsonl")(path)).rejected == ()
        for id in ("a", "b"):
            before, after = (store.get(id, namespace="n", reveal=True) for store in (mem, other))
            assert replace(after, updated_at=before.updated_at) == before
        assert life(other.get("a", namespace="n")) == WHOLE
