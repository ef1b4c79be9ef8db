"""Read and check the model of a system's fusion from ``eval/systems/NAME.toml``."""

from __future__ import annotations

import datetime
import difflib
import math
import re
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


@dataclass(frozen=True, slots=True)
class _Place:
    """A table of a model's file: the words that name it, and its lines by their numbers."""

    path: Path
    words: str
    lines: Mapping[int, str]

    def wrong(self, what: str, key: str = "") -> InvalidInput:
        """Return the error that says ``what`` is wrong here, with the line of ``key``, or else the table's first."""
        return InvalidInput(f"{self.path}, line {self._line(key)}, {self.words}, {what}")

    def part(self, words: str, name: str = "") -> _Place:
        """Return the place of a table inside this one, which begins where its ``name`` stands."""
        first = self._line(name)
        return _Place(self.path, words, {n: text for n, text in self.lines.items() if n >= first})

    def _line(self, word: str) -> int:
        whole = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
        return next((n for n, text in self.lines.items() if word and whole.search(text)), min(self.lines, default=1))


def load(name: str) -> System:
    """Return the model of a system: one of ours by its name, or one by the path of its file.

    Raises InvalidInput for one that is not modelled, and for a file that is no model, with its line, place and key.
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
        text = path.read_text(encoding="utf-8")
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{path} is not TOML: {error}.") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8.") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None
    places = _places(path, text)
    keys: dict[str, Any] = {"name": path.stem, **raw}
    keys["fusions"] = tuple(_fusion(place, f) for place, f in _numbered(places, keys.pop("fusion", []), "fusion"))
    keys["sources"] = tuple(_made(place, Source, s) for place, s in _numbered(places, keys.pop("source", []), "source"))
    beyond = keys.get("not_modelled", [])
    if not isinstance(beyond, list) or not all(isinstance(one, str) for one in beyond):
        raise places["", 0].wrong(f"has not_modelled = {beyond!r}; it must be a list of texts.", "not_modelled")
    keys["not_modelled"] = tuple(beyond)
    if not keys["fusions"]:
        raise InvalidInput(f"{path} has no [[fusion]]; write one for each way in which the system fuses.")
    return _made(places["", 0], System, {"repository": "", "release": "", **keys})


def _places(path: Path, text: str) -> Mapping[tuple[str, int], _Place]:
    """Return the places of the ``[[fusion]]`` and ``[[source]]`` tables by their numbers, and ("", 0) of the rest."""
    at, lines = ("", 0), dict[tuple[str, int], dict[int, str]]({("", 0): {}})
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[\[\s*(fusion|source)\s*\]\]", line):
            at = header[1], 1 + sum(kind == header[1] for kind, _ in lines)
        lines.setdefault(at, {})[number] = line
    return {key: _Place(path, key[0] or "the file", of) for key, of in lines.items()}


def _numbered(
    places: Mapping[tuple[str, int], _Place], value: Any, kind: str
) -> list[tuple[_Place, Mapping[str, Any]]]:
    """Return the tables of ``kind`` with their places; those that are written in one line are of the file."""
    tables = _tables(places["", 0], value, kind)
    return [
        (places.get((kind, number), place).part(place.words), table)
        for number, (place, table) in enumerate(tables, start=1)
    ]


def _fusion(place: _Place, raw: Mapping[str, Any]) -> Fusion:
    keys: dict[str, Any] = {"when": "", "short": "", "threshold": "", "mend": "", "weights": "yours", **raw}
    legs = _tables(place, keys.get("legs", []), f"legs of {place.words}", "legs")
    keys["legs"] = tuple(_made(where, Leg, leg) for where, leg in legs)
    for key in ("depth", "pool"):
        if key in keys:
            if not isinstance(keys[key], dict):
                raise place.wrong(f"has {key} = {keys[key]!r}; write {{ per_k = 1, least = 0 }}.", key)
            keys[key] = _made(place.part(f"{key} of {place.words}", key), Depth, keys[key])
    fusion = _made(place, Fusion, keys)
    wrong = {
        ("rule", f"rule = {fusion.rule!r}, which is none of {', '.join(RULES)}"): fusion.rule not in RULES,
        ("weights", f"weights = {fusion.weights!r}, which is none of {', '.join(get_args(WeightUse))}"): (
            fusion.weights not in get_args(WeightUse)
        ),
        ("origin", f"origin = {fusion.origin!r}, which is neither 0 nor 1"): fusion.origin not in (0, 1),
        ("constant", f"constant = {fusion.constant}, by which a first place has no share"): (
            not 0 <= fusion.constant + (fusion.origin - 1 if fusion.rule == "rrf" else 0) < math.inf
        ),
        ("legs", "a weight below 0, or one that is not finite"): (
            not all(0 <= leg.weight < math.inf for leg in fusion.legs)
        ),
        ("pool", "a pool without a reranker, or a reranker without a pool"): (
            (fusion.pool is None) != (not fusion.reranker)
        ),
        ("depth", "a depth of no document; per_k and least are 0 or more, and one of them is more"): (
            _asks_for_nothing(fusion.depth)
        ),
        ("pool", "a pool of no document; per_k and least are 0 or more, and one of them is more"): (
            _asks_for_nothing(fusion.pool)
        ),
        ("legs", "a most below 0, or one that is not finite"): not all(0 <= leg.most < math.inf for leg in fusion.legs),
        ("legs", "an alone that is neither 0 nor 1"): not all(leg.alone in (0, 1) for leg in fusion.legs),
        ("legs", "fewer than two legs"): len(fusion.legs) < 2,
        ("legs", "two legs of one name"): len({leg.name for leg in fusion.legs}) < len(fusion.legs),
    }
    for (key, what), is_so in wrong.items():
        if is_so:
            raise place.wrong(f"has {what}.", key)
    return fusion


def _asks_for_nothing(depth: Depth | None) -> bool:
    """Tell whether a depth is that of no list: below 0, or 0 at every cut-off."""
    return depth is not None and (min(depth.per_k, depth.least) < 0 or depth.per_k == depth.least == 0)


def _tables(place: _Place, value: Any, what: str, key: str = "") -> list[tuple[_Place, Mapping[str, Any]]]:
    """Return each table of an array with its place. Raises InvalidInput for a value that is none."""
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise place.wrong(f"has {what} that is no array of tables.", key or what)
    named = [(str(one.get("name", number)), one) for number, one in enumerate(value, start=1)]
    return [(place.part(f"{what} {name!r}", str(one.get("name", ""))), one) for name, one in named]


def _made(place: _Place, kind: type[Made], raw: Mapping[str, Any]) -> Made:
    """Return the record of a table. Raises InvalidInput for an unknown or a missing key, or another kind of value."""
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    for key, value in raw.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            raise place.wrong(f"has {key!r}, which is no key{f'; {near[0]} is' if near else ''}.", key)
        expected = _KINDS.get(str(known[key].type))
        if expected and (not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected)):
            raise place.wrong(f"has {key} = {value!r}; it must be {_WORDS[expected[0]]}.", key)
    needed = [name for name, field in known.items() if field.default is MISSING and name not in raw]
    if needed:
        raise place.wrong(f"has no {needed[0]!r}.")
    return kind(**raw)
