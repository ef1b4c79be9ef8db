"""Store the lists that every leg returned for every question, so that they are asked once and fused many times.

The lists are what ``Recall.candidates`` keeps for experiments that fuse again: one recall, with everything after the
legs switched off and the deepest depths of the group, and a whole sweep costs one pass over the questions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

from eval.datasets import Query
from semmem.legs.graph import NAMED, UNNAMED
from semmem.model.question import Period
from semmem.model.recipe import Recipe
from semmem.model.recipe import recipe as variant
from semmem.read.regimes import ANCHORED, DESCRIBED
from semmem.text.periods import periods_of

__all__ = ["AFTER", "Asked", "Found", "Key", "ask_all", "asking", "group_key", "grouped", "shallow"]

Key: TypeAlias = tuple[str, int]
"""A memory's id and the number of its part, 0 for a whole one: fused and ordered as recall orders them."""


@dataclass(frozen=True, slots=True)
class Found:
    """What fusion and folding need of a memory: no text. ``content`` is the hash of its normalised text, as hex.

    ``created_at`` is in seconds since 1970.
    """

    importance: float
    content: str
    created_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Asked:
    """One question's lists: ``legs`` maps a leg to its (key, score) pairs, best first; ``exact`` earned the bonus.

    ``timings`` are seconds by stage as recall reports them; ``degraded`` names legs that could not answer; ``most`` is
    the best score the question allows in a leg that knows it. ``periods`` are the words, the start and the end of each
    period that the question names.
    """

    id: str
    regime: str
    legs: Mapping[str, Sequence[tuple[Key, float]]]
    exact: tuple[Key, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    degraded: Mapping[str, str] = field(default_factory=dict)
    most: Mapping[str, float] = field(default_factory=dict)
    periods: tuple[tuple[str, str | None, str | None], ...] = ()

    def rankings(self, depths: Mapping[str, int], legs: Iterable[str]) -> dict[str, list[Key]]:
        """Return the keys of the named legs, each cut to its depth; a leg that did not answer is left out."""
        return {leg: [key for key, _ in pairs] for leg, pairs in self.scored(depths, legs).items()}

    def scored(self, depths: Mapping[str, int], legs: Iterable[str]) -> dict[str, list[tuple[Key, float]]]:
        """Return (key, score) pairs of the named legs, each cut to its depth; a leg without an answer is left out."""
        return {leg: list(self.legs[leg][: depths.get(leg, 100)]) for leg in legs if leg in self.legs}

    def ids(self, depths: Mapping[str, int], legs: Iterable[str]) -> dict[str, list[str]]:
        """Return the memories of the named legs, each at the place of its best part."""
        return {leg: list(dict.fromkeys(id for id, _ in keys)) for leg, keys in self.rankings(depths, legs).items()}


AFTER = frozenset(
    {
        *("name", "weights", "rank_constants", "depths", "timeouts", "reserve", "prior", "prior_floor", "exact_bonus"),
        *(
            "recency_half_life",
            "recency_floor",
            "period_floor",
            "dedup",
            "fusion",
            "regime_weights",
            "regime_reserve",
            "rerank",
            "rerank_depth",
        ),
    }
)
"""Settings of a recipe that act after the legs: two recipes that differ in these alone share their lists."""


def group_key(recipe: Recipe) -> str:
    """Return what two recipes must share to be fused from the same lists.

    The lexical and dense lists are prefixes of their deeper selves. The graph's list depends on which legs gave it
    seeds, so the legs are part of the key where it is called. A setting that is not known to act after the legs is
    taken to act in them.
    """
    about = {name: value for name, value in recipe.as_dict().items() if name not in AFTER}
    if recipe.lexical.match != "any":
        about["lexical depth"] = recipe.depths.get("lexical", 100)
    about["legs"] = sorted(recipe.legs)
    if "graph" not in recipe.legs:
        del about["graph"]
        about["legs"] = "no graph"
    return blake2b(json.dumps(about, sort_keys=True, default=str).encode(), digest_size=6).hexdigest()


def grouped(recipes: Mapping[str, Recipe]) -> list[list[str]]:
    """Return names of recipes by the lists they can share; one without the graph is served by a group that has it."""
    groups: dict[str, list[str]] = {}
    for name, recipe in recipes.items():
        groups.setdefault(group_key(recipe), []).append(name)
    with_graph = [g for g in groups.values() if "graph" in recipes[g[0]].legs]
    for names in [g for g in groups.values() if g not in with_graph]:
        one = recipes[names[0]]
        needs = {leg for name in names for leg in recipes[name].legs}
        for host in with_graph:
            theirs = recipes[host[0]]
            same = group_key(
                replace(
                    one,
                    graph=theirs.graph,
                    weights=theirs.weights,
                    depths=theirs.depths,
                    rank_constants=theirs.rank_constants,
                )
            ) == group_key(theirs)
            if same and one.lexical.match == "any" and needs <= set(theirs.legs):
                host.extend(names)
                names.clear()
                break
    return [g for g in groups.values() if g]


def asking(recipes: Sequence[Recipe]) -> Recipe:
    """Return the recipe that shows the whole lists of a group: no prior, folding or reserve, and the deepest depths.

    ``exact_bonus`` is on, so that the component tells which memories would earn it.
    """
    legs = {leg for r in recipes for leg in r.legs}
    depths = {leg: max(r.depths.get(leg, 100) for r in recipes if leg in r.legs) for leg in sorted(legs)}
    first = next((r for r in recipes if "graph" in r.legs), recipes[0])
    return replace(
        first,
        name="lists",
        weights=dict.fromkeys(sorted(legs), 1.0),
        rank_constants=_constants(sorted(legs)),
        depths=depths,
        reserve={},
        prior=False,
        recency_half_life=None,
        period_floor=None,
        exact_bonus=1.0 if "lexical" in legs else 0.0,
        dedup=False,
        fusion="rrf",
        regime_weights={},
        regime_reserve={},
        rerank=None,
    )


def _constants(legs: Sequence[str]) -> dict[str, Any]:
    # A recall reports the regime only where a constant depends on it, so the graph has a constant for each.
    regimes = dict.fromkeys((NAMED, UNNAMED, ANCHORED, DESCRIBED), 60.0)
    return {leg: regimes if leg == "graph" else 60.0 for leg in legs}


def ask_all(
    mem: Any,
    queries: Sequence[Query],
    recipes: Sequence[Recipe],
    *,
    cache: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    shared: dict[Any, Any] | None = None,
) -> tuple[dict[str, Asked], dict[str, dict[Key, Found]]]:
    """Ask every question once with the lists recipe; return lists by question and memories by namespace and key.

    ``cache`` is a file that grows by a line a question, so an interrupted run takes up where it stopped; a line that
    was cut short is asked again. ``shared`` holds the lists of other groups, so that equal ones are in
    memory once.
    """
    wide = asking(recipes)
    pool = {} if shared is None else shared
    by_question, by_namespace = _read(cache, pool)
    todo = [q for q in queries if q.id not in by_question]
    if cache is not None and todo:
        cache.parent.mkdir(parents=True, exist_ok=True)
        _mend(cache)
    with cache.open("a", encoding="utf-8") if cache is not None else nullcontext() as out:
        for query in todo:
            lists, memories = _ask(mem, query, wide, pool)
            by_question[query.id] = lists
            space = by_namespace.setdefault(query.namespace, {})
            new = {key: memory for key, memory in memories.items() if key not in space}
            space.update(new)
            # A leg that failed is asked again next time: a failure must not be cached as an answer.
            if out is not None and not lists.degraded:
                rows = [[*key, m.importance, m.content, m.created_at] for key, m in new.items()]
                out.write(json.dumps({"namespace": query.namespace, "asked": asdict(lists), "found": rows}) + "\n")
                out.flush()
            if progress is not None:
                progress(len(by_question), len(queries))
    return by_question, by_namespace


def _ask(mem: Any, query: Query, wide: Recipe, pool: dict[Any, Any]) -> tuple[Asked, dict[Key, Found]]:
    recall = mem.recall(query.text, namespace=query.namespace, limit=1, recipe=wide)
    lists = recall.candidates
    asked = Asked(
        id=query.id,
        regime=lists.regime,
        legs={
            leg: _once(pool, (((k[0], k[1]), float(score)) for k, score in zip(keys, lists.raw[leg], strict=True)))
            for leg, keys in lists.rankings.items()
        },
        exact=tuple(sorted((key[0], key[1]) for key in lists.exact)),
        timings={k: float(v) for k, v in recall.timings.items()},
        degraded=dict(recall.degraded),
        most=dict(lists.most),
        periods=tuple(_period(one) for one in periods_of(query.text, query.now or datetime.now(UTC))),
    )
    memories = {
        (key[0], key[1]): Found(h.importance, h.content.hex(), h.created_at) for key, h in lists.metadata.items()
    }
    return asked, memories


def _period(period: Period) -> tuple[str, str | None, str | None]:
    start, end = (None if at is None else at.isoformat() for at in (period.start, period.end))
    return period.words, start, end


def _once(pool: dict[Any, Any], pairs: Iterable[tuple[Key, float]]) -> tuple[tuple[Key, float], ...]:
    """Return ``pairs`` as a tuple of ``pool``, so that equal lists and equal keys are in memory once."""
    whole = tuple((pool.setdefault(key, key), score) for key, score in pairs)
    same: tuple[tuple[Key, float], ...] = pool.setdefault(whole, whole)
    return same


def _read(cache: Path | None, pool: dict[Any, Any]) -> tuple[dict[str, Asked], dict[str, dict[Key, Found]]]:
    by_question: dict[str, Asked] = {}
    by_namespace: dict[str, dict[Key, Found]] = {}
    if cache is None or not cache.is_file():
        return by_question, by_namespace
    for line in cache.read_text(encoding="utf-8").split("\n"):
        try:
            row = json.loads(line)
        except ValueError:
            continue  # the line an interrupt cut short
        lists = row["asked"]
        if "periods" not in lists:
            continue  # of an earlier version
        lists["periods"] = tuple((words, start, end) for words, start, end in lists["periods"])
        lists["legs"] = {leg: _once(pool, (((k[0], k[1]), s) for k, s in of)) for leg, of in lists["legs"].items()}
        lists["exact"] = tuple((id, part) for id, part in lists["exact"])
        by_question[lists["id"]] = Asked(**lists)
        by_namespace.setdefault(row["namespace"], {}).update(
            {(id, part): Found(*fields) for id, part, *fields in row["found"]}
        )
    return by_question, by_namespace


def _mend(cache: Path) -> None:
    """Remove a last line without an end from the file ``cache``, so that the next one starts on a line of its own."""
    if cache.is_file() and (data := cache.read_bytes()) and not data.endswith(b"\n"):
        cache.write_bytes(data[: data.rfind(b"\n") + 1])


def shallow(recipe: Recipe, smallest: int, *, depth: int = 15) -> Recipe:
    """Return ``recipe`` with every depth at most ``depth`` when a leg would return a whole namespace otherwise.

    Where a leg without a natural end is as deep as the smallest namespace is large, it returns everything, no memory
    can be the find of another leg alone, and an ablation measures re-ranking only.
    """
    if not smallest or all(recipe.depths.get(leg, 100) < smallest for leg in recipe.legs):
        return recipe
    return variant(recipe, depths={leg: min(depth, recipe.depths.get(leg, 100)) for leg in recipe.legs})
