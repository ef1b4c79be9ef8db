"""The random cases of the differential test: a recipe, lists of its legs and the arguments of a recall, from a seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import semmem
from semmem.model.exchange import CandidateMetadata
from semmem.model.recipe import Recipe
from tests.rank_cap.worlds import LEGS, MORE_LEGS

__all__ = ["Case", "aged", "crowded", "draw_case", "harder"]

FUSIONS = ("rrf", "rrf", "rrf", "rrf", "rank-scaled", "convex", "tm2c2", "scored")


@dataclass
class Case:
    """One question: the recipe, the arguments of the recall, and what each leg returns."""

    recipe: Recipe
    arguments: dict[str, Any]
    row_ids: dict[str, list[int]]
    scores: dict[str, list[float]]
    fails: frozenset[str] = frozenset()
    full: frozenset[int] = frozenset()
    regime: str | None = None
    most: float = 1.0
    links: tuple[tuple[str, str], ...] = ()  # (newer, older), for this question alone
    lapsed: tuple[str, ...] = ()  # what is not valid, for this question alone
    question: str = "the harbour"


def draw_case(draw: random.Random, rows: Sequence[CandidateMetadata]) -> Case:
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
    only, shared = ([h.row_id for h in pool[-cut:]], [h.row_id for h in pool[:-cut]])
    if draw.random() < 0.3:  # the least keys for the studied leg, so that it wins ties
        by_id = sorted(pool, key=lambda head: (head.id, head.part))
        only, shared = [h.row_id for h in by_id[:cut]], [h.row_id for h in by_id[cut:]]
    k = limit + offset
    row_ids: dict[str, list[int]] = {}
    for name in names:
        size = draw.choice([k, k, k + 1, len(shared)] if calm else [0, 1, k - 1, k, k, k + 1, k + 3, 2 * k])
        order = shared if draw.random() < 0.6 else draw.sample(shared, len(shared))
        if draw.random() < 0.3:  # agree on all but the last that counts
            order = [*shared[: k - 1], *draw.sample(shared[k - 1 :], len(shared[k - 1 :]))]
        row_ids[name] = list(order[: min(size, len(order))])
    at = draw.choice([0, 0, 0, 1, 2, k - 1, k, k + 2])
    behind = row_ids[studied] if draw.random() < 0.6 else []
    if calm:
        only, behind = (only, []) if draw.random() < 0.7 else (only, row_ids[studied])
    row_ids[studied] = [*behind[:at], *only, *behind[at:]]
    scores = {name: _scores(draw, name, len(of)) for name, of in row_ids.items()}
    exact = draw.choice([(), row_ids.get("lexical", ()), only, shared[:k]])
    regime = draw.choice([None, *chosen.regimes])
    fails = frozenset(name for name in names if not calm and draw.random() < 0.05)
    return Case(chosen, arguments, row_ids, scores, fails, frozenset(exact), regime, draw.choice([0.5, 1.0, 4.0]))


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
    if plan.rerank and len(plan.regimes) > 1:
        plan = replace(plan, rerank_regimes=draw.choice([(), ("named",), ("unnamed",)]))
    return semmem.recipe(plan)


def aged(draw: random.Random, case: Case) -> Case:
    """Return the case with a half-life, beside the month in which the memories were created a short or a long one.

    Some recipes have a prior by period too, and some questions name a part of that month.
    """
    half_life, floor = draw.choice([None, 0.5, 7.0, 7.0, 30.0, 365.0]), draw.choice([0.0, 0.5, 0.7, 0.9, 0.99, 1.0])
    period_floor = draw.choice([None, 0.0, 0.5, 0.9, 1.0])
    asked = draw.choice(["", " between 9 January 2026 and 12 January 2026", " before 20 January 2026", " in May 2024"])
    recipe = semmem.recipe(case.recipe, recency_half_life=half_life, recency_floor=floor, period_floor=period_floor)
    return replace(case, recipe=recipe, question=case.question + asked)


def harder(draw: random.Random, case: Case, kind: str, rows: Sequence[CandidateMetadata]) -> Case:
    """Return the case as a world of ``HARDER`` asks it.

    ``accessed``: mostly sorted by the last access. ``repeating``: legs name a row again, at once or later. ``even``:
    all scores of a leg are one. ``beyond``: about as many hits are asked for as there are memories, or more.
    ``reserving``: most legs have a guaranteed slot, and the heads of lists are mostly copies and parts that fold.
    ``budgeted``: always a budget, and another order.
    """
    row_ids, scores = {n: list(of) for n, of in case.row_ids.items()}, {n: list(of) for n, of in case.scores.items()}
    arguments = dict(case.arguments)
    if "accessed" in kind:
        arguments["sort_by"] = draw.choice(["accessed", "accessed", arguments["sort_by"]])
    if "budgeted" in kind:
        arguments["token_budget"] = draw.choice([20, 40, 60, 150, 400, 2_000])
        arguments["sort_by"] = draw.choice(["relevance", "accessed", "created", "importance"])
    if "beyond" in kind:
        arguments |= {"limit": draw.choice([39, 40, 41, 60, 150]), "offset": draw.choice([0, 0, 0, 5, 45])}
    if "reserving" in kind:
        places = draw.sample(["agreed", *case.row_ids], draw.randint(1, len(case.row_ids) + 1))
        first = draw.choice([1, 1, 1, 2])
        reserve = {name: first + at for at, name in enumerate(places)}
        case = replace(case, recipe=semmem.recipe(case.recipe, reserve=reserve, dedup=draw.random() < 0.95))
        contents, ids = Counter(head.content for head in rows), Counter(head.id for head in rows)
        folding = [head.row_id for head in rows if contents[head.content] > 1 or ids[head.id] > 1]
        for name, of in row_ids.items():
            if of and draw.random() < 0.8:
                head = draw.choice(folding)
                row_ids[name] = [head, *(row_id for row_id in of if row_id != head)][: len(of)]
                scores[name] = scores[name][: len(row_ids[name])]
    if "even" in kind:
        scores = {name: [draw.choice([0.0, 0.5, 1.0])] * len(of) for name, of in row_ids.items()}
    for name, of in row_ids.items() if "repeating" in kind else ():
        for _ in range(draw.choice([0, 1, 1, 3]) if of else 0):
            at = draw.randrange(len(of))
            to = at + 1 if draw.random() < 0.5 else draw.randint(at + 1, len(of))
            of.insert(to, of[at])
            scores[name].insert(to, scores[name][to - 1])
    return replace(case, arguments=arguments, row_ids=row_ids, scores=scores)


def crowded(draw: random.Random, case: Case, rows: Sequence[CandidateMetadata]) -> Case:
    """Return the case with up to seven legs more, asked about two to six memories, by a filter."""
    more = draw.sample(MORE_LEGS, draw.randint(2, len(MORE_LEGS)))
    ids = sorted({head.id for head in rows})
    few = draw.sample(ids, draw.choice([2, 3, 4, 4, 5, 6]))
    within = [head.row_id for head in rows if head.id in few]
    limit = draw.choice([1, 1, 2, 2, 3])
    own = draw.choice(within)  # that of one leg alone, mostly
    others = [row_id for row_id in within if row_id != own] if draw.random() < 0.8 else within
    studied = draw.choice([*case.recipe.legs, *more])
    row_ids: dict[str, list[int]] = {}
    for name in (*case.recipe.legs, *more):
        order = others if draw.random() < 0.4 else draw.sample(others, len(others))
        row_ids[name] = list(order[: draw.choice([1, limit, limit, len(order)])])
    weights = {name: draw.choice([0.05, 0.35, 1.0, 1.0, 3.0]) for name in more}
    constants = {name: draw.choice([0.0, 1.0, 8.0, 60.0]) for name in more}
    if (
        others and not case.recipe.regime_weights and draw.random() < 0.5
    ):  # each leg begins with another memory, and one leg counts as much as a few
        weights, constants = dict.fromkeys(row_ids, 1.0), dict.fromkeys(row_ids, 60.0)
        weights[studied] = draw.choice([1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0])
        long = draw.choice([1, 1, limit, len(others)])
        row_ids = {
            name: [*others[n % len(others) :], *others[: n % len(others)]][:long] for n, name in enumerate(row_ids)
        }
    at = draw.choice([0, 0, 0, 1, limit])
    row_ids[studied] = [*[row_id for row_id in row_ids[studied] if row_id != own][:at], own]
    return replace(
        case,
        recipe=semmem.recipe(
            case.recipe, weights=weights, rank_constants=constants, depths=dict.fromkeys(row_ids, 100)
        ),
        arguments={**case.arguments, "limit": limit, "filters": {"sessions": [f"of {id}" for id in few]}},
        row_ids=row_ids,
        scores={name: _scores(draw, name, len(of)) for name, of in row_ids.items()},
        full=case.full & set(within),
    )


def _scores(draw: random.Random, name: str, count: int) -> list[float]:
    low = -1.0 if name == "dense" and draw.random() < 0.3 else 0.0
    if draw.random() < 0.5:
        return [1.0 - at / (count + 1) for at in range(count)]
    levels = (0.0, 1e-10, 1e-6, 0.3, 0.5, 0.95, 1.0 - 1e-11, 1.0, 1.0)
    return sorted((low + (1 - low) * draw.choice(levels) for _ in range(count)), reverse=True)
