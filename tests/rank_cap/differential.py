"""Reach against the pipeline that people run: random lists through a real store, a real recall, and its classes.

Each case makes a recipe, lists for its legs and the arguments of a recall, at random and from a seed; the legs stand in
the place of ours and return what they are told, and everything after them is what runs for everybody: depths, ties,
fusion, bonus, prior, reserve, folding, reranker, order, page. Then every class is held against the hits.

A recall of another time is asked as ``recall(as_of=…)`` asks it: of the store as it was, with earlier versions that the
graph does not see.

``python -m tests.rank_cap.differential RESULT.json`` (``make differential``) goes through a hundred thousand cases, and
goes on where it was stopped, or begins anew where the one that was stopped had other worlds.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import semmem
from eval.experiments.evidence.provenance import COMMIT
from semmem.legs.graph import Graph
from semmem.legs.today import Today
from semmem.model.errors import LegFailed
from semmem.model.exchange import Head, Question, Ranking, Scope, Trace, local, placed
from semmem.model.recipe import Recipe
from semmem.model.store import Store
from semmem.rank_cap.places import ASSUMPTIONS
from semmem.rank_cap.report import Reach
from semmem.read.recall import Recaller
from semmem.read.result import Recall
from semmem.read.superseding import above
from semmem.stores.packed_postings import FIRST_EARLIER
from semmem.stores.past import past

__all__ = ["Case", "World", "contradictions", "draw_case", "run", "world"]

LEGS = ("lexical", "dense", "graph", "own")
CASES = 100_000
FUSIONS = ("rrf", "rrf", "rrf", "rrf", "rank-scaled", "convex", "tm2c2", "scored")
_WORLDS = ("whole", "weighed", "folding", "folding and weighed")
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
WORLDS = (*_WORLDS, *LINKED, *LAPSED, *AGED, *APART, *THEN)
AT = datetime(2026, 2, 15, tzinfo=UTC)
"""When that was: what is lapsed had ended, and what has been updated had not been yet."""


class Told:
    """A leg that returns the list of the case, or fails."""

    reads_vector = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.ords: Sequence[int] = ()
        self.scores: Sequence[float] = ()
        self.fails = False
        self.full: frozenset[int] = frozenset()
        self.most = 1.0
        self.regime: str | None = None

    def prepare(self, asked: Question, scope: Scope, recipe: Recipe) -> None:
        """Look nothing up."""

    def search(self, question: Question, scope: Scope, recipe: Recipe, **prepared: Any) -> Ranking:
        import numpy as np

        if self.fails:
            raise LegFailed("It was told to fail.")
        matched = np.array(sorted(self.ords), dtype=np.int64)
        trace = Trace(self.most, matched, self.full) if self.name == "lexical" else Trace()
        return Ranking(tuple(self.ords), tuple(self.scores), len(self.ords), regime=self.regime, trace=trace)


@dataclass
class World:
    """A store with some memories, and legs that return what they are told; ``rows`` are those that a leg may return.

    ``then`` answers for a world that is asked for another time.
    """

    mem: semmem.Semmem
    legs: Mapping[str, Told]
    rows: list[Head] = field(default_factory=list)
    namespaces: Sequence[str] = ("default",)
    then: Recaller | None = None


@contextmanager
def world(kind: str) -> Iterator[World]:
    """Fill a store with forty memories: with copies and long ones if ``folding``, with importances if ``weighed``.

    If ``linked``, a third of them supersede others; if ``in two namespaces``, every third one is in a second one; if
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
        ends = "2026-02-01" if "lapsed" in kind and draw.random() < 0.35 else None
        items.append(
            {
                "id": f"m{n:02}", "text": text, "importance": importance, "created_at": created, "namespace": where,
                "valid_to": ends,
            }
        )  # fmt: skip
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        legs = {name: Told(name) for name in LEGS}
        for name, leg in legs.items():
            mem._legs[name] = leg
        mem.remember_many(items)
        spaces = tuple(sorted({item["namespace"] for item in items}))
        for newer, older in draw_links(draw, items) if "linked" in kind else ():
            mem.link(newer["id"], "supersedes", older["id"], namespace=newer["namespace"])
        if "of then" not in kind:
            rows = _rows(mem.store, spaces)
            assert len(rows) == mem.store.scope(spaces, semmem.Filters(), ()).size
            yield World(mem, legs, rows, spaces)
            return
        for item in items:
            if draw.random() < 0.35:
                mem.update(
                    item["id"], namespace=item["namespace"], text=f"{item['text']} Or not.", valid_from="2026-03-01"
                )
        store, earlier = past(mem.store, spaces, AT)
        graph = Today(cast(Graph, legs["graph"]), earlier)
        with closing(Recaller(store, {**legs, "graph": graph}, lambda: "none", "english")) as reader:
            yield World(mem, legs, _rows(store, spaces), spaces, reader)


