"""What a leg found: the memories that stand in no list of the condition without it, each with the class of its ranks.

A leg that gives the graph its seeds is told apart. The graph repeats the heads of the legs before it, so what such a
leg found stands in the graph's list as well, and in no list at all without the leg. So the condition without the leg is
asked and compared; the other lists of the condition with it would say that nobody found anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from eval.datasets import Query
from eval.experiments.conditions import Condition
from eval.experiments.fusion import lists_of, regime_of
from eval.experiments.lists import Asked, Found, Key
from eval.statistics.measures import Run
from semmem.rank_cap import reach_in
from semmem.rank_cap.places import Lists
from semmem.rank_cap.report import CLASSES, ReachClass, RegimeReach
from semmem.rank_cap.several import class_of_find

__all__ = ["Contradicted", "Finds", "Known", "Part", "finds", "new"]

SEEDED = "graph"
"""The leg that walks from the heads of the others."""


class Contradicted(Exception):
    """A measured list contradicts the computed reach; the message says where."""


@dataclass(frozen=True, slots=True)
class Part:
    """The finds of one class that the same legs brought: how many, how many entered the first k; gold in both."""

    by: tuple[str, ...]
    class_: ReachClass
    found: int
    entered: int
    gold: int
    gold_entered: int

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        counts = {"found": self.found, "entered": self.entered, "gold": self.gold, "gold entered": self.gold_entered}
        return {"by": list(self.by), "class": self.class_, **counts}


@dataclass(frozen=True, slots=True)
class Finds:
    """All finds of ``leg`` at cut-off ``k``, over the questions. ``seeds`` says that the graph walks from its heads."""

    leg: str
    k: int
    seeds: bool = False
    parts: tuple[Part, ...] = ()

    @property
    def found(self) -> int:
        """How many memories the leg found."""
        return sum(part.found for part in self.parts)

    @property
    def entered(self) -> int:
        """How many of them are in the first k."""
        return sum(part.entered for part in self.parts)

    @property
    def may_enter(self) -> int:
        """How many of them arithmetic does not bar."""
        return sum(part.found for part in self.parts if part.class_ in ("possible", "guaranteed"))

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        return {"k": self.k, "seeds": self.seeds, "parts": [part.as_dict() for part in self.parts]}


@dataclass(slots=True)
class Known:
    """Reach for the lists of one recipe, computed once for lists that are alike to the arithmetic."""

    _reach: dict[Any, RegimeReach] = field(default_factory=dict)
    _of_question: dict[Any, tuple[Lists, RegimeReach]] = field(default_factory=dict)

    def of(
        self, holder: Condition, k: int, asked: Asked, memories: Mapping[Key, Found], scope: int | None
    ) -> tuple[Lists, RegimeReach]:
        """Return what is known of one question's lists, and the reach of every leg for lists like these."""
        question = (holder.name, k, asked.id)
        if question not in self._of_question:
            regime = regime_of(holder.recipe, asked)
            lists = lists_of(holder.recipe, asked, memories, k, excluded=holder.excluded)
            alike = (
                *(holder.name, k, regime, scope, lists.decided, lists.kept, lists.places, lists.folded),
                tuple(lists.lists.items()),
                tuple(lists.absent.items()),
            )
            if alike not in self._reach:
                self._reach[alike] = reach_in(holder.recipe, lists, k, scope_size=scope).regimes[regime]
            self._of_question[question] = lists, self._reach[alike]
        return self._of_question[question]


Ranks: TypeAlias = Mapping[str, int]


