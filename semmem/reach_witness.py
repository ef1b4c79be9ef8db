"""Witnesses and certificates of reach: lists that show an outcome, and sums in words that forbid or force it.

Everything here is about one memory that only the studied leg found, at that leg's first place.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction

from semmem.reach_bounds import Base
from semmem.reach_report import Witness

__all__ = ["counter_witness", "forbids", "forces", "plain", "witness"]

_TRIED_ORDERS = 6


def witness(leg: str, bases: Sequence[Base], k: int, tails: Mapping[str, int], exact: bool) -> Witness:
    """Return lists that let the memory in whenever its value exceeds the lower bar.

    All other legs agree on the first k - 1 memories and then each names a memory of its own (``tails``: leg -> which),
    so that the k-th best has a single share, taken at place k. ``exact`` gives the memory the exact-match bonus.
    """
    only = f"only-{leg}"
    shared = [f"m{i}" for i in range(1, k)]
    lists = {b.leg: tuple([*shared, f"tail{tails[b.leg]}"] if b.leg in tails else shared[: b.least]) for b in bases}
    return Witness(only, True, {**lists, leg: (only,)}, (only,) if exact else ())


def counter_witness(
    leg: str, weight: Fraction, constant: Fraction, depth: int, bases: Sequence[Base], k: int, bonus: Fraction
) -> Witness | None:
    """Return lists that keep the memory out, or None when none was found (which proves nothing).

    k rivals fill the first places of every other leg and the places of this leg after the first. Each leg in turn
    hands its largest share to the rival with the smallest sum (Graham's list scheduling, 1969); several orders of the
    legs are tried, and the lists are returned only if, counted exactly, every rival beats the memory.
    """
    legs = [(b.leg, [b.weight / (b.constant + i) for i in range(1, min(k, b.most) + 1)]) for b in bases]
    legs.append((leg, [weight / (constant + i) for i in range(2, min(k + 1, depth) + 1)]))
    for order in itertools.islice(itertools.permutations(legs), _TRIED_ORDERS):
        rough = [0.0] * k
        sums = [bonus] * k
        places: dict[str, list[int]] = {}
        for name, shares in order:
            places[name] = sorted(range(k), key=rough.__getitem__)[: len(shares)]
            for rival, share in zip(places[name], shares, strict=True):
                rough[rival] += float(share)
                sums[rival] += share
        if min(sums) > weight / (constant + 1):
            only = f"only-{leg}"
            lists = {name: tuple(f"m{rival + 1}" for rival in of_leg) for name, of_leg in places.items()}
            lists[leg] = (only, *lists[leg])
            rivals = tuple(f"m{i}" for i in range(1, k + 1))
            return Witness(only, False, lists, rivals if bonus else ())
    return None


def forbids(
    leg: str, weight: Fraction, constant: Fraction, value: Fraction, bar: Fraction, bases: Sequence[Base], k: int
) -> str:
    """Say why the memory cannot enter: its value is not above what the k-th best of the others earns at least."""
    last = [b for b in bases if b.weight / (b.constant + k) == bar]
    whence = f"{plain(last[0].weight)}/({plain(last[0].constant)} + {k}) = " if last else ""
    others = last[0].leg if last else "the other legs"
    how = "exactly as much, and a tie goes by key, so no list brings it in by score" if value == bar else "more"
    return (
        f"The first place of {leg} earns {plain(weight)}/({plain(constant)} + 1) = {value} = {float(value):.5f}; "
        f"the first {k} of {others} earn at least {whence}{bar} = {float(bar):.5f} each, which is {how}."
    )


def forces(
    leg: str, weight: Fraction, constant: Fraction, value: Fraction, upper: Fraction, bases: Sequence[Base], k: int
) -> str:
    """Say why the memory cannot be kept out: k rivals would need more than all places together can give."""
    terms = [f"{plain(b.weight)}/({plain(b.constant)} + i), i = 1..{min(k, b.most)} ({b.leg})" for b in bases]
    terms.append(f"{plain(weight)}/({plain(constant)} + i), i = 2..{k + 1} ({leg})")
    return (
        f"{k} memories that all reach a first place of {leg}, {plain(weight)}/({plain(constant)} + 1) = {value}, need "
        f"{k} x {value} = {float(k * value):.5f} between them; all that {k} memories can collect is the sum of "
        f"{' + '.join(terms)} = {float(k * upper):.5f}, which is less."
    )


def plain(number: Fraction) -> str:
    """Return the number as a person writes it: 1, 0.35, or 1/3 where no short decimal is exact."""
    if number.denominator == 1:
        return str(number.numerator)
    short = repr(float(number))
    return short if Fraction(short) == number else str(number)
