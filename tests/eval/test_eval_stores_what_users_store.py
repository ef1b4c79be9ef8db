"""The harness measures what people store: of every form that semmem imports, both stores hold the same memories."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import semmem
from eval.datasets import data_root, load
from eval.experiments.runner import ingest
from semmem.importers import FORMATS
from semmem.interfaces.cli.app import run
from semmem.model.imported_items import MARK
from semmem.model.types import Memory

STARTED = datetime.now(UTC)
DATED = {"created_at": "2026-03-01T09:00:00Z"}


def lines(path: Path, *rows: Any) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def asked(folder: Path, *gold: str) -> None:
    lines(folder / "queries.jsonl", *({"id": id, "question": f"What of {id}?", "gold_ids": [id]} for id in gold))


def jsonl(folder: Path) -> Path:
    one = {"id": 7, "text": " Redis listens on 6380.\n", "author": "ada", "session": 3, "position": 2, **DATED}
    two = {"id": "b", "text": "It is cached.", "title": "Cache", "tags": ["infra", "x"], "importance": 0.9, **DATED}
    three = {"id": "c", "text": "Stays.", "namespace": "team", "metadata": {"a": [1]}, "source": "wiki", **DATED}
    lines(folder / "documents.jsonl", one, two, three)
    asked(folder, "7", "b")
    return folder / "documents.jsonl"


def csv(folder: Path) -> Path:
    table = "id;text;author;session;position;created_at;tags;room\n"
    table += 'r1;"Two lines,\nof one cell";ada;s;4;2026-03-01;a,b;K2\nr2;Another.;;;;1772355600;;\n'
    (folder / "documents.csv").write_text(table, encoding="utf-8")
    asked(folder, "r1", "r2")
    return folder / "documents.csv"


def markdown(folder: Path) -> Path:
    notes = folder / "documents"
    (notes / "People").mkdir(parents=True)
    (notes / "People" / "Ada.md").write_text("---\ntags: [x]\ncreated: 2026-03-01\n---\n# Ada\n\nKnows [[Bo]].\n")
    (notes / "Bo.md").write_text("---\ndate: 2026-03-02\nmood: good\n---\nPlays the #cello.\n")
    asked(folder, "People/Ada.md", "Bo.md")
    return notes


def chat(folder: Path) -> Path:
    turns = [{"role": "user", "content": "Where is the key?", "timestamp": "2026-05-01T09:00:00Z"}]
    turns += [{"role": "assistant", "content": [{"type": "text", "text": "Behind the radio."}]}]
    lines(
        folder / "chat.jsonl", {"id": "c9", "messages": turns}, {"session": "s", "author": "Bo", "text": "x", "ts": 1e9}
    )
    asked(folder, "c9:0", "c9:1")
    return folder / "chat.jsonl"


def mem0(folder: Path) -> Path:
    one = {"id": "m1", "memory": "Likes tea.", "user_id": "ada", "run_id": 4, "categories": ["taste"], **DATED}
    (folder / "mem0.json").write_text(json.dumps({"results": [one]}), encoding="utf-8")
    asked(folder, "m1")
    return folder / "mem0.json"


def mcp(folder: Path) -> Path:
    entity = {"type": "entity", "name": "Petra_Lindqvist", "entityType": "person", "observations": ["Born in 1980."]}
    tie = {"type": "relation", "from": "Petra_Lindqvist", "to": "Kestrel", "relationType": "hasDesigned"}
    lines(folder / "mcp.jsonl", entity, tie)
    asked(folder, "Petra_Lindqvist|hasDesigned|Kestrel")
    return folder / "mcp.jsonl"


def locomo(folder: Path) -> Path:
    turn = {"conv": "c1", "session": 1, "date_time": "1:56 pm on 8 May, 2023", "speaker": "Ann"}
    later = {**turn, "conv": "c2", "dia_id": "D1:1", "text": "Elsewhere."}
    rows = [{**turn, "dia_id": "D1:1", "text": "Look! "}, {**turn, "dia_id": "D1:2", "blip_caption": "a dog"}, later]
    lines(folder / "documents.jsonl", *rows)
    row = {"id": "q", "conv": "c1", "question": "What?", "category": 1, "evidence_raw": ["D1:2"]}
    lines(folder / "queries.jsonl", row)
    return folder / "documents.jsonl"


def longmemeval(folder: Path) -> Path:
    turns = [{"role": "user", "content": "I moved. "}, {"role": "assistant", "content": "Where to?"}]
    lines(folder / "documents_sessions.jsonl", {"id": "s0", "date": "2023/05/30 (Tue) 21:48", "turns": turns})
    lines(folder / "queries.jsonl", {"id": "q", "question": "?", "type": "single", "gold_sessions": ["s0"]})
    return folder / "documents_sessions.jsonl"


WRITTEN: dict[str, Callable[[Path], Path]] = {
    one.__name__: one for one in (chat, csv, jsonl, locomo, longmemeval, markdown, mcp, mem0)
}


def stored(url: str) -> dict[str, tuple[Any, ...]]:
    """Return all memories of a store, by id, without their namespace: ``import`` is told it, a data set says it."""
    fields: dict[str, tuple[Any, ...]] = {}
    with semmem.connect(url, embedder="none", recipe="lexical") as mem:
        for namespace in ("default", "set", "team", "c1", "c2"):
            for m in mem.list(namespace=namespace, limit=1000):
                dated = m.created_at if m.created_at < STARTED else "when it was stored"
                assert m.id not in fields
                fields[m.id] = (*_fields(m), dated)
    return fields


def _fields(m: Memory) -> tuple[Any, ...]:
    metadata = {key: value for key, value in m.metadata.items() if key != MARK}  # which file: for --replace alone
    return (m.text, m.title, m.author, m.session, m.position, m.source, m.tags, metadata, m.importance)


def import_and_evaluate(format: str, file: Path, data: Path, tmp_path: Path) -> tuple[Any, Any]:
    """Return what ``semmem import`` stores of ``file``, and what eval stores of the set ``data``."""
    by_import, by_eval = f"sqlite://{tmp_path / 'import.db'}", f"sqlite://{tmp_path / 'eval.db'}"
    assert run(["import", format, str(file), "--url", by_import]) == 0
    with semmem.connect(by_eval, embedder="none", recipe="lexical") as mem:
        ingest(mem, load(data))
    return stored(by_import), stored(by_eval)


IMPORTED_FIRST = {"chatgpt", "documents", "git", "sessions", "transcript"}
"""Formats that are imported first, and evaluated in their store."""


def test_every_form_that_semmem_imports_can_be_evaluated() -> None:
    assert set(WRITTEN) == set(FORMATS) - IMPORTED_FIRST


@pytest.mark.parametrize("format", sorted(WRITTEN))
def test_eval_stores_what_import_stores(format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMMEM_EMBEDDER", "none")
    data = tmp_path / "set"
    data.mkdir()
    file = WRITTEN[format](data)
    by_import, by_eval = import_and_evaluate(format, file, data, tmp_path)
    assert by_import == by_eval
    assert len(by_import) >= 1


@pytest.mark.parametrize("format", ["locomo", "longmemeval"])
def test_so_it_does_of_the_authors_own_files(format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMMEM_EMBEDDER", "none")
    turns = [{"speaker": "Ann", "dia_id": "D1:1", "text": "Look!", "blip_caption": "a dog"}]
    talk = {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    qa = [{"question": "What?", "answer": "a dog", "evidence": ["D1:1"], "category": 1}]
    messages = [{"role": "user", "content": "I moved."}, {"role": "assistant", "content": "Where to?"}]
    whole: dict[str, Any] = {
        "locomo": {"sample_id": "c1", "conversation": talk, "qa": qa},
        "longmemeval": {
            "question_id": "c1",
            "question": "Where?",
            "question_type": "single",
            "haystack_sessions": [messages],
            "haystack_session_ids": ["s0"],
            "haystack_dates": ["2023/05/30 (Tue) 21:48"],
            "answer_session_ids": ["s0"],
        },
    }
    file = tmp_path / "own.json"
    file.write_text(json.dumps([whole[format]]), encoding="utf-8")
    by_import, by_eval = import_and_evaluate(format, file, file, tmp_path)
    assert by_import == by_eval
    assert len(by_import) >= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format", "name", "file"),
    [
        ("jsonl", "agentnotes_a", "documents.jsonl"),
        ("locomo", "locomo3", "documents.jsonl"),
        ("longmemeval", "longmemeval_mini", "documents_sessions.jsonl"),
    ],
)
def test_of_the_shared_sets_too(
    format: str, name: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (data_root() / name).is_dir():
        pytest.skip(f"{name} is not here; set SEMMEM_EVAL_DATA to where the shared sets lie")
    monkeypatch.setenv("SEMMEM_EMBEDDER", "none")
    data = data_root() / name
    corpus = load(data)
    by_import = f"sqlite://{tmp_path / 'import.db'}"
    assert run(["import", format, str(data / file), "--url", by_import]) == 0
    with semmem.connect(by_import, embedder="none", recipe="lexical") as mem:
        stored_fields = {m.id: (*_fields(m), m.created_at) for m in _all(mem)}
    with semmem.connect(f"sqlite://{tmp_path / 'eval.db'}", embedder="none", recipe="lexical") as mem:
        ingest(mem, corpus)
        measured = {m.id: (*_fields(m), m.created_at) for space in corpus.namespaces for m in _all(mem, space)}
    assert stored_fields == measured
    assert len(stored_fields) == len(corpus.memories)


def _all(mem: Any, namespace: str = "default") -> list[Memory]:
    out: list[Memory] = []
    cursor = None
    while True:
        page = mem.list(namespace=namespace, limit=1000, cursor=cursor)
        out += page
        cursor = page.cursor
        if cursor is None:
            return out
