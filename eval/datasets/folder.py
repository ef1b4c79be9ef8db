"""The plain form: a folder with ``documents.jsonl`` and ``queries.jsonl``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eval.datasets.corpus import Corpus, DatasetError, Query
from eval.datasets.reading import Source, build, first_row, moment, text_of

__all__ = ["NAME", "load", "question", "recognises"]

NAME = "folder"
_PASSED_ON = ("title", "author", "session", "position", "source", "importance")
_APART = frozenset({"unanswerable", "abstention", "adversarial"})
_STRATUM = ("stratum", "type", "category")
_READ = frozenset({"id", "question", "text", "query", "gold_ids", "namespace", *_STRATUM})


def recognises(path: Path) -> bool:
    """Tell whether ``path`` is a folder with both files, and not LoCoMo's rows."""
    documents = path / "documents.jsonl"
    return documents.is_file() and (path / "queries.jsonl").is_file() and "dia_id" not in first_row(documents)


def load(path: Path) -> Corpus:
    """Read the folder. Rows have ``id`` and ``text``; author, session, created_at, tags, ... pass through.

    A row may name its ``namespace``; without one it is the folder's name. Questions have ``id``, ``question``
    and ``gold_ids``, and a ``stratum`` (or ``type``, ``category``). Raises DatasetError.
    """
    source = Source(path)
    memories = [
        (where, _memory(row, where, path.name)) for where, row in source.rows("documents.jsonl", ("id", "text"))
    ]
    queries = [
        (where, question(row, where, path.name)) for where, row in source.rows("queries.jsonl", ("id", "gold_ids"))
    ]
    return build(path.name, NAME, memories, queries, source)


def _memory(row: Mapping[str, Any], where: str, namespace: str) -> dict[str, Any]:
    memory: dict[str, Any] = {
        "namespace": str(row.get("namespace") or namespace),
        "id": str(row["id"]),
        "text": text_of(row["text"], where, "text"),
    }
    memory.update({key: row[key] for key in _PASSED_ON if row.get(key) is not None})
    if "session" in memory:
        memory["session"] = str(memory["session"])
    if row.get("created_at"):
        memory["created_at"] = moment(str(row["created_at"]), where)
    if row.get("tags"):
        memory["tags"] = tuple(str(tag) for tag in row["tags"])
    if isinstance(row.get("metadata"), dict) and row["metadata"]:
        memory["metadata"] = row["metadata"]
    return memory


def question(row: Mapping[str, Any], where: str, namespace: str) -> Query:
    """Read one row of a ``queries.jsonl``: the form the user's own questions have too."""
    gold = row["gold_ids"]
    if not isinstance(gold, list):
        raise DatasetError(f"{where} has 'gold_ids' that is not a list; write [] where nothing answers.")
    stratum = next((str(row[key]) for key in _STRATUM if row.get(key) is not None), "all")
    text = next((row[key] for key in ("question", "text", "query") if key in row), None)
    return Query(
        id=str(row["id"]),
        text=text_of(text, where, "question"),
        namespace=str(row.get("namespace") or namespace),
        gold=tuple(dict.fromkeys(str(id) for id in gold)),
        stratum=stratum,
        apart=not gold or stratum in _APART,
        extra=dict(_extra(row)),
    )


def _extra(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        if key.endswith("_ids") and isinstance(value, list) and key != "gold_ids":
            yield key, tuple(str(id) for id in value)
        elif key not in _READ:
            yield key, value
