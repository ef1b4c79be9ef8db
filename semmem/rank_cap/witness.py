"""Witnesses and certificates of reach: lists that show an outcome, and sums in words that forbid or force it.

Everything here is about one memory that only the studied leg found, at that leg's first place.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction

from semmem.model.leg_scores import BONUS_LEG, MEEK_LEG, least_score
from semmem.rank_cap.bounds import Base, Contest
from semmem.rank_cap.guaranteed_slots import Facts, GuaranteedSlots
from semmem.rank_cap.report import ReachClass, Witness
from semmem.rank_cap.score_bounds import NOTHING, ScoreContest

__all__ = [
    "certificate",
    "counter_witness",
    "forbids",
    "forces",
    "plain",
    "score_certificate",
    "score_counter_witness",
    "score_witness",
    "witness",
]

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

    k competitors fill the first places of every other leg and the places of this leg after the first. Each leg in turn
    hands its largest share to the competitor with the smallest sum (Graham's list scheduling, 1969); several orders of
    the legs are tried, and the lists are returned only if, counted exactly, every competitor beats the memory. A
    competitor that no leg names beats nothing, whatever the bonus.
    """
    legs = [(b.leg, [b.weight / (b.constant + i) for i in range(1, min(k, b.most) + 1)]) for b in bases]
    legs.append((leg, [weight / (constant + i) for i in range(2, min(k + 1, depth) + 1)]))
    for order in itertools.islice(itertools.permutations(legs), _TRIED_ORDERS):
        rough = [0.0] * k
        sums = [Fraction(0)] * k
        places: dict[str, list[int]] = {}
        for name, shares in order:
            places[name] = sorted(range(k), key=rough.__getitem__)[: len(shares)]
            for competitor, share in zip(places[name], shares, strict=True):
                rough[competitor] += float(share)
                sums[competitor] = (sums[competitor] or bonus) + share
        if min(sums) > weight / (constant + 1):
            only = f"only-{leg}"
            lists = {name: tuple(f"m{competitor + 1}" for competitor in of_leg) for name, of_leg in places.items()}
            lists[leg] = (only, *lists[leg])
            competitors = tuple(f"m{i}" for i in range(1, k + 1))
            return Witness(only, False, lists, competitors if bonus else ())
    return None


def forbids(contest: Contest) -> str:
    """Say why the memory cannot enter: its value is below the least that the k-th best of the others earns."""
    c, k, bar, value = contest, contest.k, contest.lower_bar(), contest.best_value()
    last = [b for b in c.bases if b.kth is not None and b.weight / (b.constant + b.kth) == bar]
    whence = f"{plain(last[0].weight)}/({plain(last[0].constant)} + {last[0].kth}) = " if last else ""
    others = last[0].leg if last else "the other legs"
    weighed = ""
    if c.own_most != c.competitor_least:
        weighed = f", with the importances found times {plain(c.own_most)} against {plain(c.competitor_least)} or more"
    return (
        f"The first place of {c.leg} earns {plain(c.weight)}/({plain(c.constant)} + 1) = {value} = {float(value):.5f}; "
        f"the first {k} of {others} earn at least {whence}{bar} = {float(bar):.5f} each, which is more{weighed}."
    )


def forces(
    leg: str, weight: Fraction, constant: Fraction, value: Fraction, upper: Fraction, bases: Sequence[Base], k: int
) -> str:
    """Say why the memory cannot be kept out: k competitors would need more than all places together can give."""
    terms = [f"{plain(b.weight)}/({plain(b.constant)} + i), i = 1..{min(k, b.most)} ({b.leg})" for b in bases if b.most]
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


def certificate(contest: Contest, bare: ReachClass, reserve: GuaranteedSlots, facts: Facts) -> str:
    """Return the sum, in words, that forces or forbids the outcome; for a leg in between, where it stands."""
    c, k = contest, contest.k
    sentences = _before(c.leg, reserve, facts)
    if reserve.shut or (facts.all_shown and sentences):
        pass
    elif bare == "guaranteed" and c.outnumbers(1, facts.kept):
        sentences.append(f"Fewer than {facts.kept} other memories can be ahead of the first of {c.leg}.")
    elif bare == "guaranteed":
        sentences.append(forces(c.leg, c.weight, c.constant, c.value(), c.upper_bar(1, k), c.bases, k))
    elif bare == "boost-only":
        sentences.append(forbids(c))
    elif c.ties(c.own_most * c.best_value(), c.competitor_least * c.lower_bar()) and c.lower_bar():
        sentences.append(
            f"The first place of {c.leg} earns {c.best_value()} = {float(c.best_value()):.5f}, exactly as much as the "
            f"least that place {k} of the others can have; a tie goes by key, so it may come in or not."
        )
    else:
        sentences.append(
            f"The first place of {c.leg} earns {c.value()} = {float(c.value()):.5f}, above the lower bar "
            f"{float(c.lower_bar()):.5f} and not above the upper bar {float(c.upper_bar(1, k)):.5f}: the lists decide."
        )
    return " ".join(sentences)