def _rows(store: Store, spaces: tuple[str, ...]) -> list[Head]:
    """Return what legs may return of a store: the rows in scope, of long memories their parts."""
    import numpy as np

    scope = store.scope(spaces, semmem.Filters(), ())
    numbers = [*range(1, 40 * 9), *range(FIRST_EARLIER, FIRST_EARLIER + 40)]
    heads = store.candidate_info(spaces, [placed(ord, at) for at in range(len(spaces)) for ord in numbers])
    split = {head.id for head in heads.values() if head.part}
    rows = [head for head in heads.values() if head.part or head.id not in split or _earlier(head.ord)]
    inside = scope.admits(np.array([head.ord for head in rows], dtype=np.int64)).tolist()
    return [head for head, admitted in zip(rows, inside, strict=True) if admitted]


def _earlier(ord: int) -> bool:
    """Return whether a row is an earlier version."""
    return local(ord) >= FIRST_EARLIER


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


@dataclass
class Case:
    """One question: the recipe, the arguments of the recall, and what each leg returns."""

    recipe: Recipe
    arguments: dict[str, Any]
    ords: dict[str, list[int]]
    scores: dict[str, list[float]]
    fails: frozenset[str] = frozenset()
    full: frozenset[int] = frozenset()
    regime: str | None = None
    most: float = 1.0
    links: tuple[tuple[str, str], ...] = ()  # (newer, older), for this question alone
    lapsed: tuple[str, ...] = ()  # what is not valid, for this question alone


def draw_case(draw: random.Random, rows: Sequence[Head]) -> Case:
    """Make a case at random: mostly lists that stand on the edge of a class."""
    names = draw.sample(LEGS, draw.choice([1, 2, 2, 3, 3, 3, 4]))
    limit = draw.choice([1, 1, 2, 3, 4, 5, 6, 10])
    calm = draw.random() < 0.4  # a first page by relevance of full lists, which is what reach without data speaks of
    offset = 0 if calm else draw.choice([0, 0, 0, 0, 0, 1, 2, 5])
    chosen = _recipe(draw, names)
    arguments = {
        "limit": limit,
        "offset": offset,
        "sort_by": "relevance" if calm else draw.choice(["relevance"] * 9 + ["importance", "created", "updated"]),
        "fold_parts": draw.random() < 0.85,
        "min_confidence": 0.0 if calm else draw.choice([0.0] * 19 + [0.9]),
        "token_budget": None if calm else draw.choice([None] * 9 + [60, 150, 400]),
    }
    # a few rows only this leg may have, at its head mostly; the others share theirs, in one order mostly
    studied = draw.choice(names)
    pool = list(rows)
    draw.shuffle(pool)
    if draw.random() < 0.4:  # all rows of some memory first: what folds into one
        some = draw.choice(pool)
        pool.sort(key=lambda head: head.id != some.id and head.content != some.content)
    cut = draw.choice([1, 1, 2, 3, 6])
    only, shared = ([h.ord for h in pool[-cut:]], [h.ord for h in pool[:-cut]])
    if draw.random() < 0.3:  # the least keys for the studied leg, so that it wins ties
        by_id = sorted(pool, key=lambda head: (head.id, head.part))
        only, shared = [h.ord for h in by_id[:cut]], [h.ord for h in by_id[cut:]]
    k = limit + offset
    ords: dict[str, list[int]] = {}
    for name in names:
        size = draw.choice([k, k, k + 1, len(shared)] if calm else [0, 1, k - 1, k, k, k + 1, k + 3, 2 * k])
        order = shared if draw.random() < 0.6 else draw.sample(shared, len(shared))
        if draw.random() < 0.3:  # agree on all but the last that counts
            order = [*shared[: k - 1], *draw.sample(shared[k - 1 :], len(shared[k - 1 :]))]
        ords[name] = list(order[: min(size, len(order))])
    at = draw.choice([0, 0, 0, 1, 2, k - 1, k, k + 2])
    behind = ords[studied] if draw.random() < 0.6 else []
    if calm:
        only, behind = (only, []) if draw.random() < 0.7 else (only, ords[studied])
    ords[studied] = [*behind[:at], *only, *behind[at:]]
    scores = {name: _scores(draw, name, len(of)) for name, of in ords.items()}
    exact = draw.choice([(), ords.get("lexical", ()), only, shared[:k]])
    regime = draw.choice([None, *chosen.regimes])
    fails = frozenset(name for name in names if not calm and draw.random() < 0.05)
    return Case(chosen, arguments, ords, scores, fails, frozenset(exact), regime, draw.choice([0.5, 1.0, 4.0]))


