"""Make questions for your own store: proposed from its memories, pooled blind, labelled by hand.

Everything is in one folder that git ignores: ``questions.jsonl`` gets a line for each question, ``labels.jsonl`` a line
for each label, so work can stop at any key. The harness reads ``queries.jsonl``.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eval.datasets import Query
from eval.experiments.runner import dated, place
from eval.statistics.measures import measure
from eval.statistics.significance import questions_needed
from semmem.extractors import Rules
from semmem.model.exchange import Kind
from semmem.model.types import Memory

__all__ = ["Desk", "Question", "needed", "pool", "propose", "sample"]

POOL_DEPTH = 20
_CODE = re.compile(r"\b(?=[\w./-]*[A-Za-z])(?=[\w./-]*\d)\w[\w./-]*\w\b|\b[A-Z][A-Z_]{2,}\w*\b")


@dataclass(frozen=True, slots=True)
class Question:
    """A question of the desk: ``about`` are the memories it was made from, which always join its pool."""

    id: str
    text: str
    stratum: str
    about: tuple[str, ...]


class Desk:
    """A folder with the questions and judgments of one person on one namespace."""

    def __init__(self, folder: Path, namespace: str) -> None:
        self.folder = folder
        self.namespace = namespace
        folder.mkdir(parents=True, exist_ok=True)
        self.questions = {
            r["id"]: Question(**{**r, "about": tuple(r["about"])}) for r in _rows(folder / "questions.jsonl")
        }
        self.labels: dict[str, dict[str, int]] = defaultdict(dict)
        self._pressed: dict[tuple[str, str], None] = {}
        for row in _rows(folder / "labels.jsonl"):
            self._take(row["question"], row["memory"], row["grade"], row.get("by_hand", True))

    def ask(self, text: str, stratum: str, about: Sequence[str]) -> Question:
        """Add a question, or return the one with the same text."""
        for question in self.questions.values():
            if question.text == text:
                return question
        question = Question(f"own-{len(self.questions) + 1}", text, stratum, tuple(about))
        self.questions[question.id] = question
        _append(self.folder / "questions.jsonl", asdict(question))
        return question

    def label(self, question: str, memory: str, grade: int, *, by_hand: bool = True) -> None:
        """Record one judgment; a later one of the same pair replaces it."""
        self._take(question, memory, grade, by_hand)
        row = {"question": question, "memory": memory, "grade": grade}
        _append(self.folder / "labels.jsonl", row if by_hand else {**row, "by_hand": False})

    def take_back(self) -> tuple[Question, str] | None:
        """Take back the last judgment by hand, of today or of an earlier day; return what is open again, or None."""
        if not self._pressed:
            return None
        question, memory = next(reversed(self._pressed))
        self._take(question, memory, None, True)
        _append(self.folder / "labels.jsonl", {"question": question, "memory": memory, "grade": None})
        return self.questions[question], memory

    def _take(self, question: str, memory: str, grade: int | None, by_hand: bool) -> None:
        self._pressed.pop((question, memory), None)
        if grade is None:
            self.labels[question].pop(memory, None)
            return
        self.labels[question][memory] = grade
        if by_hand and question in self.questions:
            self._pressed[question, memory] = None

    def open(self, pools: Mapping[str, Sequence[str]]) -> Iterator[tuple[Question, str]]:
        """Yield (question, memory id) of every judgment that is missing, question by question."""
        for id, memories in pools.items():
            for memory in memories:
                if memory not in self.labels[id]:
                    yield self.questions[id], memory

    def queries(self, pools: Mapping[str, Sequence[str]]) -> list[Query]:
        """Return the questions whose pool has been judged to the end, and write ``queries.jsonl``."""
        done = []
        for id, memories in pools.items():
            if any(memory not in self.labels[id] for memory in memories):
                continue
            grades = {memory: grade for memory, grade in self.labels[id].items() if grade > 0}
            question = self.questions[id]
            done.append(
                Query(
                    id, question.text, self.namespace, tuple(grades), question.stratum, not grades, {"grades": grades}
                )
            )
        rows = [
            {
                "id": q.id,
                "question": q.text,
                "namespace": q.namespace,
                "gold_ids": list(q.gold),
                "stratum": q.stratum,
                "grades": dict(q.grades),
            }
            for q in done
        ]
        (self.folder / "queries.jsonl").write_text(
            "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
        )
        return done


def sample(mem: Any, namespace: str, count: int, *, seed: int = 0) -> list[Memory]:
    """Return ``count`` memories by chance, read page by page (reservoir sampling, Vitter 1985)."""
    rng = random.Random(seed)
    drawn: list[Memory] = []
    cursor, number = None, 0
    while True:
        page = mem.list(namespace=namespace, limit=1_000, cursor=cursor)
        for memory in page:
            number += 1
            if len(drawn) < count:
                drawn.append(memory)
            elif (index := rng.randrange(number)) < count:
                drawn[index] = memory
        cursor = page.cursor
        if cursor is None:
            return drawn


def propose(memories: Sequence[Memory], *, most: int = 20) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return (text, stratum, about): exact questions from codes, chain questions from names two memories share.

    A chain leads from what only the first memory names, over the shared name, to what only the second names. Whether
    such a question makes sense is for the person who labels to say.
    """
    out: list[tuple[str, str, tuple[str, ...]]] = []
    holders: dict[str, set[str]] = defaultdict(set)
    for memory in memories:
        for code in set(_CODE.findall(memory.text)):
            holders[code].add(memory.id)
    for code, ids in sorted(holders.items()):
        if len(ids) == 1:
            out.append((f"What do we know about {code}?", "exact", tuple(ids)))
    exact = out[:most]
    names = {memory.id: _names(memory) for memory in memories}
    chains = []
    for one, two in itertools.combinations(sorted(names), 2):
        shared = names[one] & names[two]
        first, last = sorted(names[one] - shared), sorted(names[two] - shared)
        if shared and len(shared) <= 2 and first and last:
            chains.append((f"How is {first[0]} connected with {last[0]}?", "chain", (one, two)))
    return exact + chains[:most]


