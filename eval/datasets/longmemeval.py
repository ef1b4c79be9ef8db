"""LongMemEval (Wu et al. 2024): long chat sessions, one session a memory.

Read from a folder with ``documents_sessions.jsonl`` (all sessions pooled in one namespace) or from the authors' own
files, where each question has a haystack of its own and so a namespace of its own, unless ``pooled``.
Abstention questions (ids that end in ``_abs``) are kept apart and have no gold.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.datasets.corpus import Corpus, DatasetError, Query
from eval.datasets.reading import Source, build, moment

__all__ = ["NAME", "load", "recognises"]

NAME = "longmemeval"
_DATE = "%Y/%m/%d (%a) %H:%M"  # 2023/05/30 (Tue) 21:48


def recognises(path: Path) -> bool:
    """Tell whether ``path`` is one of LongMemEval's own files or a folder of its sessions."""
    if path.is_dir():
        return (path / "documents_sessions.jsonl").is_file()
    if path.suffix != ".json" or not path.is_file():
        return False
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return isinstance(data, list) and bool(data) and isinstance(data[0], dict) and "haystack_sessions" in data[0]


def load(path: Path, *, pooled: bool = False) -> Corpus:
    """Read the folder or the file; ``pooled`` puts all haystacks of the file in one namespace. Raises DatasetError."""
    return _rows(path) if path.is_dir() else _own_file(path, pooled)


def _rows(path: Path) -> Corpus:
    source = Source(path)
    memories = [
        (where, _memory(path.name, str(row["id"]), row["turns"], str(row["date"]), where))
        for where, row in source.rows("documents_sessions.jsonl", ("id", "date", "turns"))
    ]
    queries = []
    for where, row in source.rows("queries.jsonl", ("id", "question", "type", "gold_sessions")):
        gold = tuple(str(id) for id in row["gold_sessions"])
        stratum = str(row["type"])
        apart = stratum == "abstention" or not gold
        extra = {"answer": row.get("answer")}
        queries.append((where, Query(str(row["id"]), str(row["question"]), path.name, gold, stratum, apart, extra)))
    return build(path.name, NAME, memories, queries, source)


def _own_file(path: Path, pooled: bool) -> Corpus:
    source = Source(path.parent)
    notes: Counter[str] = Counter()
    memories: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {}
    queries = []
    required = (
        "question_id",
        "question",
        "question_type",
        "haystack_sessions",
        "haystack_session_ids",
        "haystack_dates",
    )
    for where, item in source.items(path.name, required):
        namespace = path.stem if pooled else str(item["question_id"])
        sessions, ids, dates = item["haystack_sessions"], item["haystack_session_ids"], item["haystack_dates"]
        if not len(sessions) == len(ids) == len(dates):
            raise DatasetError(f"{where} has {len(sessions)} sessions, {len(ids)} ids and {len(dates)} dates.")
        for session, id, date in zip(sessions, ids, dates, strict=True):
            if not any(str(turn.get("content", "")).strip() for turn in session):
                notes["sessions without text"] += 1
                continue
            memory = (where, _memory(namespace, str(id), session, str(date), where))
            if (namespace, str(id)) in memories:
                # The same filler session stands in many haystacks, and sometimes twice in one.
                notes["sessions met again"] += 1
            memories.setdefault((namespace, str(id)), memory)
        abstain = str(item["question_id"]).endswith("_abs")
        gold = () if abstain else tuple(str(id) for id in item.get("answer_session_ids") or ())
        stratum = "abstention" if abstain else str(item["question_type"])
        extra = {"answer": item.get("answer"), "asked_at": item.get("question_date")}
        query = Query(str(item["question_id"]), str(item["question"]), namespace, gold, stratum, not gold, extra)
        queries.append((where, query))
    return build(path.stem, NAME, memories.values(), queries, source, notes)


def _memory(namespace: str, id: str, turns: Sequence[Mapping[str, Any]], date: str, where: str) -> dict[str, Any]:
    text = "\n\n".join(str(turn["content"]).strip() for turn in turns if str(turn.get("content", "")).strip())
    if not text:
        raise DatasetError(f"{where} has the session {id} without text.")
    return {"namespace": namespace, "id": id, "text": text, "created_at": moment(date, where, _DATE)}
