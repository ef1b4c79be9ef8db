"""Reach against every list there can be, for small cut-offs.

The enumerator knows nothing of bars or averages. It fills every leg's list in every way (up to renaming memories),
adds up exact shares, and takes the k-th best score of the competitors: a memory that only the studied leg found enters
if its own value is above that. Where it ties the key decides, so neither end claims it.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from fractions import Fraction
from functools import cache, lru_cache

import pytest

from semmem.model.recipe import Recipe
from semmem.rank_cap import reach
from semmem.rank_cap.report import LegReach

Numbers = tuple[str, int]  # weight as written, rank constant


def share(numbers: Numbers, place: int) -> Fraction:
    return Fraction(numbers[0]) / (numbers[1] + place)


@lru_cache(maxsize=64)
def own_lists(slots: int, docs: int) -> tuple[tuple[int | None, ...], ...]:
    """Every filling of the studied leg's other places: a competitor, each once, or a memory nobody else found."""

    def fill(left: int, used: tuple[int | None, ...]) -> Iterator[tuple[int | None, ...]]:
        if not left:
            yield used
            return
        for choice in (None, *(d for d in range(docs) if d not in used)):
            yield from fill(left - 1, (*used, choice))

    return tuple(fill(slots, ()))


def bars(
    k: int,
    own: Numbers,
    bases: list[Numbers],
    rank: int,
    sizes: list[int],
    docs: int | None = None,
    closed: bool = False,
) -> tuple[Fraction, Fraction]:
    """Return the least and the greatest k-th best score of the competitors over all lists.

    The other legs return exactly ``sizes`` of ``docs`` memories; the studied leg names up to ``rank - 1 + k`` more
    than the memory itself. ``closed``: those are of the same memories, the scope has no others.
    """
    docs = sum(sizes) if docs is None else docs
    longest = max([rank + k, *sizes])
    every = [share(n, i) for n in (own, *bases) for i in range(1, longest + 1)]
    scale = math.lcm(*(s.denominator for s in every))

    @cache
    def scaled(numbers: Numbers, place: int) -> int:
        return int(share(numbers, place) * scale)

    sums: set[tuple[int, ...]] = {(0,) * docs}
    for at, (numbers, size) in enumerate(zip(bases, sizes, strict=True)):
        # memories have no names before the first list, so that one is 0, 1, 2, .. without loss
        lists = [tuple(range(size))] if at == 0 else list(itertools.permutations(range(docs), size))
        gains = [scaled(numbers, i + 1) for i in range(size)]
        added: set[tuple[int, ...]] = set()
        for before in sums:
            for order in lists:
                after = list(before)
                for doc, gain in zip(order, gains, strict=True):
                    after[doc] += gain
                added.add(tuple(sorted(after)))
        sums = added

    def kth(before: tuple[int, ...], order: tuple[int | None, ...]) -> int:
        after = list(before)
        for doc, place in zip(order, places, strict=False):
            if doc is not None:
                after[doc] += scaled(own, place)
            elif not closed:
                after.append(scaled(own, place))
        after.sort(reverse=True)
        return after[k - 1] if len(after) >= k else 0

    places = [i for i in range(1, rank + k + 1) if i != rank]
    # a longer list of the studied leg only adds to competitors: the least is with none after the memory, the greatest
    # with k
    least = min(kth(before, order) for before in sums for order in own_lists(rank - 1, docs))
    greatest = max(kth(before, order) for before in sums for order in own_lists(len(places), docs))
    return Fraction(least, scale), Fraction(greatest, scale)


def studied(
    k: int,
    own: Numbers,
    bases: list[Numbers],
    sizes: list[int] | None = None,
    scope: int | None = None,
    **settings: object,
) -> LegReach:
    names = [f"leg{i}" for i in range(len(bases))]
    weights = {**{n: float(b[0]) for n, b in zip(names, bases, strict=True)}, "own": float(own[0])}
    constants = {**{n: b[1] for n, b in zip(names, bases, strict=True)}, "own": own[1]}
    base_sizes = None if sizes is None else dict(zip(names, sizes, strict=True))
    recipe = Recipe("small", weights, constants, **settings)  # type: ignore[arg-type]
    return reach(recipe, k, base_sizes=base_sizes, scope_size=scope, endless=()).regimes["any"].legs["own"]


