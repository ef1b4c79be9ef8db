"""Read and check the model of a system's fusion from ``eval/systems/NAME.toml``."""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, get_args

from semmem.model.errors import InvalidInput

__all__ = ["RULES", "Depth", "Fusion", "Leg", "Source", "System", "WeightUse", "load", "names"]

_HERE = Path(__file__).resolve().parent

Rule = Literal["rrf", "rank-scaled", "min-max", "max", "candidates", "interleave"]
WeightUse = Literal["yours", "fixed", "ignored"]
RULES: Mapping[Rule, str] = {
    "rrf": "sum of w/(constant + rank)",
    "rank-scaled": "sum of 1/(rank/w + constant - 1), ranks from 1",
    "min-max": "sum of w x score, each list scaled to [0, 1] by its own least and best score",
    "max": "the largest raw score of any list",
    "candidates": "sum of scores, over the documents of the candidate legs alone",
    "interleave": "the legs take turns, in their order",
}
"""The formulas a model may name."""


@dataclass(frozen=True, slots=True)
class Source:
    """A place in the source, in our words. ``lines`` is empty where they were not counted, ``at`` where it is
    the version of the system."""

    path: str
    says: str
    lines: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Depth:
    """How many documents for a cut-off k: the larger of ``per_k`` x k and ``least``."""

    per_k: int
    least: int

    def at(self, k: int) -> int:
        """Return the number for the first ``k``."""
        return max(self.per_k * k, self.least)


@dataclass(frozen=True, slots=True)
class Leg:
    """A leg. ``candidates``: what it finds can be in the result. ``most``: the largest score it adds (rule candidates).

    ``alone``: what a list of one document (or of equal scores) is scaled to (rule min-max).
    """

    name: str
    weight: float = 1.0
    candidates: bool = True
    most: float = 1.0
    alone: int = 1

    @property
    def exact_weight(self) -> Fraction:
        """The weight as it is written: .3 is 3/10."""
        return Fraction(str(self.weight))


@dataclass(frozen=True, slots=True)
class Fusion:
    """One way to fuse that a system offers.

    ``constant`` is the source's own and ``origin`` the rank of its first place, 0 or 1. ``depth`` is how many
    documents a leg is asked for (None: the caller decides; taken as deep). ``pool`` and ``reranker``: how many of the
    fused list a reranker is shown. ``weights``: the caller's, fixed, or accepted and not read. ``adds_copies``: a
    document that one list holds twice earns the sum of both places.
    """

    name: str
    when: str
    rule: Rule
    weights: WeightUse
    legs: tuple[Leg, ...]
    short: str
    threshold: str
    mend: str
    constant: float = 0
    origin: int = 1
    depth: Depth | None = None
    pool: Depth | None = None
    reranker: str = ""
    adds_copies: bool = False

    def shown(self, k: int) -> int:
        """Return how many of the fused list reach the result, or the reranker, for the first ``k``."""
        return max(k, self.pool.at(k)) if self.pool else k


@dataclass(frozen=True, slots=True)
class System:
    """A system's fusions, and where in which version they were read."""

    name: str
    title: str
    repository: str
    version: str
    release: str
    read: datetime.date
    fusions: tuple[Fusion, ...]
    sources: tuple[Source, ...]
    not_modelled: tuple[str, ...]


def names() -> list[str]:
    """Return the names of the systems that are modelled."""
    return sorted(path.stem for path in _HERE.glob("*.toml"))


def load(name: str) -> System:
    """Return the model of a system. Raises InvalidInput for one that is not modelled."""
    if name not in names():
        raise InvalidInput(f"{name} is not modelled: source not read. Modelled are {', '.join(names())}.")
    return _system(name, tomllib.loads((_HERE / f"{name}.toml").read_text(encoding="utf-8")))


def _system(name: str, raw: dict[str, Any]) -> System:
    fusions = tuple(_fusion(name, f) for f in raw.pop("fusion"))
    sources = tuple(Source(**s) for s in raw.pop("source"))
    return System(
        name=name, fusions=fusions, sources=sources, not_modelled=tuple(raw.pop("not_modelled")), **raw
    )  # an unknown key is a TypeError: the file is ours


def _fusion(system: str, raw: dict[str, Any]) -> Fusion:
    legs = tuple(Leg(**leg) for leg in raw.pop("legs"))
    for key in ("depth", "pool"):
        if key in raw:
            raw[key] = Depth(**raw[key])
    fusion = Fusion(legs=legs, **raw)
    right = (
        fusion.rule in RULES
        and fusion.weights in get_args(WeightUse)
        and fusion.origin in (0, 1)
        and (fusion.pool is None) == (not fusion.reranker)
        and len({leg.name for leg in legs}) == len(legs) > 1
    )
    if not right:
        raise InvalidInput(f"The model of {system} has a fusion {fusion.name!r} that does not hold together.")
    return fusion
