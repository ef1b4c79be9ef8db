"""The stores of the differential test: forty memories, with copies, links, ends and half-lives, and scripted legs."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import semmem
from semmem.model.errors import LegFailed
from semmem.model.exchange import CandidateMetadata, Question, Ranking, Trace, local, placed
from semmem.model.history import Access
from semmem.model.protocols import Leg
from semmem.model.recipe import Recipe
from semmem.model.store import Snapshot, life_of
from semmem.stores.packed_postings import FIRST_EARLIER
from tests.snapshots import snapshot

__all__ = [
    "AGED",
    "APART",
    "AT",
    "CROWDED",
    "HARDER",
    "LAPSED",
    "LEGS",
    "LINKED",
    "MORE_LEGS",
    "PLAIN",
    "THEN",
    "WORLDS",
    "Told",
    "World",
    "draw_links",
    "is_earlier",
    "world",
]

LEGS = ("lexical", "dense", "graph", "own")
MORE_LEGS = tuple(f"own{number}" for number in range(2, 9))
PLAIN = ("whole", "weighed", "folding", "folding and weighed")
LINKED = ("linked", "folding, linked", "weighed, linked, in two namespaces", "folding, weighed, linked")
"""Worlds where memories supersede others, in chains and in bunches."""
LAPSED = ("lapsed", "folding, lapsed", "weighed, lapsed, in two namespaces", "folding, weighed, lapsed, linked")
"""Worlds where a third of the memories is not valid now."""
AGED = ("aged", "folding, aged", "weighed, aged, in two namespaces", "folding, weighed, aged, linked")
"""Worlds where most recipes have a half-life."""
APART = ("weighed, in two namespaces", "folding, weighed, in two namespaces")
"""Worlds whose memories are in two namespaces, and joined by place alone."""
THEN = (
    "of then",
    "folding, of then",
    "weighed, lapsed, in two namespaces, of then",
    "folding, weighed, linked, of then",
    "folding, aged, of then",
)
"""Worlds that are asked for a time when a third of the memories had another text."""
HARDER = (
    "accessed",
    "folding, weighed, accessed",
    "repeating",
    "folding, weighed, linked, repeating",
    "even",
    "folding, weighed, even, in two namespaces",
    "beyond",
    "folding, weighed, lapsed, beyond, in two namespaces",
    "folding, reserving",
    "folding, weighed, linked, reserving",
    "weighed, budgeted, in three namespaces",
    "folding, weighed, aged, budgeted, accessed, in three namespaces",
)
"""Worlds whose questions ``cases.harder`` changes."""
CROWDED = ("crowded", "folding, weighed, crowded", "folding, weighed, linked, crowded")
"""Worlds where up to eleven legs are asked about a handful of memories; not among those of ``make differential``."""
WORLDS = (*PLAIN, *LINKED, *LAPSED, *AGED, *APART, *THEN, *HARDER)
"""The worlds of ``make differential``."""
AT = datetime(2026, 2, 15, tzinfo=UTC)
"""When that was: what is lapsed had ended, and what has been updated had not been yet."""


class Told(Leg):
    """A leg that returns the list of the case, or fails."""

    reads_vector = False

    def __init__(self, name: str) -> None:
        self.name, self.follows = name, name == "graph"
        self.row_ids: Sequence[int] = ()
        self.scores: Sequence[float] = ()
        self.fails = False
        self.full: frozenset[int] = frozenset()
        self.most = 1.0
        self.regime: str | None = None
        self.sees_no_versions = False

    def search(self, question: Question, snapshot: Snapshot, recipe: Recipe) -> Ranking:
        import numpy as np

        if self.fails:
            raise LegFailed("It was told to fail.")
        matched = np.array(sorted(self.row_ids), dtype=np.int64)
        trace = Trace(self.most, matched, self.full) if self.name == "lexical" else Trace()
        degraded = {"as_of": "It was told to see no earlier versions."} if self.sees_no_versions else {}
        lists = tuple(self.row_ids), tuple(self.scores), len(self.row_ids)
        return Ranking(*lists, regime=self.regime, trace=trace, degraded=degraded)


@dataclass
class World:
    """A store with some memories, and legs that return what they are told; ``rows`` are those that a leg may return.

    ``then`` is the other time for which a world is asked.
    """

    mem: semmem.Semmem
    legs: Mapping[str, Told]
    rows: list[CandidateMetadata] = field(default_factory=list)
    namespaces: Sequence[str] = ("default",)
    then: datetime | None = None


@contextmanager
def world(kind: str) -> Iterator[World]:
    """Fill a store with forty memories: with copies and long ones if ``folding``, with importances if ``weighed``.

    If ``linked``, a third of them supersede others; if ``in two namespaces``, every third one is in a second one, if
    ``in three``, eight and two of them are in others; if ``accessed``, recalls have returned half of them; if
    ``of then``, a third of them has a new text since the time that is asked for.
    """
    draw = random.Random(kind)
    items: list[dict[str, Any]] = []
    for n in range(40):
        text = f"Note {n} about the harbour."
        if "folding" in kind and n >= 20:
            text = items[draw.choice([0, 1, 2, n - 1])]["text"] if n < 28 else _long(draw, n)
        importance = (0.0, 0.2, 0.5, 0.8, 1.0)[n % 5] if "weighed" in kind else 0.5
        created = f"2026-01-{draw.randint(1, 28):02}T00:00:00Z"
        where = "other" if "two namespaces" in kind and n % 3 == 0 else "default"
        if "three namespaces" in kind and n % 4 == 0:
            where = "third" if n % 20 == 0 else "other"
        ends = "2026-02-01" if "lapsed" in kind and draw.random() < 0.35 else None
        items.append(
            {
                "id": f"m{n:02}", "text": text, "importance": importance, "created_at": created, "namespace": where,
                "valid_to": ends, "session": f"of m{n:02}" if "crowded" in kind else None,
            }
        )  # fmt: skip
    with semmem.connect("sqlite::memory:", embedder="none", count_accesses=False) as mem:
        legs = {name: Told(name) for name in (*LEGS, *MORE_LEGS)}
        for name, leg in legs.items():
            mem._here.legs[name] = leg
        mem.remember_many(items)
        spaces = tuple(sorted({item["namespace"] for item in items}))
        for newer, older in draw_links(draw, items) if "linked" in kind else ():
            mem.link(newer["id"], "supersedes", older["id"], namespace=newer["namespace"])
        for item in items if "accessed" in kind else ():
            if draw.random() < 0.5:
                once = Access(1, datetime(2026, 3, draw.choice([1, 1, 2, 3, 4]), tzinfo=UTC))
                life_of(mem.store).count_accesses(item["namespace"], {item["id"]: once})
        if "of then" not in kind:
            rows = _rows(snapshot(mem, *spaces))
            assert len(rows) == mem.store.scope(spaces, semmem.Filters(), ()).size
            yield World(mem, legs, rows, spaces)
            return
        for item in items:
            if draw.random() < 0.35:
                mem.update(
                    item["id"], namespace=item["namespace"], text=f"{item['text']} Or not.", valid_from="2026-03-01"
                )
        legs["graph"].sees_no_versions = True
        past = mem.store.snapshot(spaces, semmem.Filters(), (), (), AT)
        yield World(mem, legs, _rows(past), spaces, AT)


def _rows(stored: Snapshot) -> list[CandidateMetadata]:
    """Return what legs may return of a snapshot: the rows in scope, of long memories their parts."""
    import numpy as np

    numbers = [*range(1, 40 * 9), *range(FIRST_EARLIER, FIRST_EARLIER + 40)]
    spaces = range(len(stored.scope.namespaces))
    metadata = stored.metadata([placed(row_id, at) for at in spaces for row_id in numbers])
    split = {head.id for head in metadata.values() if head.part}
    rows = [head for head in metadata.values() if head.part or head.id not in split or is_earlier(head.row_id)]
    inside = stored.scope.matches(np.array([head.row_id for head in rows], dtype=np.int64)).tolist()
    return [head for head, matching in zip(rows, inside, strict=True) if matching]


def is_earlier(row_id: int) -> bool:
    """Return whether a row is an earlier version."""
    return local(row_id) >= FIRST_EARLIER


def draw_links(draw: random.Random, items: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield pairs of what supersedes another: later items earlier ones, so that no circle is closed."""
    for n, newer in enumerate(items):
        earlier = [item for item in items[:n] if item["namespace"] == newer["namespace"]]
        if n % 3 == 2 and earlier:
            yield from (
                (newer, older) for older in draw.sample(earlier[-7:], min(len(earlier), draw.choice([1, 1, 2])))
            )


def _long(draw: random.Random, n: int) -> str:
    """Return a text of two to eight parts; some of its paragraphs are those of other long ones."""
    several = [draw.choice([n * 10 + at, 7, 8]) for at in range(draw.choice([2, 3, 8]))]
    return "\n\n".join(f"Chapter {at} " + " ".join(f"word{at}x{i}" for i in range(110)) + "." for at in several)