def agree(leg: LegReach, rank: int, own: Numbers, least: Fraction, greatest: Fraction) -> None:
    """The class at ``rank`` says what the enumeration found."""
    value = share(own, rank)
    said = leg.class_at(rank)
    if value < least:
        assert said == "boost-only"  # no lists let it in
    else:
        assert said in ("possible", "guaranteed")  # some do, where it ties if its key is the lesser
    if said == "guaranteed":
        assert value > greatest  # none keep it out
    if rank == 1:
        assert (leg.tie == "lower_bar") == (value == leg.lower_bar)


OWN = [(w, c) for w in ("0.35", "1", "2.5") for c in (0, 1, 5, 9)]
TWO_BASES = [
    [("1", 0), ("1", 0)],
    [("1", 9), ("1", 9)],
    [("1", 60), ("1", 60)],
    [("1", 1), ("0.5", 4)],
    [("0.5", 0), ("2", 7)],
]
THREE_BASES = [[("1", 5), ("1", 5), ("1", 5)], [("1", 0), ("0.5", 3), ("0.7", 9)]]


@pytest.mark.slow
@pytest.mark.parametrize("bases", TWO_BASES)
@pytest.mark.parametrize("k", [1, 2])
def test_two_other_legs_at_every_rank_up_to_past_the_cut_off(k: int, bases: list[Numbers]) -> None:
    for own in OWN:
        leg = studied(k, own, bases)
        for rank in range(1, k + 2):
            agree(leg, rank, own, *bars(k, own, bases, rank, [k, k]))


@pytest.mark.parametrize("bases", TWO_BASES)
def test_two_other_legs_at_a_cut_off_of_three(bases: list[Numbers]) -> None:
    for own in [("0.35", 0), ("1", 5), ("2.5", 9)]:
        agree(studied(3, own, bases), 1, own, *bars(3, own, bases, 1, [3, 3]))


@pytest.mark.parametrize("bases", THREE_BASES)
@pytest.mark.parametrize("k", [1, 2])
def test_three_other_legs(k: int, bases: list[Numbers]) -> None:
    for own, rank in itertools.product([("0.35", 1), ("1", 5), ("2.5", 0)], range(1, 3)):
        agree(studied(k, own, bases), rank, own, *bars(k, own, bases, rank, [k] * 3))


def test_longer_lists_of_the_other_legs_change_no_class() -> None:
    for bases, own in itertools.product(TWO_BASES, [("0.35", 0), ("1", 5), ("2.5", 9)]):
        agree(studied(2, own, bases), 1, own, *bars(2, own, bases, 1, [2, 3]))


@pytest.mark.parametrize("sizes", [[0, 0], [0, 1], [1, 1], [1, 2], [2, 1]])
def test_short_lists_of_the_other_legs(sizes: list[int]) -> None:
    for bases, own in itertools.product(TWO_BASES, OWN[::3]):
        leg = studied(2, own, bases, sizes)
        assert leg.sparse == (max(sizes) < 2)
        for rank in (1, 2, 3):
            agree(leg, rank, own, *bars(2, own, bases, rank, sizes))


@pytest.mark.parametrize(("k", "scope"), [(1, 2), (1, 3), (2, 3), (2, 4), (2, 5), (3, 4), (3, 5)])
def test_small_scopes_of_two_other_legs(k: int, scope: int) -> None:
    for bases, own in itertools.product(TWO_BASES, OWN[::3]):
        leg = studied(k, own, bases, scope=scope)
        least, greatest = bars(k, own, bases, 1, [k, k], docs=scope - 1, closed=True)
        assert leg.lower_bar == least
        agree(leg, 1, own, least, greatest)


@pytest.mark.parametrize("bases", THREE_BASES)
@pytest.mark.parametrize(("k", "scope"), [(1, 2), (1, 3), (2, 3), (2, 4), (2, 5)])
def test_small_scopes_of_three_other_legs(k: int, scope: int, bases: list[Numbers]) -> None:
    for own in OWN[::3]:
        leg = studied(k, own, bases, scope=scope)
        least, greatest = bars(k, own, bases, 1, [k] * 3, docs=scope - 1, closed=True)
        assert leg.lower_bar == least
        agree(leg, 1, own, least, greatest)