def _recipe(draw: random.Random, names: Sequence[str]) -> Recipe:
    constants: dict[str, Any] = {name: draw.choice([0.0, 1.0, 4.0, 8.0, 8.0, 60.0, 60.0]) for name in names}
    if "graph" in names and draw.random() < 0.3:
        constants["graph"] = {"named": draw.choice([0.0, 2.0]), "unnamed": constants["graph"]}
    if draw.random() < 0.3:
        constants = dict.fromkeys(names, draw.choice([0.0, 60.0]))
    weights = {name: draw.choice([0.05, 0.1, 0.35, 0.35, 1.0, 1.0, 3.0]) for name in names}
    if draw.random() < 0.3:
        weights = dict.fromkeys(names, 1.0)
    places = draw.sample(["agreed", *names], draw.randint(1, len(names) + 1))
    first = draw.choice([1, 1, 2, 3])
    reserve = {name: first + at * draw.choice([1, 1, 2]) for at, name in enumerate(places)}
    if len(set(reserve.values())) < len(reserve) or draw.random() < 0.55:
        reserve = {}
    depths = {name: draw.choice([1, 2, 3, 5, 8, 100, 100, 100, 100]) for name in names}
    plan = Recipe(
        "case",
        weights,
        constants,
        depths=depths,
        reserve=reserve,
        prior=draw.random() < 0.8,
        prior_floor=draw.choice([None, 0.7, 0.7, 0.0]),
        exact_bonus=draw.choice([0.0, 0.0, 0.0, 0.5, 2.0]),
        dedup=draw.random() < 0.85,
        fusion=draw.choice(FUSIONS),
        regime_weights={"named": {"graph": 12.0}} if isinstance(constants.get("graph"), dict) else {},
        rerank="composite" if draw.random() < 0.12 else None,
        rerank_depth=draw.choice([1, 2, 3, 6]),
        headroom=draw.choice([0, 0, 0, 2]),
    )
    return semmem.recipe(plan)


def aged(draw: random.Random, case: Case) -> Case:
    """Return the case with a half-life, beside the month in which the memories were created a short or a long one."""
    half_life, floor = draw.choice([None, 0.5, 7.0, 7.0, 30.0, 365.0]), draw.choice([0.0, 0.5, 0.7, 0.9, 0.99, 1.0])
    return replace(case, recipe=semmem.recipe(case.recipe, recency_half_life=half_life, recency_floor=floor))


def _scores(draw: random.Random, name: str, count: int) -> list[float]:
    low = -1.0 if name == "dense" and draw.random() < 0.3 else 0.0
    if draw.random() < 0.5:
        return [1.0 - at / (count + 1) for at in range(count)]
    levels = (0.0, 1e-10, 1e-6, 0.3, 0.5, 0.95, 1.0 - 1e-11, 1.0, 1.0)
    return sorted((low + (1 - low) * draw.choice(levels) for _ in range(count)), reverse=True)


def ask(where: World, case: Case) -> Recall:
    """Send the case through ``recall``."""
    for name, leg in where.legs.items():
        leg.ords, leg.scores = case.ords.get(name, ()), case.scores.get(name, ())
        leg.fails, leg.full, leg.regime, leg.most = name in case.fails, case.full, case.regime, case.most
    if where.then is not None:
        graph, arguments = where.legs["graph"], {"filters": semmem.Filters(), **case.arguments}
        told = [pair for pair in zip(graph.ords, graph.scores, strict=True) if not _earlier(pair[0])]
        graph.ords, graph.scores = [ord for ord, _ in told], [score for _, score in told]
        return where.then.recall("the harbour", tuple(where.namespaces), case.recipe, **arguments)
    for newer, older in case.links:
        where.mem.link(newer, "supersedes", older)
    _end(where, case.lapsed, 1)
    try:
        return where.mem.recall("the harbour", recipe=case.recipe, namespace=where.namespaces, **case.arguments)
    finally:
        for newer, older in case.links:
            where.mem.unlink(newer, "supersedes", older)
        _end(where, case.lapsed, None)


