"""The form of the HippoRAG repository: ``NAME.json`` questions beside ``NAME_corpus.json`` passages.

MuSiQue marks support on paragraphs (``is_supporting``), HotpotQA and 2WikiMultiHopQA by title
(``supporting_facts`` over ``context``). A supporting paragraph is found in the passages by title and text; by
title alone only where one passage has it, because titles repeat in MuSiQue.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval.datasets.corpus import Corpus, DatasetError, Query
from eval.datasets.source import Source, build, text_of

__all__ = ["NAME", "load", "recognises"]

NAME = "hipporag"
_SUFFIX = "_corpus.json"


def _pair(path: Path) -> tuple[Path, Path] | None:
    """Return (questions, passages), or None when ``path`` does not lead to one such pair."""
    if path.is_dir():
        pairs = [(path / f"{p.name.removesuffix(_SUFFIX)}.json", p) for p in sorted(path.glob(f"*{_SUFFIX}"))]
        pairs = [pair for pair in pairs if pair[0].is_file()]
        return pairs[0] if len(pairs) == 1 else None
    stem = path.name.removesuffix(_SUFFIX) if path.name.endswith(_SUFFIX) else path.stem
    return path.with_name(f"{stem}.json"), path.with_name(f"{stem}{_SUFFIX}")


def recognises(path: Path) -> bool:
    """Tell whether ``path`` is such a pair, one of its two files, or a folder that holds exactly one pair."""
    pair = _pair(path)
    return pair is not None and all(p.is_file() for p in pair)


def load(path: Path) -> Corpus:
    """Read the pair. Raises DatasetError."""
    pair = _pair(path)
    if pair is None:
        raise DatasetError(f"{path} must hold one NAME.json beside one NAME{_SUFFIX}; name the questions file instead.")
    questions, passages = pair
    source = Source(path if path.is_dir() else path.parent)
    name = questions.stem
    memories = []
    by_text: dict[tuple[str, str], str] = {}
    by_title: dict[str, list[str]] = defaultdict(list)
    for number, (where, row) in enumerate(source.items(passages.name, ("title", "text"))):
        id = str(row.get("idx", number))
        text, title = text_of(row["text"], where, "text"), str(row["title"])
        memories.append((where, {"namespace": name, "id": id, "title": title, "text": text}))
        # setdefault: of equal passages the first is the gold, the others fold into it when recalled.
        by_text.setdefault((title, _without_space(text)), id)
        by_title[title].append(id)
    notes: Counter[str] = Counter()
    queries = []
    for where, row in source.items(questions.name, ("question",)):
        gold = []
        for title, text in _support(row, where):
            same_title = by_title.get(title, [])
            passage = by_text.get((title, _without_space(text))) or (same_title[0] if len(same_title) == 1 else None)
            if passage is None:
                notes["supporting passages not in the corpus"] += 1
            else:
                gold.append(passage)
        if not gold:
            notes["questions without any gold that exists"] += 1
            continue
        id = str(row.get("_id") or row.get("id") or where.rsplit(" ", 1)[-1])
        stratum = str(row.get("type") or f"{len(set(gold))} passages")
        if "paragraphs" in row and "__" in id:
            stratum = id.split("__", 1)[0]
        extra = {"answer": row.get("answer")}
        queries.append(
            (where, Query(id, str(row["question"]), name, tuple(dict.fromkeys(gold)), stratum, False, extra))
        )
    return build(name, NAME, memories, queries, source, notes)


def _support(row: Mapping[str, Any], where: str) -> list[tuple[str, str]]:
    if "supporting_facts" in row:
        titles = {str(fact[0]) for fact in row["supporting_facts"]}
        return [(str(t), "".join(sentences)) for t, sentences in row.get("context", ()) if str(t) in titles]
    paragraphs = row.get("paragraphs") or row.get("contexts")
    if paragraphs is None:
        raise DatasetError(f"{where} has neither 'supporting_facts' nor 'paragraphs'; there is no gold in it.")
    return [
        (str(p["title"]), str(p.get("paragraph_text", p.get("text", ""))))
        for p in paragraphs
        if p.get("is_supporting", True)
    ]


def _without_space(text: str) -> str:
    # HotpotQA joins sentences with nothing between, 2Wiki with a space: compare without any.
    return "".join(text.split())
