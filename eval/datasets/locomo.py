"""LoCoMo (Maharana et al. 2024): two people's conversation over months, one turn a memory.

Read from the authors' own file (``locomo10.json`` or a cut of it) or from a folder with the turns as rows; both
give the same corpus. Each conversation is a namespace of its own. Categories by their evidence: 1 multi-hop,
2 temporal, 3 open-domain, 4 single-hop; 5 is adversarial, its gold turn is the trap, and it is kept apart.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eval.datasets.corpus import Corpus, DatasetError, Query
from eval.datasets.reading import Source, build, first_row, moment

__all__ = ["CATEGORIES", "NAME", "load", "recognises"]

NAME = "locomo"
CATEGORIES = {1: "1 multi-hop", 2: "2 temporal", 3: "3 open-domain", 4: "4 single-hop", 5: "5 adversarial"}
_DATE = "%I:%M %p on %d %B, %Y"  # 1:56 pm on 8 May, 2023
_EVIDENCE = re.compile(r"D\d+:\d+")
_SESSION = re.compile(r"session_(\d+)")


def recognises(path: Path) -> bool:
    """Tell whether ``path`` is LoCoMo's own file or a folder of its turns."""
    if path.is_dir():
        return "dia_id" in first_row(path / "documents.jsonl")
    if path.suffix != ".json" or not path.is_file():
        return False
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return isinstance(data, list) and bool(data) and isinstance(data[0], dict) and "conversation" in data[0]


def load(path: Path) -> Corpus:
    """Read the file or the folder. Questions without evidence are skipped and counted. Raises DatasetError."""
    return _rows(path) if path.is_dir() else _own_file(path)


def _own_file(path: Path) -> Corpus:
    source = Source(path.parent)
    notes: Counter[str] = Counter()
    memories, queries = [], []
    for where, sample in source.items(path.name, ("conversation", "qa")):
        namespace = str(sample.get("sample_id") or f"conv-{where.rsplit(' ', 1)[-1]}")
        for order, (session, date, turn) in enumerate(_turns(sample["conversation"], where)):
            memories.append((where, _memory(turn, where, namespace, session, date, order)))
        for number, qa in enumerate(sample["qa"]):
            at = f"{where} question {number}"
            if query := _query(qa, at, namespace, f"{namespace}:q{number}", qa.get("evidence") or [], notes):
                queries.append((at, query))
    return build(path.stem, NAME, memories, queries, source, notes)


def _turns(conversation: Mapping[str, Any], where: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    sessions = sorted((int(m[1]), key) for key in conversation if (m := _SESSION.fullmatch(key)))
    for number, key in sessions:
        date = conversation.get(f"{key}_date_time")
        if date is None:
            raise DatasetError(f"{where} has {key!r} without {key + '_date_time'!r}.")
        for turn in conversation[key]:
            yield str(number), date, turn


def _rows(path: Path) -> Corpus:
    source = Source(path)
    notes: Counter[str] = Counter()
    memories, queries = [], []
    order: Counter[str] = Counter()
    for where, row in source.rows("documents.jsonl", ("conv", "session", "dia_id", "date_time", "speaker", "text")):
        namespace = str(row["conv"])
        memory = _memory(row, where, namespace, str(row["session"]), str(row["date_time"]), order[namespace])
        memories.append((where, memory))
        order[namespace] += 1
    for where, row in source.rows("queries.jsonl", ("id", "conv", "question", "category")):
        evidence = row.get("evidence_raw") or row.get("gold_ids") or []
        if query := _query(row, where, str(row["conv"]), str(row["id"]), evidence, notes):
            queries.append((where, query))
    return build(path.name, NAME, memories, queries, source, notes)


def _memory(turn: Mapping[str, Any], where: str, namespace: str, session: str, date: str, order: int) -> dict[str, Any]:
    for key in ("dia_id", "speaker", "text"):
        if key not in turn:
            raise DatasetError(f"{where} has a turn without {key!r}.")
    caption = turn.get("blip_caption")
    text = " ".join(part for part in (str(turn["text"]).strip(), f"[{caption}]" if caption else "") if part)
    if not text:
        raise DatasetError(f"{where} has the turn {turn['dia_id']} without text.")
    return {
        "namespace": namespace,
        "id": f"{namespace}:{turn['dia_id']}",
        "text": text,
        "author": str(turn["speaker"]),
        "session": session,
        "position": order,
        "created_at": moment(date, where, _DATE),
    }


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
