"""LongMemEval (Wu et al. 2024): long chat sessions, one turn a memory, as ``semmem import longmemeval`` stores them.

Gold is a session: it is found where any turn of it is. Read from a folder with ``documents_sessions.jsonl`` (all
sessions pooled in one namespace) or from the authors' own files, where each question has a haystack of its own and so
a namespace of its own, unless ``pooled``. Abstention questions (ids that end in ``_abs``) are kept apart and have no
gold.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval.datasets.corpus import Corpus, DatasetError, Query
from eval.datasets.source import Source, build, first_item
from semmem.importers import longmemeval
from semmem.model.errors import InvalidInput

__all__ = ["NAME", "load", "recognises"]

NAME = "longmemeval"


def recognises(path: Path) -> bool:
    """Tell whether ``path`` is one of LongMemEval's own files or a folder of its sessions."""
    if path.is_dir():
        return (path / "documents_sessions.jsonl").is_file()
    return "haystack_sessions" in first_item(path)


def load(path: Path, *, pooled: bool = False) -> Corpus:
    """Read the folder or the file; ``pooled`` puts all haystacks of the file in one namespace. Raises DatasetError."""
    return _rows(path) if path.is_dir() else _own_file(path, pooled)


def _rows(path: Path) -> Corpus:
    source = Source(path)
    notes: Counter[str] = Counter()
    memories = source.imported("longmemeval", "documents_sessions.jsonl", path.name, notes)
    turns = _turns(memories)
    queries = []
    for where, row in source.rows("queries.jsonl", ("id", "question", "type", "gold_sessions")):
        gold = tuple(str(id) for id in row["gold_sessions"])
        stratum = str(row["type"])
        apart = stratum == "abstention" or not gold
        extra = {"answer": row.get("answer")}
        any_of = _any_of(gold, path.name, turns)
        query = Query(str(row["id"]), str(row["question"]), path.name, gold, stratum, apart, extra, any_of)
        queries.append((where, query))
    return build(path.name, NAME, memories, queries, source, notes)


def _own_file(path: Path, pooled: bool) -> Corpus:
    source = Source(path.parent)
    notes: Counter[str] = Counter()
    items = source.items(path.name, ("question_id", "question", "question_type"))
    memories = (
        source.imported("longmemeval", path.name, path.stem, notes)
        if pooled
        else _haystacks(source, path.name, [str(item["question_id"]) for _, item in items], notes)
    )
    turns = _turns(memories)
    queries = []
    for where, item in items:
        id = str(item["question_id"])
        namespace = path.stem if pooled else id
        abstain = id.endswith("_abs")
        gold = () if abstain else tuple(str(session) for session in item.get("answer_session_ids") or ())
        stratum = "abstention" if abstain else str(item["question_type"])
        extra = {"answer": item.get("answer"), "asked_at": item.get("question_date")}
        any_of = _any_of(gold, namespace, turns)
        queries.append((where, Query(id, str(item["question"]), namespace, gold, stratum, not gold, extra, any_of)))
    return build(path.stem, NAME, memories, queries, source, notes)


def _haystacks(source: Source, name: str, ids: list[str], notes: Counter[str]) -> list[tuple[str, dict[str, Any]]]:
    """Return the turns of every question's haystack in a namespace of its own, each session of it once."""
    path = source.path(name)
    reject = source.rejecting(path, notes)
    sessions: set[tuple[int, str]] = set()
    memories = []
    try:
        for where, number, session, date, turns in longmemeval.sessions(path, reject):
            if (number, session) not in sessions:
                sessions.add((number, session))
                for item in longmemeval.turns_of(where, session, date, turns, reject):
                    memories.append(source.memory(path, item, ids[number - 1]))
    except InvalidInput as error:
        raise DatasetError(error.message) from None
    return memories


def _turns(memories: list[tuple[str, dict[str, Any]]]) -> Mapping[tuple[str, str], list[str]]:
    """Return the ids of the turns by namespace and session."""
    out: dict[tuple[str, str], list[str]] = defaultdict(list)
    for _, memory in memories:
        out[memory["namespace"], memory["session"]].append(memory["id"])
    return out


def _any_of(
    gold: tuple[str, ...], namespace: str, turns: Mapping[tuple[str, str], list[str]]
) -> dict[str, tuple[str, ...]]:
    return {session: tuple(turns[namespace, session]) for session in gold if (namespace, session) in turns}
