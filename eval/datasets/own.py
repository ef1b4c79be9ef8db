"""Load questions with judgments about the user's own store, whose memories are there already."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from eval.datasets.corpus import Corpus, DatasetError, Query
from eval.datasets.folder import question
from eval.datasets.source import Source, text_of

__all__ = ["NAME", "load", "recognises"]

NAME = "own"


def recognises(path: Path) -> bool:
    """Tell whether ``path`` is a JSONL file: questions about a store the user names."""
    return path.is_file() and path.suffix == ".jsonl"


def load(path: Path, *, namespace: str | None = None) -> Corpus:
    """Read questions about memories that are stored in ``namespace``.

    A row is a question (``id``, ``question``, ``gold_ids``) or one judgment collected in use (``question``,
    ``memory_id``, ``grade``: above 0 is relevant); judgments of one question are gathered. A row may name its
    own ``namespace``. Whether the gold ids exist is asked of the store before the first run. Raises DatasetError.
    """
    source = Source(path.parent)
    space = namespace or "default"
    queries: dict[str, Query] = {}
    judged: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for where, row in source.rows(path.name):
        if "memory_id" in row:
            text = text_of(row.get("question"), where, "question")
            judged[str(row.get("namespace") or space), text][str(row["memory_id"])] = _grade(row, where)
            continue
        for key in ("id", "gold_ids"):
            if key not in row:
                raise DatasetError(f"{where} has no {key!r}; a row is a question with gold_ids, or one judgment.")
        query = question(row, where, space)
        if query.id in queries:
            raise DatasetError(f"{where} repeats the question id {query.id!r}; question ids are unique.")
        queries[query.id] = query
    for number, ((where_judged, text), grades) in enumerate(judged.items(), start=1):
        relevant = {id: grade for id, grade in grades.items() if grade > 0}
        id = f"judged-{number}"
        queries[id] = Query(
            id, text, where_judged, tuple(relevant), "judged in use", not relevant, {"grades": relevant}
        )
    if not queries:
        raise DatasetError(f"{path} holds no questions; add rows to it, or run `python -m eval make`.")
    return Corpus(
        name=path.stem, memories=(), queries=tuple(queries.values()), sha256=source.sha256, format=NAME, stored=True
    )


def _grade(row: dict[str, Any], where: str) -> int:
    grade = row.get("grade", 1)
    if isinstance(grade, bool):
        return int(grade)
    if not isinstance(grade, int):
        raise DatasetError(f"{where} has the grade {grade!r}; it must be a whole number, 0 for not relevant.")
    return grade