def _before(leg: str, reserve: GuaranteedSlots, facts: Facts) -> list[str]:
    """Say what decides before any bar: everything is shown, a guaranteed slot, or another leg's only place."""
    if facts.all_shown:
        return ["All that was found is shown."]
    if reserve.shut:
        return [f"The only place belongs to the first memory of another leg, so {leg} brings in none of its own."]
    if reserve.place is None:
        return []
    return [f"The reserve gives the first memory of {leg} place {reserve.place} or better of {facts.k}."]


def score_witness(c: ScoreContest, k: int, *, tied: bool = False) -> Witness:
    """Return lists and scores that let the memory in: the others agree on a first, and the rest score next to nothing.

    Where the two are ``tied``, the others are named so that the tie goes to the memory.
    """
    only = f"only-{c.leg}"
    rankings: dict[str, tuple[str, ...]] = {}
    scores: dict[str, tuple[float, ...]] = {}
    heads = c.heads() if k == 1 else {}
    name = "tail" if tied else "m"
    for r in c.competitors:
        if r.least:
            nothing = least_score(r.leg) or NOTHING
            head = f"{name}{heads.get(r.leg, 0) + 1}"
            behind = f"{head}-" if k == 1 else name  # where one first place counts, nobody's second is another's first
            rankings[r.leg] = (head, *(f"{behind}{i}" for i in range(2, r.least + 1)))
            scores[r.leg] = (1.0 if r.sure or k > 1 else nothing, *[nothing] * (r.least - 1))
    rankings[c.leg], scores[c.leg] = (only,), (1.0,)
    most = {MEEK_LEG: 2.0} if not all((c.sure, *(r.sure for r in c.competitors))) else {}  # so half of it is 1
    return Witness(only, True, rankings, (only,) if c.may and c.weight <= c.lower_bar() else (), scores, most)


def score_counter_witness(c: ScoreContest, k: int) -> Witness | None:
    """Return lists and scores that keep the memory out, or None when this construction does not (which proves nothing).

    k competitors are first in every other scaled leg at once, and stand close behind the memory in its own leg.
    """
    only = f"only-{c.leg}"
    behind = min(k, c.depth - 2)  # and one more, last, for the least score
    close = Fraction(999, 1000)
    sums: list[Fraction] = []
    for i in range(1, k + 1):
        total = Fraction(0)
        for r in c.competitors:
            if i <= r.most:
                total += r.share(i) if r.constant is not None else r.weight
                total += c.bonus if r.leg == BONUS_LEG else 0
        if i <= behind:
            total += c.bonus if c.leg == BONUS_LEG else 0
            total += c.weight * close if c.constant is None else c.share(1 + i)
        sums.append(total)
    if min(sums) <= c.weight:
        return None
    ids = [f"m{i}" for i in range(1, k + 1)]
    rankings = {r.leg: tuple(ids[: r.most]) for r in c.competitors}
    scores = {leg: (1.0,) * len(keys) for leg, keys in rankings.items()}
    rankings[c.leg] = (only, *ids[: max(behind, 0)], *(["last"] if c.depth > 1 else []))
    least = least_score(c.leg)
    near = float(close) * (1.0 - least) + least
    scores[c.leg] = (1.0, *[near] * max(behind, 0), *([least] if c.depth > 1 else []))
    return Witness(only, False, rankings, tuple(ids) if c.bonus else (), scores)


def score_certificate(c: ScoreContest, bare: ReachClass, reserve: GuaranteedSlots, facts: Facts) -> str:
    """Return the bound, in words, that forces or forbids; for a leg in between, that the scores decide."""
    k = c.k
    sentences = _before(c.leg, reserve, facts)
    lower, upper = c.lower_bar(), c.upper_bar(1, k)
    earns = f"The first place of {c.leg} earns at most {plain(c.best())}"
    if reserve.shut or (facts.all_shown and sentences):
        pass
    elif bare == "guaranteed" and c.outnumbers(1, facts.kept, worst=False):
        sentences.append(f"Fewer than {facts.kept} other memories can be ahead of the first of {c.leg}.")
    elif bare == "guaranteed":
        exact = c.sure_share() == c.share()
        sure = earns if exact else f"The first place of {c.leg} earns at least {plain(c.sure_share())}"
        sentences.append(
            f"{sure}{'' if c.known and c.constant is None else ' by rank'}, and "
            f"{k} competitors cannot all have more than "
            f"{plain(upper)} = {float(upper):.5f}."
        )
    elif bare == "boost-only":
        sentences.append(f"{earns}; the {k} best of the others have at least {plain(lower)} each, which is more.")
    elif lower and c.ties(c.own_most * c.best(), c.competitor_least * lower):
        sentences.append(f"{earns}, exactly what place {k} of the others has at least; a tie goes by key.")
    else:
        sentences.append(
            f"{earns}; the others' top {k} is sure of {plain(lower)} only, and {k} competitors can all have up to "
            f"{plain(upper)}: the scores decide, so count on the corpus what gets in."
        )
    return " ".join(sentences)