def new(holder: Condition, without: Condition, leg: str, asked: Asked, lists: Asked) -> dict[str, Ranks]:
    """Return the memories that stand in no list of the condition without ``leg``, with their rank in each list.

    ``asked`` are the lists of ``holder``, which has the leg, ``lists`` those of ``without``. Where that has the leg too
    its own list counts for nothing. Of a memory with several rows the best one counts.
    """
    if holder.excluded == leg:
        return {}
    there = [name for name in without.recipe.legs if name != leg]
    old = {id for ids in lists.ids(without.recipe.depths, there).values() for id in ids}
    ranks: dict[str, dict[str, int]] = {}
    for name, keys in asked.rankings(holder.recipe.depths, holder.recipe.legs).items():
        for rank, (id, _) in enumerate(keys, start=1):
            if id not in old:
                ranks.setdefault(id, {}).setdefault(name, rank)
    return dict(ranks)


def finds(
    holder: Condition,
    without: Condition,
    leg: str,
    k: int,
    queries: Sequence[Query],
    asked: Mapping[str, Asked],
    lists: Mapping[str, Asked],
    sizes: Mapping[str, int],
    memories: Mapping[str, Mapping[Key, Found]],
    run: Run,
    known: Known,
) -> Finds:
    """Return what ``leg`` found over ``queries``.

    ``run`` are the fused lists of ``holder``. Raises Contradicted where a find that is boost-only stands in its first
    ``k``, or one that is guaranteed does not.
    """
    counts: dict[tuple[tuple[str, ...], ReachClass], Counter[str]] = {}
    for query in queries:
        first, folded = _first(run.get(query.id, ()), k)
        gold = set(query.gold_memories)
        own = new(holder, without, leg, asked[query.id], lists[query.id])
        if not own:
            continue
        of_space, scope = memories.get(query.namespace, {}), sizes.get(query.namespace)
        known_lists, reach = known.of(holder, k, asked[query.id], of_space, scope)
        regime = regime_of(holder.recipe, asked[query.id])
        for id, ranks in own.items():
            class_ = class_of_find(holder.recipe, regime, known_lists, reach, ranks)
            if holder.recipe.rerank is None:
                _check(id, class_, ranks, first, folded, f"Question {query.id} under {holder.name} at k = {k}")
            by = tuple(sorted(ranks, key=lambda name: (name != leg, name)))
            counts.setdefault((by, class_), Counter()).update(
                {
                    "found": 1,
                    "entered": int(id in first),
                    "gold": int(id in gold),
                    "gold entered": int(id in first & gold),
                }
            )
    seeds = leg != SEEDED and SEEDED in holder.recipe.legs and holder.recipe.graph.seeds > 0
    return Finds(leg, k, seeds, tuple(_parts(counts, leg)))


def _parts(counts: Mapping[tuple[tuple[str, ...], ReachClass], Mapping[str, int]], leg: str) -> Iterator[Part]:
    """Yield the parts: first what the leg alone found, last what it has only led to; the strongest class first."""
    for (by, class_), of in sorted(
        counts.items(),
        key=lambda item: (leg not in item[0][0], len(item[0][0]), item[0][0], -CLASSES.index(item[0][1])),
    ):
        yield Part(by, class_, of["found"], of["entered"], of["gold"], of["gold entered"])


def _check(id: str, class_: ReachClass, ranks: Ranks, first: set[str], folded: set[str], where: str) -> None:
    ranked = ", ".join(f"{leg} {rank}" for leg, rank in ranks.items())
    if class_ in ("boost-only", "unreachable") and id in first:
        said = f"by arithmetic a memory at {ranked} is {class_}, and it is in the first places"
    elif class_ == "guaranteed" and id not in first | folded:
        said = f"by arithmetic a memory at {ranked} is guaranteed a place, and it is not among the first"
    else:
        return
    raise Contradicted(
        f"{where}: {said}. One of the two is wrong, so nothing of this run can be trusted; please report the recipe "
        "and the lists' lengths."
    )


def _first(places: Sequence[str | tuple[str, ...]], k: int) -> tuple[set[str], set[str]]:
    """Return the memories shown in the first ``k`` places, and those that were folded into them."""
    shown = {place if isinstance(place, str) else place[0] for place in places[:k]}
    folded = {id for place in places[:k] if not isinstance(place, str) for id in place[1:]}
    return shown, folded
