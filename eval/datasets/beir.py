"""BEIR folders (Thakur et al. 2021): ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/SPLIT.tsv``."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

from eval.datasets.corpus import Corpus, DatasetError, Query
from eval.datasets.source import Source, build

__all__ = ["NAME", "load", "recognises"]

NAME = "beir"
_SPLITS = ("test", "dev", "train")


def recognises(path: Path) -> bool:
    """Tell whether ``path`` is a folder with the three parts."""
    return (path / "corpus.jsonl").is_file() and (path / "qrels").is_dir()


def load(path: Path, *, split: str | None = None) -> Corpus:
    """Read the folder with the judgments of ``split``: test where there is one, else dev, else train.

    A question without a judgment above 0 is skipped and counted. Raises DatasetError.
    """
    source = Source(path)
    name = path.name
    splits = [s for s in _SPLITS if (path / "qrels" / f"{s}.tsv").is_file()]
    if split is None and not splits:
        raise DatasetError(f"{path / 'qrels'} has no test.tsv, dev.tsv or train.tsv; put the judgments there.")
    qrels: dict[str, dict[str, int]] = defaultdict(dict)
    for number, (where, cells) in enumerate(source.table(f"qrels/{split or splits[0]}.tsv")):
        if len(cells) != 3:
            raise DatasetError(f"{where} has {len(cells)} cells; it needs query-id, corpus-id and score.")
        if number == 0 and not cells[2].lstrip("-").isdigit():
            continue
        try:
            qrels[cells[0]][cells[1]] = int(cells[2])
        except ValueError:
            raise DatasetError(f"{where} has the score {cells[2]!r}; it must be a whole number.") from None
    notes: Counter[str] = Counter()
    memories = []
    for where, row in source.rows("corpus.jsonl", ("_id",)):
        text, title = str(row.get("text") or "").strip(), str(row.get("title") or "").strip()
        if not text and not title:
            notes["memories without text"] += 1
            continue
        memory = {"namespace": name, "id": str(row["_id"]), "text": text or title}
        if title and text:
            memory["title"] = title
        memories.append((where, memory))
    queries = []
    for where, row in source.rows("queries.jsonl", ("_id", "text")):
        id = str(row["_id"])
        grades = {memory: grade for memory, grade in qrels.get(id, {}).items() if grade > 0}
        if not grades:
            notes["questions without a judgment in this split"] += 1
            continue
        queries.append((where, Query(id, str(row["text"]), name, tuple(grades), "all", False, {"grades": grades})))
    return build(name, NAME, memories, queries, source, notes)
