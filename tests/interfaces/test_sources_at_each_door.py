"""What a source still has is never forgotten, and comes through a server as it comes into an open store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.client.file_import import FileImport
from semmem.client.folder_sync import sync_once
from semmem.client.http_request import lines
from semmem.client.memory import Semmem
from semmem.importers import mem0, reader, told_apart
from semmem.interfaces.claude_memory import MemoryFiles
from semmem.interfaces.mem0 import Memory
from semmem.model.errors import InvalidInput
from semmem.model.imported_items import Item, exported_item
from semmem.write.sync import ImportReport
from tests.serving import running

KEY = "AKIA" + "ABCDEFGH12345678"


@contextmanager
def opened(door: str) -> Iterator[Semmem]:
    with semmem.connect("sqlite::memory:", embedder="none") as here:
        if door == "store":
            yield here
        else:
            with running(here) as server, semmem.connect(server.url) as there:
                yield there


def bring(mem: Semmem, format: str, source: Path) -> ImportReport:
    return FileImport(format, [source], {}, namespace="default", redacts=True).run(
        mem, on_error="skip", batch_size=500, replace=False, moved=False, prune=True,
        unowned=lambda: None, progress=lambda report: None,
    )  # fmt: skip


def ids(mem: Semmem) -> list[str]:
    return sorted(memory.id for memory in mem.list())


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_text("# A\none")
    (folder / "sub" / "b.md").write_text("# B\ntwo")
    return folder


@pytest.mark.parametrize("door", ["store", "server"])
def test_a_note_that_cannot_be_read_is_not_pruned(door: str, notes: Path) -> None:
    with opened(door) as mem:
        bring(mem, "markdown", notes)
        (notes / "sub" / "b.md").write_bytes(b"# B\n\xff")
        report = bring(mem, "markdown", notes)
        assert (report.gone, report.pruned) == ((), 0)
        assert ids(mem) == ["a.md", "sub/b.md"]
        (notes / "sub" / "b.md").unlink()
        assert bring(mem, "markdown", notes).gone == ("sub/b.md",)


def test_a_folder_that_cannot_be_listed_is_refused_and_its_notes_stay(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened("store") as mem:
        bring(mem, "markdown", notes)
        scan = os.scandir

        def barred(place: Any = ".") -> Any:
            if str(place).endswith("sub"):
                raise PermissionError(13, "Permission denied", str(place))
            return scan(place)

        monkeypatch.setattr(os, "scandir", barred)
        with pytest.raises(InvalidInput, match=r"sub cannot be listed \(Permission denied\), so nothing was imported"):
            bring(mem, "markdown", notes)
        with pytest.raises(InvalidInput, match="cannot be listed"):
            sync_once(mem, notes, namespace="default", write=False)
        assert ids(mem) == ["a.md", "sub/b.md"]


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has one file for both names")
def test_two_notes_whose_names_give_one_id_are_told_and_the_first_is_kept(notes: Path) -> None:
    (notes / "e\u0301.md").write_text("decomposed")
    with opened("store") as mem:
        assert sync_once(mem, notes, namespace="default", write=False)["bad"] == []
        (notes / "\xe9.md").write_text("composed")
        for write in (False, True):
            done = sync_once(mem, notes, namespace="default", write=write)
            assert (done["unchanged"], done["forgotten"]) == (3, 0)
            assert done["bad"] == [
                "\xe9.md: the names '\\xe9.md' and 'e\\u0301.md' give this id both; rename the first of them."
            ]
        assert mem.get("\xe9.md").text == "decomposed"
        (notes / "e\u0301.md").write_bytes(b"\xff")
        assert sync_once(mem, notes, namespace="default", write=False)["forgotten"] == 0
        mem.update("\xe9.md", text="decomposed in Kiel")
        (notes / "e\u0301.md").write_text("decomposed")
        assert sync_once(mem, notes, namespace="default", write=True)["written"] == 1
        assert (notes / "e\u0301.md").read_text() == "decomposed in Kiel"
        assert (notes / "\xe9.md").read_text() == "composed"


def repository(tmp_path: Path, record: bytes) -> tuple[Path, Any]:
    place = tmp_path / "code"
    (place / "docs" / "adr").mkdir(parents=True)

    def git(*words: str) -> None:
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        subprocess.run(["git", *who, "-C", str(place), *words], check=True, capture_output=True)

    def commit(content: bytes) -> None:
        (place / "docs" / "adr" / "0001.md").write_bytes(content)
        git("add", ".")
        git("commit", "-qm", "A record")

    git("init", "-q")
    commit(record)
    return place, commit


def test_a_decision_that_is_no_utf_8_any_more_is_not_pruned(tmp_path: Path) -> None:
    place, commit = repository(tmp_path, b"# Cafe\n\nWe keep it.")
    with opened("store") as mem:
        bring(mem, "git", place)
        commit("# Café\n\nWe keep it.".encode("latin-1"))
        assert bring(mem, "git", place).pruned == 0
        assert len([id for id in ids(mem) if id.endswith("0001.md")]) == 1


def test_a_credential_in_a_heading_stays_in_no_title(tmp_path: Path) -> None:
    place, _ = repository(tmp_path, f"# Use {KEY} for uploads\n\nWe keep it.".encode())
    with opened("store") as mem:
        bring(mem, "git", place)
        (record,) = (memory for memory in mem.list() if memory.id.endswith("0001.md"))
        assert KEY not in str(record)
        assert record.title is not None
        assert record.title.startswith("Use AKIA")


def test_a_move_from_mem0_keeps_role_actor_and_the_day_of_expiry(tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    row = {"id": "1", "memory": "The badge is blue.", "user_id": "u", "role": "assistant", "actor_id": "bot"}
    rows = [row, {**row, "id": "2", "memory": "It was red.", "expiration_date": "2020-01-01"}]
    file.write_text(json.dumps({"results": rows}))
    with opened("store") as mem:
        mem.import_items(mem0.read(file), namespace="mem0")
        (shown,) = Memory(memory=mem).get_all(user_id="u")["results"]
        assert (shown["id"], shown["role"], shown["actor_id"]) == ("1", "assistant", "bot")


@pytest.mark.parametrize("door", ["store", "server"])
def test_a_transcript_without_ids_is_told_apart_through_each_door(door: str, tmp_path: Path) -> None:
    file = tmp_path / "c.jsonl"
    file.write_text(json.dumps({"role": "user", "content": "Hello there."}) + "\n")
    with opened(door) as mem:
        assert told_apart("chat", file, mem, "default") == {"name": "c"}
        mem.import_items(reader("chat")(file), namespace="default")
        file.write_text(json.dumps({"role": "user", "content": "Something else."}) + "\n")
        assert told_apart("chat", file, mem, "default")["name"].startswith("c-")


def test_a_row_of_an_export_goes_to_a_server_with_all_that_it_has() -> None:
    row = {"id": "a", "text": "x", "text_at": "2026-01-02T00:00:00+00:00", "embedder": "f", "vectors": {"k": "AAAA"}}
    _, line = lines({}, [exported_item("line 1", {**row, "version": 2})])
    assert json.loads(line) == {**row, "source_type": None}


@pytest.mark.parametrize("door", ["store", "server"])
def test_links_of_an_item_are_no_sign_of_an_export_so_its_source_type_is_imported_through_each_door(door: str) -> None:
    linked = Item({"id": "b", "text": "Two."})
    linked.links = [{"type": "see-also", "to": "a"}]
    rows: list[dict[str, Any]] = [
        {"id": "a", "text": "One."},
        linked,
        {"id": "c", "text": "Three.", "links": [{"type": "see-also", "to": "a"}]},
        {"id": "d", "text": "Four.", "links": [{"type": "see-also", "to": "a"}], "version": 1},
        exported_item("line 1", {"id": "e", "text": "Five.", "untimed": True, "version": 1}),
    ]
    with opened(door) as mem:
        assert mem.import_items(rows).linked == 3
        assert {memory.id: memory.source_type for memory in mem.list()} == {
            "a": "imported", "b": "imported", "c": "imported", "d": None, "e": None,
        }  # fmt: skip


@pytest.mark.parametrize("door", ["store", "server"])
def test_a_ttl_may_be_a_timedelta_through_each_door(door: str) -> None:
    with opened(door) as mem:
        memory = mem.remember("The gate is open.", ttl=timedelta(days=1))
        assert memory.created_at is not None
        assert memory.expires_at is not None
        assert timedelta(hours=23) < memory.expires_at - memory.created_at < timedelta(hours=25)


def test_a_memory_file_keeps_all_that_it_is_when_it_is_renamed_and_edited() -> None:
    with opened("store") as mem:
        mem.remember("one", id="/memories/a.md", namespace="claude", pinned=True, ttl="1d", metadata={"project": "x"})
        before = mem.get("/memories/a.md", namespace="claude")
        files = MemoryFiles(mem)
        files.run({"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/b.md"})
        moved = mem.get("/memories/b.md", namespace="claude")
        assert (moved.pinned, moved.expires_at, moved.metadata) == (True, before.expires_at, {"project": "x"})
        files.run({"command": "str_replace", "path": "/memories/b.md", "old_str": "one", "new_str": "two"})
        assert mem.get("/memories/b.md", namespace="claude").metadata == {"project": "x"}


def test_a_folder_with_a_sensitive_file_is_not_renamed_in_part() -> None:
    with opened("store") as mem:
        mem.remember("one", id="/memories/f/a.md", namespace="claude")
        mem.remember("two", id="/memories/f/b.md", namespace="claude", sensitive=True)
        said = MemoryFiles(mem).run({"command": "rename", "old_path": "/memories/f", "new_path": "/memories/g"})
        assert "is sensitive and not shown here" in said[0]
        assert sorted(one.id for one in mem.list(namespace="claude")) == ["/memories/f/a.md", "/memories/f/b.md"]
