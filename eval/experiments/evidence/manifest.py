"""The committed results made again: which there are, how each is made, and what differs."""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.datasets import DatasetError
from eval.statistics.verdict import kind_of

__all__ = ["MANIFEST", "Made", "differences", "manifest"]

MANIFEST = Path(__file__).resolve().parents[2] / "evidence.toml"
_SAME = 5e-4
"""Numbers nearer than this are printed alike."""


@dataclass(frozen=True, slots=True)
class Made:
    """A committed result: its name, its set, and the words after ``python -m eval`` that make it."""

    name: str
    data: str
    words: tuple[str, ...]


def manifest(data: str | None = None, only: Sequence[str] = (), path: Path = MANIFEST) -> list[Made]:
    """Return the results of one set, or of all. Raises DatasetError for a set or a name that has none."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    only_set = None if data is None else Path(data).name
    if only_set is not None and only_set not in content["sets"]:
        raise DatasetError(f"No committed result is of {only_set}; there are results of {', '.join(content['sets'])}.")
    out = []
    for name, kinds in content["sets"].items():
        for kind in kinds:
            if only_set in (None, name) and (not only or kind in only):
                place = content["paths"].get(name, name)
                words = (*shlex.split(content["commands"][kind]), "--data", place)
                out.append(Made(f"{name}-{kind}", place, words))
    if not out:
        raise DatasetError(f"No committed result of {only_set or 'any set'} is called {' or '.join(only)}.")
    return out


def differences(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> list[list[str]]:
    """Return what a result measured again says otherwise: where, metric, questions, then, now; nothing where alike."""
    rows = []
    theirs = {(c["name"], c["metric"], c["group"]): c for c in earlier["comparisons"]}
    ours = {(c["name"], c["metric"], c["group"]): c for c in now["comparisons"]}
    for place in dict.fromkeys([*theirs, *ours]):
        then, since = theirs.get(place), ours.get(place)
        if (
            then is None
            or since is None
            or kind_of(then) != kind_of(since)
            or any(_differing(_delta(then), _delta(since)))
        ):
            rows.append([*place, _verdict_and_delta(then), _verdict_and_delta(since)])
        else:
            rows += [[*place, *pair] for pair in _differing(_beside(then), _beside(since))]
    for name in earlier["conditions"].keys() & now["conditions"].keys():
        before, after = (conditions[name]["measures"] for conditions in (earlier["conditions"], now["conditions"]))
        for group in before.keys() | after.keys():
            one, other = before.get(group, {}), after.get(group, {})
            for metric in one.keys() & other.keys():
                if abs(one[metric] - other[metric]) > _SAME:
                    rows.append([name, metric, group, f"{one[metric]:.4f}", f"{other[metric]:.4f}"])
    return sorted(rows)


def _paired(comparison: Mapping[str, Any]) -> Mapping[str, Any]:
    return comparison.get("paired") or comparison.get("reranking") or {}


def _delta(comparison: Mapping[str, Any]) -> dict[str, float | None]:
    return {"delta": _paired(comparison).get("delta")}


def _beside(comparison: Mapping[str, Any]) -> dict[str, float | None]:
    """Return what stands beside the delta of a comparison: its interval, p value and counts."""
    paired = _paired(comparison)
    shown = ("low", "high", "p_holm", "mde", "won", "tied", "lost", "units")
    return {**{name: paired.get(name) for name in shown}, **comparison.get("turnover", {})}


def _differing(one: Mapping[str, float | None], other: Mapping[str, float | None]) -> Iterator[tuple[str, str]]:
    for name in dict.fromkeys([*one, *other]):
        a, b = one.get(name), other.get(name)
        if (a is None) != (b is None) or (a is not None and b is not None and abs(a - b) > _SAME):
            yield f"{name} {_plain(a)}", f"{name} {_plain(b)}"


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _verdict_and_delta(comparison: Mapping[str, Any] | None) -> str:
    if comparison is None:
        return "–"
    paired = _paired(comparison)
    return f"{kind_of(comparison)} {paired['delta']:+.4f}" if paired else kind_of(comparison)


def result_in(folder: Path) -> Mapping[str, Any]:
    """Return the result that was written to ``folder``."""
    result: Mapping[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    return result