def _end(where: World, ids: Sequence[str], at: int | None) -> None:
    """Let memories cease to be valid long ago, or never; an update would give them other numbers."""
    for id in ids:
        asked = "UPDATE memory SET valid_to = ? WHERE id = ?", (at, id)
        where.mem.store._run(lambda c, asked=asked: c.execute(*asked))  # type: ignore[attr-defined]


def contradictions(found: Recall, reach: Reach, seen: Counter[str] | None = None) -> list[str]:
    """Return what the hits say against ``reach``, in sentences; ``seen`` counts what happened by class."""
    seen = Counter() if seen is None else seen
    said = []
    legs = reach.regimes[found.regime].legs
    rankings = found.candidates.rankings
    here = {id for hit in found for id in (hit.memory.id, *hit.duplicates)}  # an id is in one of the namespaces
    shown = {(hit.memory.id, hit.part or 0, hit.memory.namespace) for hit in found}
    for hit in found:
        if len(hit.legs) == 1:
            ((leg, at),) = hit.legs.items()
            if (class_ := legs[leg].class_at(at.rank)) in ("boost-only", "unreachable"):
                said.append(f"{leg} is {class_} at rank {at.rank}, and its own {hit.memory.id} is hit {hit.rank}")
            if legs[leg].class_ in ("boost-only", "unreachable"):
                said.append(f"{leg} is {legs[leg].class_}, and its own {hit.memory.id} is hit {hit.rank}")
        said += [f"{leg} is unreachable, and found hit {hit.rank}" for leg in hit.legs if not legs[leg].called]
    for leg, its in legs.items():
        keys = rankings.get(leg, ())
        others = {key for name, of in rankings.items() if name != leg for key in of}
        for rank, key in enumerate(keys, 1):
            returned = key[0] in here
            if rank <= its.guaranteed_ranks and not returned:
                said.append(f"{leg} is guaranteed at rank {rank}, and {key[0]} is not among the hits")
            if key not in others:
                class_ = its.class_at(rank)
                seen[f"{class_}: {'in' if key in shown or (returned and class_ == 'guaranteed') else 'out'}"] += 1
        if its.class_ == "guaranteed" and its.guaranteed_ranks < 1:
            said.append(f"{leg} is guaranteed and none of its ranks is")
    return said


def out_of_order(found: Recall) -> list[str]:
    """Return which hits stand above one that supersedes them, and which score is no sum of its components."""
    newer = found.candidates.newer
    place = {(hit.id, hit.namespace): hit.rank for hit in found}
    said = []
    heads, lapsed = found.candidates.heads, found.candidates.scope.lapsed
    ended = [heads[hit.memory.id, hit.part or 0, hit.memory.namespace].ord in lapsed for hit in found]
    if found.cut.sort_by == "relevance" and not newer and ended != sorted(ended):
        said.append(f"what is not valid stands above what is: {ended}")
    for hit in found:
        if abs(hit.score - sum(hit.components.values())) > 1e-9:
            said.append(f"hit {hit.rank} has the score {hit.score} of {hit.components}")
        for one in above((hit.id, hit.namespace), newer):
            if place.get(one, 0) > hit.rank:
                said.append(f"{one} stands at {place[one]}, behind {hit.id} at {hit.rank}")
    return said


def without_data(found: Recall, case: Case) -> Reach | None:
    """Return reach without the lists where all that it takes for granted holds in ``found``; else None."""
    if dropped(found, case):
        return None
    return semmem.reach(case.recipe, found.limit, scope_size=found.candidates.scope.size)


def dropped(found: Recall, case: Case, leg: str | None = None) -> set[str]:
    """Return which of the named assumptions do not hold for this recall, where the class of ``leg`` is asked."""
    candidates, how = found.candidates, found.cut
    out = set()
    for other in set(case.recipe.legs) - {leg} - set(found.degraded):
        deep = candidates.recipe.depths.get(other, 100)
        if len(candidates.rankings[other]) < min(deep, how.limit):
            out.add("lists as deep as k")
    ranked = candidates.ranked
    if len({(f.key[0], f.key[2]) for f in ranked}) < len(ranked) or len(
        {candidates.heads[f.key].content for f in ranked}
    ) < len(ranked):
        out.add("places counted before folding")
    if found.degraded:
        out.add("every leg answers")
    importances = {candidates.heads[f.key].importance for f in ranked}
    if case.recipe.prior and (len(importances) > 1 or (importances == {0.0} and case.recipe.prior_floor == 0)):
        out.add("equal importance")
    times = {candidates.heads[f.key].created_at for f in ranked}
    if case.recipe.recency_half_life is not None and len(times) > 1:
        out.add("equal importance")
    if how.sort_by != "relevance":
        out.add("sorted by relevance")
    if how.offset:
        out.add("offset 0")
    if candidates.newer:
        out.add("nothing superseded")
    if any(candidates.heads[f.key].ord in candidates.scope.lapsed for f in ranked):
        out.add("all valid now")
    if found.withheld or found.left_out:
        out.add("nothing withheld")
    assert out <= set(ASSUMPTIONS)
    return out


