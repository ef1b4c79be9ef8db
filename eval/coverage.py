"""What an interval of few clusters covers: simulated, for ours and for the methods that it was chosen among.

    python -m eval.coverage                     # the table of adr/0060; some minutes
    python -m eval.coverage --out FILE.json

Clusters have four questions each, or 1, 2, 3 and 10. Effects are symmetric (normal), tied (a gain or a loss in two
clusters of five, nothing in the others), skewed (exponential) or heavily skewed (log-normal), with a true mean of 0.
An interval misses the truth exactly when its test rejects it, so 1 less each number is the share of false positives.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from eval.statistics.significance import ALPHA, flip_interval, minimum_detectable, permutation_p

__all__ = ["CLUSTERS", "SHAPES", "SIZES", "covered", "main", "power_at_the_detectable", "simulated"]

Array: TypeAlias = NDArray[np.float64]
CLUSTERS = (6, 8, 12, 25)
SIZES: Mapping[str, tuple[int, ...]] = {"equal": (4,), "unequal": (1, 2, 3, 10)}
SHAPES: Mapping[str, Callable[[np.random.Generator, int], Array]] = {
    "symmetric": lambda rng, many: rng.normal(0, 0.2, many),
    "tied": lambda rng, many: rng.choice([-0.5, 0.0, 0.5], many, p=[0.2, 0.6, 0.2]),
    "skewed": lambda rng, many: 0.2 * (rng.exponential(1, many) - 1),
    "heavily skewed": lambda rng, many: 0.1 * (rng.lognormal(0, 1, many) - np.exp(0.5)),
}
_DRAWS = 999
_ROUNDING = 1e-12


def simulated(rng: np.random.Generator, shape: str, sizes: Array) -> Array:
    """Return the sums of one draw of clusters whose true mean is 0; where effects are not tied, questions vary too."""
    noise = 0.0 if shape == "tied" else rng.normal(0, 0.2, len(sizes)) * np.sqrt(sizes)
    sums: Array = SHAPES[shape](rng, len(sizes)) * sizes + noise
    return sums


def _sizes(kind: str, clusters: int) -> Array:
    return np.resize(np.array(SIZES[kind], dtype=np.float64), clusters)


def _flips(sums: Array, sizes: Array, rng: np.random.Generator) -> bool:
    low, high = flip_interval(sums, sizes, samples=_DRAWS, seed=int(rng.integers(2**31)))
    return low <= _ROUNDING and high >= -_ROUNDING


def _percentile(sums: Array, sizes: Array, rng: np.random.Generator) -> bool:
    drawn, _ = _resampled(sums, sizes, rng)
    low, high = np.quantile(drawn, [ALPHA / 2, 1 - ALPHA / 2])
    return bool(low <= _ROUNDING and high >= -_ROUNDING)


def _bca(sums: Array, sizes: Array, rng: np.random.Generator) -> bool:
    """Bias-corrected and accelerated (Efron 1987)."""
    drawn, _ = _resampled(sums, sizes, rng)
    mean = sums.sum() / sizes.sum()
    below = ((drawn < mean).mean() + (drawn <= mean).mean()) / 2
    bias = stats.norm.ppf(np.clip(below, 1 / _DRAWS, 1 - 1 / _DRAWS))
    without = (sums.sum() - sums) / (sizes.sum() - sizes)
    off = without.mean() - without
    acceleration = (off**3).sum() / max(6 * (off**2).sum() ** 1.5, _ROUNDING)
    z = bias + stats.norm.ppf([ALPHA / 2, 1 - ALPHA / 2])
    low, high = np.quantile(drawn, stats.norm.cdf(bias + z / (1 - acceleration * z)))
    return bool(low <= _ROUNDING and high >= -_ROUNDING)


def _cr2(sums: Array, sizes: Array, rng: np.random.Generator) -> bool:
    """Student's t with CR2 and Satterthwaite's degrees of freedom (Bell and McCaffrey 2002)."""
    shares, mean = sizes / sizes.sum(), sums.sum() / sizes.sum()
    error = np.sqrt(((sums - sizes * mean) ** 2 / (1 - shares)).sum()) / sizes.sum()
    weights = shares**2 / (1 - shares)
    freedom = 1 / ((shares**2).sum() + weights.sum() ** 2 - (weights**2).sum())
    return bool(abs(mean) <= stats.t.ppf(1 - ALPHA / 2, freedom) * error + _ROUNDING)


def _bootstrap_t(sums: Array, sizes: Array, rng: np.random.Generator) -> bool:
    mean, error = sums.sum() / sizes.sum(), _error(sums, sizes)
    drawn, errors = _resampled(sums, sizes, rng)
    off = np.where(np.abs(drawn - mean) < _ROUNDING, 0.0, drawn - mean)
    t = np.divide(off, errors, out=np.sign(off) * 1e9, where=errors > _ROUNDING)
    low, high = np.quantile(t, [ALPHA / 2, 1 - ALPHA / 2])
    return bool(mean - high * error <= _ROUNDING and mean - low * error >= -_ROUNDING)


def _wild(weights: Array) -> Callable[[Array, Array, np.random.Generator], bool]:
    """Wild cluster bootstrap of t, null imposed (Cameron, Gelbach and Miller 2008)."""

    def covers(sums: Array, sizes: Array, rng: np.random.Generator) -> bool:
        drawn = rng.choice(weights, (_DRAWS, len(sums))) * sums
        t, theirs = abs(sums.sum()) / _error(sums, sizes), np.abs(drawn.sum(1)) / _error(drawn, sizes)
        return bool((1 + (theirs >= t - 1e-9).sum()) / (1 + _DRAWS) >= ALPHA)

    return covers


def _error(sums: Array, sizes: Array) -> Any:
    many = sums.shape[-1]
    around = sums - sizes * (sums.sum(-1, keepdims=True) / sizes.sum())
    return np.maximum(np.sqrt(many / (many - 1) * (around**2).sum(-1)) / sizes.sum(), _ROUNDING)


def _resampled(sums: Array, sizes: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the means of resamples of the clusters, and the standard error of each."""
    many = len(sums)
    drawn = rng.integers(many, size=(_DRAWS, many))
    taken, of = sums[drawn], sizes[drawn]
    means = taken.sum(1) / of.sum(1)
    around = taken - of * means[:, None]
    return means, np.sqrt(many / (many - 1) * (around**2).sum(1)) / of.sum(1)


