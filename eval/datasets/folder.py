"""The plain form: a folder with questions in ``queries.jsonl`` beside memories in any form that semmem imports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eval.datasets.corpus import Corpus, DatasetError, Query
from eval.datasets.source import Source, build, first_row, text_of

__all__ = ["MEMORIES", "NAME", "advice", "load", "question", "recognises"]

NAME = "folder"
MEMORIES = {
    "documents.jsonl": "jsonl",
    "documents.csv": "csv",
    "documents": "markdown",
    "chat.jsonl": "chat",
    "chat.json": "chat",
    "mcp.jsonl": "mcp",
    "mcp.json": "mcp",
    "mem0.jsonl": "mem0",
    "mem0.json": "mem0",
}
"""What holds the memories, and the form that ``semmem import`` reads it as; ``documents`` is a folder of notes."""
_APART = frozenset({"unanswerable", "abstention", "adversarial"})
_STRATUM = ("stratum", "type", "category")
_READ = frozenset({"id", "question", "text", "query", "gold_ids", "namespace", *_STRATUM})


def recognises(path: Path) -> bool:
    """Tell whether ``path`` is a folder with questions and memories, and not LoCoMo's rows."""
    names = [name for name in MEMORIES if (path / name).exists()]
    return bool(names) and (path / "queries.jsonl").is_file() and "dia_id" not in first_row(path / "documents.jsonl")


def advice(path: Path) -> str:
    """Return what to put into ``path``, whose form is not known, so that it has this form."""
    names = [name for name in MEMORIES if (path / name).exists()]
    if names:
        return f"put your questions beside {names[0]}, as queries.jsonl"
    return f"put memories there, as one of {', '.join(MEMORIES)}, and questions as queries.jsonl"


def load(path: Path) -> Corpus:
    """Read the folder. The memories are what ``semmem import`` stores of the one file that is named in ``MEMORIES``.

    A memory may name its ``namespace``; without one it is the folder's name. Questions have ``id``, ``question``
    and ``gold_ids``, and a ``stratum`` (or ``type``, ``category``); they are asked of the memories' one namespace,
    or of the one they name. Raises DatasetError.
    """
    source = Source(path)
    names = [name for name in MEMORIES if (path / name).exists()]
    if len(names) != 1:
        raise DatasetError(f"{path} holds {', '.join(names) or 'no memories'}; put one of {', '.join(MEMORIES)} there.")
    memories = source.imported(MEMORIES[names[0]], names[0], path.name)
    spaces = list(dict.fromkeys(str(memory["namespace"]) for _, memory in memories))
    space = spaces[0] if len(spaces) == 1 else path.name
    queries = []
    for where, row in source.rows("queries.jsonl", ("id", "gold_ids")):
        if spaces and space not in spaces and not row.get("namespace"):
            raise DatasetError(f"{where} names no 'namespace'; {names[0]} has memories in {', '.join(spaces[:5])}.")
        queries.append((where, question(row, where, space)))
    return build(path.name, NAME, memories, queries, source)


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