@dataclass
class Tally:
    """What came of some cases: how many, what was seen by class, and what contradicts a class."""

    cases: int = 0
    without_data: int = 0
    hits: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    seen_without_data: Counter[str] = field(default_factory=Counter)
    contradictions: list[str] = field(default_factory=list)


def _kinds(found: Recall) -> Iterator[str]:
    """Yield what is special about hits, and what is not among them."""
    candidates = found.candidates
    for hit in found:
        ord = candidates.heads[hit.id, hit.part or 0, hit.namespace].ord
        said = {
            "superseded": hit.superseded_by is not None,
            "not valid now": ord in candidates.scope.lapsed,
            "of then": _earlier(ord),
            "by importance": found.cut.sort_by == "importance",
            "of two namespaces": len({one.namespace for one in found}) > 1,
        }
        yield from (name for name, holds in said.items() if holds)
    yield from ["left out of the budget"] * len(found.left_out)
    yield from ["withheld"] * found.withheld


def run(seeds: Sequence[int], tally: Tally | None = None, worlds: Sequence[str] = _WORLDS) -> Tally:
    """Go through the cases of ``seeds``; each is made from its number alone."""
    tally = tally or Tally()
    for kind in worlds:
        mine = [seed for seed in seeds if worlds[seed % len(worlds)] == kind]
        if not mine:
            continue
        with world(kind) as where:
            for seed in mine:
                case = draw_case(random.Random(f"differential {seed}"), where.rows)
                case = aged(random.Random(f"aged {seed}"), case) if "aged" in kind else case
                found = ask(where, case)
                tally.cases += 1
                tally.hits.update(_kinds(found))
                tally.contradictions += [f"case {seed}: {said}" for said in out_of_order(found)]
                for said in contradictions(found, found.reach, tally.seen):
                    tally.contradictions.append(f"case {seed}: {said}")
                if (bare := without_data(found, case)) is not None:
                    tally.without_data += 1
                    for said in contradictions(found, bare, tally.seen_without_data):
                        tally.contradictions.append(f"case {seed}, without data: {said}")
    return tally


def main(result: Path) -> None:
    """Go through all cases, a thousand at a time, noting each thousand, and go on where the last run stopped."""
    tally, commits = Tally(), list[str]()
    told = json.loads(result.read_text(encoding="utf-8")) if result.exists() else {}
    if told.get("worlds") == list(WORLDS):
        known = (Counter(told[name]) for name in ("hits", "seen", "seen without data"))
        tally = Tally(told["cases"], told["without data"], *known, told["contradictions"])
        commits = told["commits"]
    commits = [*commits, *({str(COMMIT)} - set(commits) if tally.cases < CASES else ())]
    while tally.cases < CASES:
        run(range(tally.cases, tally.cases + 1_000), tally, WORLDS)
        note = {
            "what": "random lists through a real recall, held against the classes of reach",
            "command": "make differential",
            "commits": commits,
            "worlds": list(WORLDS),
            "cases": tally.cases,
            "without data": tally.without_data,
            "hits": dict(sorted(tally.hits.items())),
            "seen": dict(sorted(tally.seen.items())),
            "seen without data": dict(sorted(tally.seen_without_data.items())),
            "contradictions": tally.contradictions,
        }
        beside = result.with_suffix(".part")
        beside.write_text(json.dumps(note, indent=1) + "\n", encoding="utf-8")
        beside.replace(result)  # a run that is stopped while it writes leaves the last thousand as it was
        print(f"{tally.cases:,} of {CASES:,} cases, {len(tally.contradictions)} contradictions", flush=True)
    if tally.contradictions:
        raise SystemExit("\n".join(tally.contradictions[:20]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