def _names(memory: Memory) -> set[str]:
    extraction = Rules().extract(memory.text, memory.title)
    kinds = zip(extraction.names, extraction.kinds, extraction.mentions, strict=True)
    return {name for name, kind, weight in kinds if kind == Kind.NAME and weight > 0}


def pool(mem: Any, namespace: str, question: Question, recipes: Sequence[str], *, seed: int = 0) -> list[str]:
    """Return the ids of ``about`` and of the first 20 hits of every recipe, shuffled: the order hides the recipe."""
    ids = dict.fromkeys(question.about)
    for name in recipes:
        for hit in mem.recall(question.text, namespace=namespace, limit=POOL_DEPTH, recipe=name):
            where = place(hit)
            ids.setdefault(where if isinstance(where, str) else where[0])
    shuffled = sorted(ids)
    random.Random(f"{seed} {question.id}").shuffle(shuffled)
    return shuffled


def needed(
    mem: Any, queries: Sequence[Query], recipes: Sequence[str], effect: float, *, metric: str = "R@10"
) -> int | None:
    """Return how many questions with gold would show a difference of ``effect`` between the first two recipes.

    None while fewer than five are judged: their spread says nothing yet.
    """
    with_gold = [query for query in dated(mem, queries) if query.gold]
    if len(with_gold) < 5 or len(recipes) < 2:
        return None
    values = []
    for name in recipes[:2]:
        run = {
            q.id: [place(h) for h in mem.recall(q.text, namespace=q.namespace, limit=20, recipe=name, now=q.now)]
            for q in with_gold
        }
        values.append(measure(with_gold, run).values[metric])
    return questions_needed(values[1] - values[0], effect)


def _rows(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        return []
    out = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        try:
            out.append(json.loads(line))
        except ValueError:
            continue  # empty, or cut short by an interrupt
    return out


def _append(path: Path, row: Mapping[str, Any]) -> None:
    data = path.read_bytes() if path.is_file() else b""
    with path.open("a", encoding="utf-8") as out:
        # a line that an interrupt cut short must not swallow this one
        out.write(("\n" if data and not data.endswith(b"\n") else "") + json.dumps(row, ensure_ascii=False) + "\n")
