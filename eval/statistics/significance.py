"""Paired statistics over questions: whether a difference is real, how large it is, and the smallest detectable one.

Test and interval are one thing: the interval holds every difference that the sign-flip test does not reject. Where
questions come in clusters, the sign of a cluster is flipped. All draws are seeded. A flip of n differences only depends
on how often each distinct value is flipped, so binomial counts of the distinct values (few, for recall) are drawn
instead of n signs: the same distribution, a fraction of the work. `adr/0060` has what each number holds in simulation.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

__all__ = [
    "ALPHA",
    "FEW",
    "FEWEST",
    "POWER",
    "SAMPLES",
    "Paired",
    "corrected",
    "enough",
    "family",
    "flip_interval",
    "holm",
    "minimum_detectable",
    "paired",
    "questions_needed",
]

Name = TypeVar("Name", bound=Hashable)
ALPHA = 0.05
POWER = 0.80
SAMPLES = 10_000
FEWEST = 8
"""Units below which there is no interval and no p value: a test that can hardly reject shows nothing."""
FEW = 20
"""Units below which an interval is called approximate: where effects are skewed it covers less than it says."""
_ALL = 13
"""Units up to which every arrangement of signs is counted, and none drawn."""
_CELLS = 2_000_000  # numbers drawn at once: 16 MB
_SAME = 1e-12  # two values nearer than this are tied: measures are ratios of small numbers in floating point


@dataclass(frozen=True, slots=True)
class Paired:
    """The difference of a condition to its base, over the same ``n`` questions.

    ``delta`` is the mean difference over questions, ``low`` and ``high`` its interval at 95 %, ``p`` the two-sided
    permutation p value, ``p_holm`` the same after Holm's correction within its family. ``mde`` is the smallest true
    difference that as many units with this spread would show at 80 % power; None where it is above 1, the largest that
    there is, or where even the least p that so few units allow is above the level of the family. ``units`` is what was
    flipped: questions, or ``n`` questions in fewer clusters.

    An interval without width is none (``low`` and ``high`` are None): where no question differs there is no spread.
    Below eight units there is neither interval nor p value. ``each`` then has the mean difference of every unit. Below
    twenty the interval is approximate.
    """

    n: int
    base: float
    mean: float
    delta: float
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None
    won: int
    tied: int
    lost: int
    mde: float | None
    units: int
    each: tuple[float, ...] = ()

    @property
    def approximate(self) -> bool:
        """True where the units are too few for the interval to hold its level with any shape of effects."""
        return self.units < FEW

    @property
    def tested(self) -> bool:
        """True where there were enough units for a p value."""
        return self.p is not None

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        return {**asdict(self), "each": list(self.each)}


def paired(
    base: ArrayLike,
    other: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
    alpha: float = ALPHA,
) -> Paired:
    """Compare per-question values of two conditions, question by question.

    A sign-flip permutation test (Fisher; Smucker, Allan and Carterette 2007) and the interval that it does not reject
    (Hartigan 1969), over questions, or over the ``clusters`` they come in, one label a question: questions of one
    conversation are no independent draws (Cameron, Gelbach and Miller 2008). ``alpha`` is the level of the minimum
    detectable effect. Raises ValueError when the lengths differ or there is no question.
    """
    a, b = np.asarray(base, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"Paired values need one value a question in both conditions, not {a.shape} and {b.shape}.")
    if not len(a):
        raise ValueError("There is no question to compare on; choose a stratum that has some.")
    if clusters is not None and len(clusters) != len(a):
        raise ValueError(f"Clusters need one label a question: {len(clusters)} labels, {len(a)} questions.")
    difference = b - a
    difference[np.abs(difference) < _SAME] = 0.0
    sums, sizes = clustered(difference, clusters)
    low = high = p = mde = None
    if len(sums) >= FEWEST:
        p = permutation_p(sums, samples=samples, seed=seed)
        mde = minimum_detectable(difference, clusters=clusters, alpha=alpha)
        low, high = flip_interval(sums, sizes, samples=min(samples, SAMPLES), seed=seed)
        if high - low < _SAME:
            low = high = None
    return Paired(
        n=len(a),
        base=float(a.mean()),
        mean=float(b.mean()),
        delta=float(difference.mean()),
        low=low,
        high=high,
        p=p,
        p_holm=p,
        won=int((difference > 0).sum()),
        tied=int((difference == 0).sum()),
        lost=int((difference < 0).sum()),
        mde=mde,
        units=len(sums),
        each=() if p is not None else tuple(float(x) for x in sums / sizes),
    )


def clustered(
    difference: NDArray[np.float64], clusters: Sequence[Hashable] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sum of the differences and the number of questions of each cluster, in the order clusters appear."""
    if clusters is None:
        return difference, np.ones(len(difference))
    places = {label: i for i, label in enumerate(dict.fromkeys(clusters))}
    drawn = np.array([places[label] for label in clusters], dtype=np.intp)
    return (
        np.bincount(drawn, weights=difference, minlength=len(places)).astype(np.float64),
        np.bincount(drawn, minlength=len(places)).astype(np.float64),
    )


