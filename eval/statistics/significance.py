"""Paired statistics over questions: whether a difference is real, how large it is, and the smallest detectable one.

All draws are seeded. A resample of n paired differences only depends on how often each distinct value is drawn, so
the bootstrap draws multinomial counts of the distinct values (few, for recall) instead of n indices: the same
distribution, a fraction of the work. Where questions come in clusters, the clusters are what is drawn and flipped.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "ALPHA",
    "FEWEST",
    "POWER",
    "SAMPLES",
    "Paired",
    "corrected",
    "enough",
    "family",
    "holm",
    "minimum_detectable",
    "paired",
    "questions_needed",
]

Name = TypeVar("Name", bound=Hashable)
ALPHA = 0.05
POWER = 0.80
SAMPLES = 10_000
FEWEST = 6
"""Units below which no arrangement of signs can reach .05: 2 of 2^5 is .0625, 2 of 2^6 is .031."""
_CELLS = 2_000_000  # numbers drawn at once: 16 MB
_SAME = 1e-12  # two values nearer than this are tied: measures are ratios of small numbers in floating point


@dataclass(frozen=True, slots=True)
class Paired:
    """The difference of a condition to its base, over the same ``n`` questions.

    ``delta`` is the mean difference over questions, ``low`` and ``high`` its bootstrap interval at 95 %, ``p`` the
    two-sided permutation p value, ``p_holm`` the same after Holm's correction within its family. ``mde`` is the
    smallest true difference that as many units with this spread would show at 80 % power. ``units`` is what was
    resampled and flipped: questions, or ``n`` questions in fewer clusters.

    An interval without width is none (``low`` and ``high`` are None): where no question differs nothing was resampled.
    Below six units there is neither interval nor p value: no arrangement of signs can reach .05. ``each`` then has the
    mean difference of every unit.
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

    Percentile bootstrap (Efron 1979; Sakai 2006 for retrieval) and a sign-flip permutation test (Fisher; Smucker, Allan
    and Carterette 2007), over questions, or over the ``clusters`` they come in, one label a question: questions of one
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
        low, high = bootstrap_interval(sums, sizes, samples=min(samples, SAMPLES), seed=seed)
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
    at = np.array([places[label] for label in clusters], dtype=np.intp)
    return (
        np.bincount(at, weights=difference, minlength=len(places)).astype(np.float64),
        np.bincount(at, minlength=len(places)).astype(np.float64),
    )


def bootstrap_interval(
    sums: NDArray[np.float64],
    sizes: NDArray[np.float64] | None = None,
    *,
    samples: int = SAMPLES,
    seed: int = 0,
    level: float = 0.95,
) -> tuple[float, float]:
    """Return the percentile interval of the mean over questions when units of ``sizes`` questions are resampled."""
    many = np.ones(len(sums)) if sizes is None else sizes
    units, counts = np.unique(np.stack([sums, many]), axis=1, return_counts=True)
    n = len(sums)
    rng = np.random.default_rng(seed)
    step = max(1, _CELLS // units.shape[1])
    means = []
    for start in range(0, samples, step):
        drawn = rng.multinomial(n, counts / n, size=min(step, samples - start))
        means.append((drawn @ units[0]) / (drawn @ units[1]))
    low, high = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def permutation_p(sums: NDArray[np.float64], *, samples: int = SAMPLES, seed: int = 0) -> float:
    """Return the two-sided p value of the sum when the sign of each unit's difference is a coin's.

    The observed arrangement counts as one of the samples, so p is never 0.
    """
    sizes, counts = np.unique(np.abs(sums[sums != 0]), return_counts=True)
    if not len(sizes):
        return 1.0
    # A stream of its own: the interval and the p value must not share their draws.
    rng = np.random.default_rng([seed, 1])
    observed = abs(float(sums.sum()))
    reached = 0
    step = max(1, _CELLS // len(sizes))
    for start in range(0, samples, step):
        plus = rng.binomial(counts, 0.5, size=(min(step, samples - start), len(sizes)))
        reached += int((np.abs((2 * plus - counts) @ sizes) >= observed - 1e-9).sum())
    return (1 + reached) / (samples + 1)


def minimum_detectable(
    difference: NDArray[np.float64],
    *,
    clusters: Sequence[Hashable] | None = None,
    alpha: float = ALPHA,
    power: float = POWER,
) -> float:
    """Return the smallest true mean difference that would be found with ``power``.

    It is (z of 1 - alpha/2, plus z of power) times the standard error: s/√n, with s the spread of the differences, or
    that of the cluster sums around the mean (Liang and Zeger 1986), over n.

    Where no question differs at all the spread is unknown, not zero: up to 3/n of all units may differ, by up to 1 (the
    rule of three, Hanley and Lippman-Hand 1983), which bounds s by √(3/n).
    """
    sums, sizes = clustered(difference, clusters)
    units, n = len(sums), len(difference)
    if not np.any(difference):
        error = math.sqrt(min(1.0, 3 / units) / units)
    elif units < 2:
        error = 1.0
    else:
        around = sums - sizes * difference.mean()
        error = math.sqrt(units / (units - 1) * float((around**2).sum())) / n
    return _z(alpha, power) * error


def questions_needed(difference: ArrayLike, effect: float, *, alpha: float = ALPHA, power: float = POWER) -> int:
    """Return how many questions with this spread would show a true difference of ``effect`` with ``power``.

    Raises ValueError when ``effect`` is not above 0.
    """
    if effect <= 0:
        raise ValueError(f"The effect of interest must be above 0, not {effect}.")
    values = np.asarray(difference, dtype=np.float64)
    reachable = minimum_detectable(values, alpha=alpha, power=power)
    return max(2, math.ceil(len(values) * (reachable / effect) ** 2))


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
    p_values = {name: at.p for name, at in differences.items() if at.p is not None}
    holms = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    return {name: replace(at, p_holm=holms.get(name)) for name, at in differences.items()}


def enough(tests: int, samples: int = SAMPLES) -> int:
    """Return how many draws a permutation test needs for the least p, times ``tests``, to lie well below ``ALPHA``."""
    return max(samples, 50 * tests)


def _z(alpha: float, power: float) -> float:
    normal = NormalDist()
    return normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)
