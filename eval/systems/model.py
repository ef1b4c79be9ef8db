"""Read and check the model of a system's fusion from ``eval/systems/NAME.toml``."""

from __future__ import annotations

import datetime
import difflib
import math
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

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
Made = TypeVar("Made")
_KINDS: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "datetime.date": (datetime.date,),
}
_WORDS: Mapping[type, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    datetime.date: "a date such as 2026-11-26",
}


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
    """Return the model of a system: one of ours by its name, or one by the path of its file.

    Raises InvalidInput for one that is not modelled, and for a file that is no model, with its place and the key.
    """
    path = _HERE / f"{name}.toml"
    if name not in names():
        path = Path(name)
        if path.suffix != ".toml":
            raise InvalidInput(
                f"{name} is not modelled: source not read. Modelled are {', '.join(names())}; a model of your own is a "
                "path that ends in .toml."
            )
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{path} is not TOML: {error}.") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8.") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None
    keys: dict[str, Any] = {"name": path.stem, **raw}
    keys["fusions"] = tuple(_fusion(path, where, f) for where, f in _tables(path, keys.pop("fusion", []), "fusion"))
    keys["sources"] = tuple(
        _made(path, where, Source, s) for where, s in _tables(path, keys.pop("source", []), "source")
    )
    keys["not_modelled"] = tuple(keys.get("not_modelled", ()))
    if not keys["fusions"]:
        raise InvalidInput(f"{path} has no [[fusion]]; write one for each way in which the system fuses.")
    return _made(path, "the file", System, {"repository": "", "release": "", **keys})


def _fusion(path: Path, which: str, raw: Mapping[str, Any]) -> Fusion:
    keys: dict[str, Any] = {"when": "", "short": "", "threshold": "", "mend": "", "weights": "yours", **raw}
    legs = _tables(path, keys.get("legs", []), f"legs of {which}")
    keys["legs"] = tuple(_made(path, where, Leg, leg) for where, leg in legs)
    for key in ("depth", "pool"):
        if key in keys:
            keys[key] = _made(path, f"{key} of {which}", Depth, keys[key])
    fusion = _made(path, which, Fusion, keys)
    wrong = {
        f"rule = {fusion.rule!r}, which is none of {', '.join(RULES)}": fusion.rule not in RULES,
        f"weights = {fusion.weights!r}, which is none of {', '.join(get_args(WeightUse))}": (
            fusion.weights not in get_args(WeightUse)
        ),
        f"origin = {fusion.origin!r}, which is neither 0 nor 1": fusion.origin not in (0, 1),
        f"constant = {fusion.constant}, by which a first place has no share": (
            not 0 <= fusion.constant + (fusion.origin - 1 if fusion.rule == "rrf" else 0) < math.inf
        ),
        "a weight below 0, or one that is not finite": not all(0 <= leg.weight < math.inf for leg in fusion.legs),
        "a pool without a reranker, or a reranker without a pool": (fusion.pool is None) != (not fusion.reranker),
        "fewer than two legs": len(fusion.legs) < 2,
        "two legs of one name": len({leg.name for leg in fusion.legs}) < len(fusion.legs),
    }
    for what, is_so in wrong.items():
        if is_so:
            raise InvalidInput(f"{path}, {which}, has {what}.")
    return fusion


def _tables(path: Path, value: Any, what: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return each table of an array with the words for its place."""
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise InvalidInput(f"{path} has {what} that is no array of tables.")
    return [(f"{what} {one.get('name', number)!r}", one) for number, one in enumerate(value, start=1)]


def _made(path: Path, where: str, kind: type[Made], raw: Mapping[str, Any]) -> Made:
    """Return the record of a table. Raises InvalidInput for an unknown or a missing key, or another kind of value."""
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    for key, value in raw.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            raise InvalidInput(f"{path}, {where}, has {key!r}, which is no key{f'; {near[0]} is' if near else ''}.")
        expected = _KINDS.get(str(known[key].type))
        if expected and (not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected)):
            raise InvalidInput(f"{path}, {where}, has {key} = {value!r}; it must be {_WORDS[expected[0]]}.")
    needed = [name for name, field in known.items() if field.default is MISSING and name not in raw]
    if needed:
        raise InvalidInput(f"{path}, {where}, has no {needed[0]!r}.")
    return kind(**raw)