def flip_interval(
    sums: NDArray[np.float64],
    sizes: NDArray[np.float64] | None = None,
    *,
    samples: int = SAMPLES,
    seed: int = 0,
    level: float = 1 - ALPHA,
) -> tuple[float, float]:
    """Return the least and the largest mean over questions that the sign-flip test does not reject.

    ``sums`` are of units of ``sizes`` questions. An assumed mean d is rejected where the units less d times their sizes
    are as far from 0 in too few arrangements of signs, and d passes the mean of a subset of the units exactly when the
    arrangement that flips this subset changes side. So the ends are quantiles of the means of subsets.
    """
    many = np.ones(len(sums)) if sizes is None else sizes
    flipped, counted = [], []
    for plus, values in _arrangements(np.stack([sums, many]), samples, np.random.default_rng([seed, 0])):
        taken = plus @ values[1]
        flipped.append((plus @ values[0])[taken > 0] / taken[taken > 0])
        counted.append(len(taken))
    means = np.sort(np.concatenate(flipped))
    # arrangements beyond one end, the observed one among them, that are still too few for the test not to reject
    beyond = math.ceil((1 - level) / 2 * (sum(counted) + _drawn(len(sums), samples))) - 1
    index = min(max(beyond - 1, 0), (len(means) - 1) // 2)
    low, high = (0.0 if abs(end) < _SAME else float(end) for end in (means[index], means[-1 - index]))
    return low, high


def permutation_p(sums: NDArray[np.float64], *, samples: int = SAMPLES, seed: int = 0) -> float:
    """Return the two-sided p value of the sum when the sign of each unit's difference is a coin's.

    Every arrangement is counted where there are few units; else the observed one counts as one of the samples. So p is
    never 0.
    """
    sizes = np.abs(sums[sums != 0])
    if not len(sizes):
        return 1.0
    observed, reached, counted = abs(float(sums.sum())), _drawn(len(sizes), samples), _drawn(len(sizes), samples)
    for plus, (values,) in _arrangements(sizes[None], samples, np.random.default_rng([seed, 1])):
        reached += int((np.abs(2 * (plus @ values) - sizes.sum()) >= observed - 1e-9).sum())
        counted += len(plus)
    return reached / counted


def _drawn(units: int, samples: int) -> int:
    """Return how often the observed arrangement is not among those of ``_arrangements``: 1 where they are drawn."""
    return int(2**units > min(samples, 2**_ALL))


def _arrangements(
    units: NDArray[np.float64], samples: int, rng: np.random.Generator
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Yield blocks of (how often each distinct unit is in a subset, the distinct units): all subsets, or draws."""
    many = units.shape[1]
    if not _drawn(many, samples):
        yield (np.arange(2**many)[:, None] >> np.arange(many) & 1).astype(np.float64), units
        return
    distinct, counts = np.unique(units, axis=1, return_counts=True)
    step = max(1, _CELLS // distinct.shape[1])
    for start in range(0, samples, step):
        drawn = rng.binomial(counts, 0.5, size=(min(step, samples - start), len(counts)))
        yield drawn.astype(np.float64), distinct


def minimum_detectable(
    difference: NDArray[np.float64],
    *,
    clusters: Sequence[Hashable] | None = None,
    alpha: float = ALPHA,
    power: float = POWER,
    most: float = 1.0,
) -> float | None:
    """Return the smallest true mean difference that would be found with ``power``, None where no effect would be.

    A difference of measures is never above ``most``, so nothing above it is detectable.

    It is the standard error of the mean, of clusters by CR2 (Bell and McCaffrey 2002), times a factor for their
    degrees of freedom. With so few units that even the largest effect has a p above ``alpha``, nothing is detectable.

    Where no question differs at all the spread is unknown, not zero: up to 3/n of all units may differ, by up to 1 (the
    rule of three, Hanley and Lippman-Hand 1983), which bounds s by √(3/n).
    """
    sums, sizes = clustered(difference, clusters)
    units, n = len(sums), len(difference)
    if units < 2 or 2.0 ** (1 - units) > alpha:
        return None
    shares = sizes / n
    if not np.any(difference):
        error = math.sqrt(min(1.0, 3 / units) / units)
    else:
        error = math.sqrt(float(((sums - sizes * difference.mean()) ** 2 / (1 - shares)).sum())) / n
    # Satterthwaite's, for independent questions; equal clusters have one less than there are
    weights = shares**2 / (1 - shares)
    freedom = 1 / float((shares**2).sum() + weights.sum() ** 2 - (weights**2).sum())
    effect = error * _factor(freedom, alpha, power)
    return effect if effect <= most else None


def questions_needed(difference: ArrayLike, effect: float, *, alpha: float = ALPHA, power: float = POWER) -> int:
    """Return how many questions with this spread would show a true difference of ``effect`` with ``power``.

    Raises ValueError when ``effect`` is not above 0.
    """
    if effect <= 0:
        raise ValueError(f"The effect of interest must be above 0, not {effect}.")
    values = np.asarray(difference, dtype=np.float64)
    spread = float(values.std(ddof=1)) if np.any(values) else math.sqrt(min(1.0, 3 / len(values)))

    def _needed(many: int) -> int:
        return math.ceil((_factor(many - 1, alpha, power) * spread / effect) ** 2 - 1e-9)

    return bisect_left(range(_needed(FEWEST)), True, lo=FEWEST, key=lambda many: many >= _needed(many))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's (1979) adjusted p values, in the order given: they never fall along the sorted p, at most 1."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    out = [0.0] * len(p_values)
    running = 0.0
    for position, i in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - position) * p_values[i]))
        out[i] = running
    return out


def family(
    base: ArrayLike,
    others: Mapping[str, ArrayLike],
    *,
    clusters: Sequence[Hashable] | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> dict[str, Paired]:
    """Compare every condition of ``others`` to ``base`` with Holm's correction across them.

    The minimum detectable effects are at the level of the strictest step, ``ALPHA`` over their number.
    """
    alpha, draws = ALPHA / max(1, len(others)), enough(len(others), samples)
    differences = {
        name: paired(base, values, clusters=clusters, samples=draws, seed=seed, alpha=alpha)
        for name, values in others.items()
    }
    return corrected(differences)


def corrected(differences: Mapping[Name, Paired]) -> dict[Name, Paired]:
    """Return the comparisons with Holm's correction across all that were tested."""
    p_values = {name: difference.p for name, difference in differences.items() if difference.p is not None}
    holms = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    return {name: replace(difference, p_holm=holms.get(name)) for name, difference in differences.items()}


def enough(tests: int, samples: int = SAMPLES) -> int:
    """Return how many draws a permutation test needs for the least p, times ``tests``, to lie well below ``ALPHA``."""
    return max(samples, 50 * tests)


def _factor(freedom: float, alpha: float, power: float) -> float:
    """Return how many standard errors an effect needs to be found with ``power`` by a test at ``alpha``.

    Large samples need z of 1 - alpha/2 plus z of power. Here the standard error itself is an estimate, once in these
    questions and once in those that would show the effect, each as far off as ``freedom`` allows. With a quantile t,
    the mean c of s/sigma and its variance v, the factor f solves (f - t) c = z √(1 + (f² + t²) v).
    """
    t, z = float(student.ppf(1 - alpha / 2, freedom)), NormalDist().inv_cdf(power)
    c = math.sqrt(2 / freedom) * math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
    v = 1 - c * c
    square, linear, rest = c * c - z * z * v, -2 * t * c * c, (t * c) ** 2 - z * z * (1 + t * t * v)
    return (-linear + math.sqrt(linear * linear - 4 * square * rest)) / (2 * square)