_WEBB = np.concatenate([np.sqrt([1.5, 1, 0.5]), -np.sqrt([1.5, 1, 0.5])])
METHODS: Mapping[str, Callable[[Array, Array, np.random.Generator], bool]] = {
    "sign flips": _flips,
    "percentile": _percentile,
    "BCa": _bca,
    "bootstrap t": _bootstrap_t,
    "CR2 t": _cr2,
    "wild, Rademacher": _wild(np.array([1.0, -1.0])),
    "wild, Webb": _wild(_WEBB),
}


def covered(method: str, shape: str, kind: str, clusters: int, runs: int, *, seed: int = 0) -> float:
    """Return the share of ``runs`` simulated experiments whose interval holds the true mean."""
    rng, sizes = np.random.default_rng([seed, clusters, list(SHAPES).index(shape)]), _sizes(kind, clusters)
    return sum(METHODS[method](simulated(rng, shape, sizes), sizes, rng) for _ in range(runs)) / runs


def power_at_the_detectable(shape: str, kind: str, clusters: int, runs: int, *, seed: int = 0) -> float:
    """Return how often an experiment finds the effect that an earlier one of its kind called detectable."""
    rng, sizes = np.random.default_rng([seed, clusters, list(SHAPES).index(shape)]), _sizes(kind, clusters)
    labels = np.repeat(np.arange(clusters), sizes.astype(int))
    found = 0
    for _ in range(runs):
        pilot = simulated(rng, shape, sizes)
        effect = minimum_detectable((pilot / sizes)[labels], clusters=list(labels), most=math.inf)  # no measure
        planted = simulated(rng, shape, sizes) + (effect or 0.0) * sizes
        found += permutation_p(planted, samples=_DRAWS, seed=int(rng.integers(2**31))) < ALPHA
    return found / runs


def _table(runs: int) -> list[dict[str, Any]]:
    return [
        {
            "effects": shape,
            "clusters": clusters,
            "sizes": kind,
            **{method: round(covered(method, shape, kind, clusters, runs), 3) for method in METHODS},
            "power at the detectable": round(power_at_the_detectable(shape, kind, clusters, runs), 3),
        }
        for shape in SHAPES
        for kind in SIZES
        for clusters in CLUSTERS
    ]


def main(args: Sequence[str] | None = None) -> None:
    """Simulate, print the table in Markdown, and write it as JSON where asked."""
    parser = argparse.ArgumentParser(prog="python -m eval.coverage", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=500, help="simulated experiments a cell")
    parser.add_argument("--out", type=Path, help="file for the table as JSON")
    asked = parser.parse_args(args)
    rows = _table(asked.runs)
    print("| " + " | ".join(rows[0]) + " |\n" + "|---" * len(rows[0]) + "|")
    for row in rows:
        print(
            "| " + " | ".join(f"{v:.3f}".lstrip("0") if isinstance(v, float) else str(v) for v in row.values()) + " |"
        )
    if asked.out:
        asked.out.write_text(json.dumps({"runs": asked.runs, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
