"""LoCoMo (Maharana et al. 2024): two people's conversation over months, one turn a memory.

Read from the authors' own file (``locomo10.json`` or a cut of it) or from a folder with the turns as rows; both
give the same corpus, whose memories are what ``semmem import locomo`` stores. Each conversation is a namespace of its
own. Categories by their evidence: 1 multi-hop, 2 temporal, 3 open-domain, 4 single-hop; 5 is adversarial, its gold
turn is the trap, and it is kept apart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval.datasets.corpus import Corpus, DatasetError, Query
from eval.datasets.source import Source, build, first_item, first_row
from semmem.importers.locomo import conversation_name
from semmem.model.imported_items import Item

__all__ = ["CATEGORIES", "NAME", "load", "recognises"]

NAME = "locomo"
CATEGORIES = {1: "1 multi-hop", 2: "2 temporal", 3: "3 open-domain", 4: "4 single-hop", 5: "5 adversarial"}
_EVIDENCE = re.compile(r"D\d+:\d+")


def recognises(path: Path) -> bool:
    """Tell whether ``path`` is LoCoMo's own file or a folder of its turns."""
    if path.is_dir():
        return "dia_id" in first_row(path / "documents.jsonl")
    return "conversation" in first_item(path)


def load(path: Path) -> Corpus:
    """Read the file or the folder. Questions without evidence are skipped and counted. Raises DatasetError."""
    return _rows(path) if path.is_dir() else _own_file(path)


def _own_file(path: Path) -> Corpus:
    source = Source(path.parent)
    notes: Counter[str] = Counter()
    memories = _with_dates(source.imported("locomo", path.name, _conversation, notes))
    queries = []
    for number, (where, sample) in enumerate(source.items(path.name, ("conversation", "qa")), 1):
        namespace = conversation_name(sample, number)
        for place, qa in enumerate(sample["qa"]):
            asked = f"{where} question {place}"
            if query := _query(qa, asked, namespace, f"{namespace}:q{place}", qa.get("evidence") or [], notes):
                queries.append((asked, query))
    return build(path.stem, NAME, memories, queries, source, notes)


def _rows(path: Path) -> Corpus:
    source = Source(path)
    notes: Counter[str] = Counter()
    memories = _with_dates(source.imported("locomo", "documents.jsonl", _conversation, notes))
    queries = []
    for where, row in source.rows("queries.jsonl", ("id", "conv", "question", "category")):
        evidence = row.get("evidence_raw") or row.get("gold_ids") or []
        if query := _query(row, where, str(row["conv"]), str(row["id"]), evidence, notes):
            queries.append((where, query))
    return build(path.name, NAME, memories, queries, source, notes)


def _conversation(item: Item) -> str:
    """Return the conversation of a turn, whose session the importer names ``conversation:number``."""
    return str(item["session"]).rpartition(":")[0]


def _with_dates(memories: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    """Return the memories. Raises DatasetError for one without a date, which would be remembered as of today."""
    for where, memory in memories:
        if "created_at" not in memory:
            raise DatasetError(f"{where} has no date; give the session its session_N_date_time.")
    return memories


def _query(
    qa: Mapping[str, Any], where: str, namespace: str, id: str, evidence: list[Any], notes: Counter[str]
) -> Query | None:
    # The file writes several turns into one string in places ("D8:6; D9:17"), so they are searched, not split.
    turns = tuple(dict.fromkeys(m for piece in evidence for m in _EVIDENCE.findall(str(piece))))
    notes["evidence that names no turn"] += sum(not _EVIDENCE.search(str(piece)) for piece in evidence)
    if not turns:
        notes["questions without evidence"] += 1
        return None
    category = qa.get("category")
    if category not in CATEGORIES:
        raise DatasetError(f"{where} has the category {category!r}; LoCoMo has 1 to 5.")
    return Query(
        id=id,
        text=str(qa["question"]),
        namespace=namespace,
        gold=tuple(f"{namespace}:{turn}" for turn in turns),
        stratum=CATEGORIES[category],
        apart=category == 5,
        extra={"answer": qa.get("answer", qa.get("adversarial_answer"))},
    )
