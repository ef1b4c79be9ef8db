"""A corpus of a dozen memories in a folder, so that a command of the harness takes a second or two."""

from __future__ import annotations

import json
from pathlib import Path

TOY = Path(__file__).resolve().parents[2] / "eval" / "data" / "toy"
MEMORIES = 24


def small(folder: Path) -> Path:
    """Write the first memories of the toy corpus, and the questions that they answer, to ``folder``; return it."""
    folder.mkdir(parents=True)
    memories = (TOY / "documents.jsonl").read_text(encoding="utf-8").splitlines()[:MEMORIES]
    known = {json.loads(line)["id"] for line in memories}
    queries = [json.loads(line) for line in (TOY / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    asked = [q for q in queries if q["gold_ids"] and known.issuperset(q["gold_ids"])]
    (folder / "documents.jsonl").write_text("\n".join(memories) + "\n", encoding="utf-8")
    (folder / "queries.jsonl").write_text("".join(json.dumps(q) + "\n" for q in asked), encoding="utf-8")
    return folder