def test_the_lower_bar_is_attained_and_the_upper_bar_is_never_passed() -> None:
    possible = in_truth_guaranteed = 0
    for k, bases, own in itertools.product((1, 2), TWO_BASES, OWN):
        leg = studied(k, own, bases)
        least, greatest = bars(k, own, bases, 1, [k, k])
        assert leg.lower_bar == least
        if k == 1:
            assert leg.upper_bar == greatest  # one competitor can be first, first and second
        # the average of what k competitors can have is above what the poorest must have, where the places are worth
        # very different amounts: here by up to a quarter
        assert greatest <= leg.upper_bar <= greatest * Fraction(5, 4)
        if leg.class_ == "possible":
            possible += 1
            in_truth_guaranteed += share(own, 1) > greatest
        if leg.counter_witness:
            assert share(own, 1) <= greatest
        if least < share(own, 1) <= greatest:
            assert leg.class_ == "possible"  # some lists let it in and some keep it out
    assert in_truth_guaranteed <= 2 < possible  # of these cases the upper bar misses two, and no more


@pytest.mark.parametrize("floor", ["0.7", "0"])
def test_the_worst_importance_is_the_memory_at_zero_and_all_others_at_one(floor: str) -> None:
    for k, bases, own in itertools.product((1, 2), TWO_BASES, OWN[1::2]):
        leg = studied(k, own, bases, prior_floor=float(floor))
        least, greatest = bars(k, own, bases, 1, [k, k])
        value = Fraction(floor) * share(own, 1)
        said = leg.class_with_prior_without_reserve
        assert (said == "boost-only") == (value < least)
        assert said != "guaranteed" or value > greatest
        best, said = share(own, 1), leg.class_with_best_prior
        assert (said == "boost-only") == (best < Fraction(floor) * least)
        assert said != "guaranteed" or best > Fraction(floor) * greatest


@pytest.mark.parametrize("seed", range(6))
def test_random_lists_of_any_length_never_contradict_a_class(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        k = rng.randint(1, 6)
        bases = [
            (rng.choice(("0.2", "0.5", "1", "1.7")), rng.choice((0, 1, 4, 20, 60))) for _ in range(rng.randint(1, 4))
        ]
        own = (rng.choice(("0.1", "0.35", "1", "4")), rng.choice((0, 1, 4, 20, 60)))
        leg = studied(k, own, bases)
        rank = rng.randint(1, k + 1)
        pool = [f"m{i}" for i in range(rng.randint(k, 3 * k))]
        scores: dict[str, Fraction] = {}
        own_list = rng.sample(pool, min(len(pool), rank - 1 + rng.randint(0, k)))
        own_list[rank - 1 : rank - 1] = ["only"]
        lists = [rng.sample(pool, rng.randint(k, len(pool))) for _ in bases]
        for numbers, ids in zip((own, *bases), (own_list, *lists), strict=True):
            for place, key in enumerate(ids, 1):
                scores[key] = scores.get(key, Fraction(0)) + share(numbers, place)
        rank = own_list.index("only") + 1
        beaten_by = sum(1 for key, score in scores.items() if key != "only" and score >= scores["only"])
        if leg.class_at(rank) == "boost-only":
            assert beaten_by >= k
        if leg.class_at(rank) == "guaranteed":
            assert beaten_by < k


@pytest.mark.slow
@pytest.mark.parametrize("bases", TWO_BASES)
def test_two_other_legs_at_a_cut_off_of_three_at_every_rank(bases: list[Numbers]) -> None:
    for own, rank in itertools.product(OWN[::3], range(1, 5)):
        agree(studied(3, own, bases), rank, own, *bars(3, own, bases, rank, [3, 3]))


@pytest.mark.slow
@pytest.mark.parametrize("bases", THREE_BASES)
def test_three_other_legs_at_a_cut_off_of_three(bases: list[Numbers]) -> None:
    for own in [("0.35", 1), ("2.5", 0)]:
        agree(studied(3, own, bases), 1, own, *bars(3, own, bases, 1, [3, 3, 3], docs=6))
