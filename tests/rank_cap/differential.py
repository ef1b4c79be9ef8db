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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import semmem
from eval.experiments.evidence.provenance import COMMIT
from semmem.rank_cap.places import ASSUMPTIONS
from semmem.rank_cap.report import Reach
from semmem.rank_cap.several import class_of_find
from semmem.read.periods import created_in
from semmem.read.result import Recall
from semmem.read.steps import lists
from semmem.read.superseding import above
from tests.rank_cap.cases import Case, aged, crowded, draw_case, harder
from tests.rank_cap.worlds import CROWDED, HARDER, PLAIN, WORLDS, World, is_earlier, world

__all__ = ["Tally", "ask", "contradictions", "dropped", "out_of_order", "run", "without_data"]

CASES = 100_000


def ask(where: World, case: Case) -> Recall:
    """Send the case through ``recall``."""
    for name, leg in where.legs.items():
        leg.row_ids, leg.scores = case.row_ids.get(name, ()), case.scores.get(name, ())
        leg.fails, leg.full, leg.regime, leg.most = name in case.fails, case.full, case.regime, case.most
    if where.then is not None:
        graph = where.legs["graph"]
        told = [pair for pair in zip(graph.row_ids, graph.scores, strict=True) if not is_earlier(pair[0])]
        graph.row_ids, graph.scores = [row_id for row_id, _ in told], [score for _, score in told]
        how = {"recipe": case.recipe, "namespace": where.namespaces, "as_of": where.then, **case.arguments}
        return where.mem.recall(case.question, **how)
    for newer, older in case.links:
        where.mem.link(newer, "supersedes", older)
    _end(where, case.lapsed, 1)
    try:
        return where.mem.recall(case.question, recipe=case.recipe, namespace=where.namespaces, **case.arguments)
    finally:
        for newer, older in case.links:
            where.mem.unlink(newer, "supersedes", older)
        _end(where, case.lapsed, None)


def _end(where: World, ids: Sequence[str], at: int | None) -> None:
    """Let memories cease to be valid long ago, or never; an update would give them other numbers."""
    for id in ids:
        asked = "UPDATE memory SET valid_to = ? WHERE id = ?", (at, id)
        where.mem.store._run(lambda c, asked=asked: c.execute(*asked))  # type: ignore[attr-defined]


def contradictions(
    found: Recall, reach: Reach, seen: Counter[str] | None = None, several: Counter[str] | None = None
) -> list[str]:
    """Return what the hits say against ``reach``, in sentences; ``seen`` counts what happened by class.

    ``several`` counts hits of several legs by the class that they have at their ranks.
    """
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
        elif not reach.assumptions and hit.legs:
            ranks = {leg: at.rank for leg, at in hit.legs.items()}
            known = lists(found.candidates, found.cut, withheld=bool(found.withheld))
            class_ = class_of_find(found.recipe, found.regime, known, reach.regimes[found.regime], ranks)
            if several is not None:
                several[f"{class_}: in"] += 1
            if class_ == "boost-only":
                said.append(f"{hit.memory.id} is boost-only at {ranks}, and hit {hit.rank}")
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
    metadata, lapsed = found.candidates.metadata, found.candidates.scope.lapsed
    ended = [metadata[hit.memory.id, hit.part or 0, hit.memory.namespace].row_id in lapsed for hit in found]
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
        if len(set(candidates.rankings[other])) < min(deep, how.limit):
            out.add("lists as deep as k")
    ranked = candidates.ranked
    if len({(f.key[0], f.key[2]) for f in ranked}) < len(ranked) or len(
        {candidates.metadata[f.key].content for f in ranked}
    ) < len(ranked):
        out.add("places counted before folding")
    if found.degraded:
        out.add("every leg answers")
    importances = {candidates.metadata[f.key].importance for f in ranked}
    if case.recipe.prior and (len(importances) > 1 or (importances == {0.0} and case.recipe.prior_floor == 0)):
        out.add("equal importance")
    times = {candidates.metadata[f.key].created_at for f in ranked}
    if case.recipe.recency_half_life is not None and len(times) > 1:
        out.add("equal importance")
    inside = {*created_in(candidates.question.periods or (), dict(enumerate(times))).values()}
    if case.recipe.period_floor is not None and (
        len(inside) > 1 or (inside == {False} and not case.recipe.period_floor)
    ):
        out.add("equal importance")
    if how.sort_by != "relevance":
        out.add("sorted by relevance")
    if how.offset:
        out.add("offset 0")
    if candidates.newer:
        out.add("nothing superseded")
    if any(candidates.metadata[f.key].row_id in candidates.scope.lapsed for f in ranked):
        out.add("all valid now")
    if found.withheld or found.left_out:
        out.add("nothing withheld")
    assert out <= set(ASSUMPTIONS)
    return out


@dataclass
class Tally:
    """What came of some cases: how many, what was seen by class, and what contradicts a class.

    ``scored`` counts by class where the fusion reads scores and no place is reserved; ``of_several`` hits of
    several legs.
    """

    cases: int = 0
    without_data: int = 0
    hits: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    seen_without_data: Counter[str] = field(default_factory=Counter)
    scored: Counter[str] = field(default_factory=Counter)
    of_several: Counter[str] = field(default_factory=Counter)
    contradictions: list[str] = field(default_factory=list)


def _kinds(found: Recall) -> Iterator[str]:
    """Yield what is special about hits, and what is not among them."""
    candidates = found.candidates
    for hit in found:
        row_id = candidates.metadata[hit.id, hit.part or 0, hit.namespace].row_id
        said = {
            "superseded": hit.superseded_by is not None,
            "not valid now": row_id in candidates.scope.lapsed,
            "of then": is_earlier(row_id),
            "by importance": found.cut.sort_by == "importance",
            "by access": found.cut.sort_by == "accessed",
            "of two namespaces": len({one.namespace for one in found}) > 1,
        }
        yield from (name for name, holds in said.items() if holds)
    yield from ["left out of the budget"] * len(found.left_out)
    yield from ["withheld"] * found.withheld


def run(seeds: Sequence[int], tally: Tally | None = None, worlds: Sequence[str] = PLAIN) -> Tally:
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
                if kind in HARDER:
                    case = harder(random.Random(f"harder {seed}"), case, kind, where.rows)
                if kind in CROWDED:
                    case = crowded(random.Random(f"crowded {seed}"), case, where.rows)
                found = ask(where, case)
                tally.cases += 1
                tally.hits.update(_kinds(found))
                tally.contradictions += [f"case {seed}: {said}" for said in out_of_order(found)]
                seen = Counter[str]()
                for said in contradictions(found, found.reach, seen, tally.of_several):
                    tally.contradictions.append(f"case {seed}: {said}")
                tally.seen.update(seen)
                if case.recipe.fusion in ("convex", "tm2c2", "scored") and not case.recipe.reserve:
                    tally.scored.update(seen)
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
        tally = Tally(told["cases"], told["without data"], *known, contradictions=told["contradictions"])
        commits = told["commits"]
    commits = [*commits, *({str(COMMIT)} - set(commits) if tally.cases < CASES else ())]
    if tally.cases >= CASES:
        whole = f"{result} holds all {CASES:,} cases, of commit {', '.join(commits)}"
        print(f"{whole}; nothing was run. Remove it to go through them with this code.")
    while tally.cases < CASES:
        run(range(tally.cases, min(tally.cases + 1_000, CASES)), tally, WORLDS)
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
