"""The settings of a recipe: the values that each one takes, and its meaning. Pure.

A setting is one line of a dataclass: ``name: Annotated[type, values, "meaning"] = default``. Checks, dotted names, the
command ``semmem settings``, the sweeps of ``eval`` and the tables of the documentation read these lines. Type checkers
cannot read them, so a line of ``Recipe`` has its type in ``model.keywords.RecipeChanges`` too.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from reprlib import repr as brief
from typing import Annotated, Any, Literal, TypeAlias

from semmem.model.errors import InvalidInput
from semmem.model.protocols import RERANKERS, reranker_parts

__all__ = [
    "STORED_WEIGHT",
    "Choice",
    "ConversationSettings",
    "Each",
    "Fusion",
    "GraphSettings",
    "LexicalSettings",
    "Names",
    "Number",
    "OneOrEach",
    "OrNone",
    "RankConstant",
    "Reranker",
    "Section",
    "Setting",
    "Switch",
    "Values",
    "settings_of",
    "values_of",
]

Fusion: TypeAlias = Literal["rrf", "convex", "tm2c2", "rank-scaled", "scored"]

RankConstant: TypeAlias = float | Mapping[str, float]
"""One rank constant, or one for each regime, such as ``{"named": 0, "unnamed": 8}``."""


class Values:
    """The values that a setting takes. ``words`` describes them in a sentence such as "weights.graph must be …"."""

    @property
    def words(self) -> str:
        """The values, in words."""
        return "a value"

    @property
    def schema(self) -> dict[str, Any]:
        """The same as JSON Schema."""
        return {}

    def accepts(self, value: Any) -> bool:
        """Return whether ``value`` is one of them."""
        raise NotImplementedError

    def check(self, name: str, value: Any) -> None:
        """Raise InvalidInput, with the setting's name in the sentence, unless ``value`` is one of them."""
        if not self.accepts(value):
            raise InvalidInput(f"{name} must be {self.words}, not {brief(value)}.")

    def merged(self, name: str, value: Any, present: Any) -> Any:
        """Return the new value of the setting, given ``value`` and the ``present`` one. Raises InvalidInput."""
        self.check(name, value)
        return value

    def rows(self, name: str, whose: str, meaning: str) -> "Iterator[Setting]":
        """Yield the settings in the table, with their dotted names."""
        yield Setting(name, whose, self, meaning)


@dataclass(frozen=True, slots=True)
class Number(Values):
    """Numbers from ``low`` to ``high``, both included; with ``below`` without ``high``."""

    low: float
    high: float
    whole: bool = False
    below: bool = False

    @property
    def words(self) -> str:
        """The kind of number, and the ends of its range."""
        kind = "a whole number" if self.whole else "a number"
        return f"{kind} from {self.low:.10g} to {'below ' if self.below else ''}{self.high:.10g}"

    @property
    def schema(self) -> dict[str, Any]:
        """The same as JSON Schema."""
        high = "exclusiveMaximum" if self.below else "maximum"
        return {"type": "integer" if self.whole else "number", "minimum": self.low, high: self.high}

    def accepts(self, value: Any) -> bool:
        """Return whether ``value`` is a number in range; true and false are no numbers."""
        if isinstance(value, bool) or not isinstance(value, int if self.whole else int | float):
            return False
        return self.low <= value <= self.high and not (self.below and value == self.high)


STORED_WEIGHT = Number(0, 5)
"""The weights of a leg that a namespace may be given; a recipe in code takes more, for experiments."""


@dataclass(frozen=True, slots=True)
class Choice(Values):
    """One of a few words."""

    names: tuple[str, ...]

    @property
    def words(self) -> str:
        """The words."""
        return f"one of {', '.join(self.names)}"

    @property
    def schema(self) -> dict[str, Any]:
        """The same as JSON Schema."""
        return {"type": "string", "enum": list(self.names)}

    def accepts(self, value: Any) -> bool:
        """Return whether ``value`` is one of the words."""
        return isinstance(value, str) and value in self.names


class Switch(Values):
    """On or off."""

    @property
    def words(self) -> str:
        """True and false."""
        return "true or false"

    @property
    def schema(self) -> dict[str, Any]:
        """The same as JSON Schema."""
        return {"type": "boolean"}

    def accepts(self, value: Any) -> bool:
        """Return whether ``value`` is true or false; 0 and 1 are not."""
        return isinstance(value, bool)


class Names(Values):
    """A list of names; a recipe keeps it as a tuple."""

    @property
    def words(self) -> str:
        """A list, and of what."""
        return "a list of names"

    @property
    def schema(self) -> dict[str, Any]:
        """The same as JSON Schema."""
        return {"type": "array", "items": {"type": "string"}}

    def accepts(self, value: Any) -> bool:
        """Return whether ``value`` is a list or tuple of strings."""
        return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)

    def merged(self, name: str, value: Any, present: Any) -> tuple[str, ...]:
        """Return the list as a tuple, in place of the present one. Raises InvalidInput."""
        self.check(name, value)
        return tuple(value)


class Reranker(Values):
    """The name of a reranker; nothing is loaded."""

    @property
    def words(self) -> str:
        """The names of rerankers."""
        return " or ".join(RERANKERS)

    @property
    def schema(self) -> dict[str, Any]:
        """The same as JSON Schema."""
        return {"type": "string", "pattern": "^(composite|endpoint|cross_encoder:.+)$"}

    def check(self, name: str, value: Any) -> None:
        """Raise InvalidInput for an unknown reranker."""
        reranker_parts(value)


@dataclass(frozen=True, slots=True)
class OrNone(Values):
    """Other values, or None."""

    values: Values

    @property
    def words(self) -> str:
        """The other values, or none."""
        return f"{self.values.words}, or none"

    @property
    def schema(self) -> dict[str, Any]:
        """The same as JSON Schema."""
        return {"anyOf": [self.values.schema, {"type": "null"}]}

    def check(self, name: str, value: Any) -> None:
        """Raise InvalidInput unless ``value`` is None or one of the others."""
        if value is not None:
            self.values.check(name, value)


@dataclass(frozen=True, slots=True)
class Each(Values):
    """A mapping from the name of a ``key`` (leg, regime) to values.

    A new mapping replaces the present one, or is merged over it (``merge``).
    """

    values: Values
    key: str = "leg"
    merge: bool = False

    @property
    def words(self) -> str:
        """The keys and the values of the mapping."""
        return f"a mapping from the name of a {self.key} to {self.values.words}"

    @property
    def schema(self) -> dict[str, Any]:
        """The same as JSON Schema."""
        return {"type": "object", "additionalProperties": self.values.schema}

    def accepts(self, value: Any) -> bool:
        """Return whether ``value`` is a mapping of names."""
        return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)

    def check(self, name: str, value: Any) -> None:
        """Raise InvalidInput, with the name of the leg or regime, unless each value is one of them."""
        if not isinstance(value, Mapping):
            example = {"leg": "graph", "regime": "named"}[self.key]
            usage = f"{name}={{'{example}': …}}"
            raise InvalidInput(f"{name} must be {self.words}, not {brief(value)}; write {usage}.")
        Values.check(self, name, value)
        for key, inner in value.items():
            self.values.check(f"{name}.{key}", inner)

    def merged(self, name: str, value: Any, present: Any) -> Mapping[str, Any]:
        """Return the mapping, merged over the present one where ``merge``. Raises InvalidInput."""
        self.check(name, value)
        return {**present, **value} if self.merge else value

    def rows(self, name: str, whose: str, meaning: str) -> "Iterator[Setting]":
        """Yield the setting; as ``NAME.LEG`` where the value of each leg is a setting by itself."""
        if self.merge:
            yield Setting(f"{name}.{self.key.upper()}", whose, self.values, meaning)
        else:
            yield Setting(name, whose, self, meaning)


@dataclass(frozen=True, slots=True)
class OneOrEach(Values):
    """One value, or a mapping from the name of a ``key`` to values."""

    values: Values
    key: str

    @property
    def words(self) -> str:
        """One value, or one for each."""
        return f"{self.values.words}, or one for each {self.key}"

    @property
    def schema(self) -> dict[str, Any]:
        """The same as JSON Schema."""
        return {"anyOf": [self.values.schema, Each(self.values, self.key).schema]}

    def check(self, name: str, value: Any) -> None:
        """Raise InvalidInput unless ``value``, or each value in it, is one of the values."""
        (Each(self.values, self.key) if isinstance(value, Mapping) else self.values).check(name, value)


@dataclass(frozen=True, slots=True)
class Section(Values):
    """A dataclass of settings of its own. ``optional``: false or None switches it off, and true on again."""

    of: Any
    optional: bool = False

    @property
    def words(self) -> str:
        """A table of settings, or a switch."""
        return f"{'true, false, or ' if self.optional else ''}a table of settings"

    @property
    def schema(self) -> dict[str, Any]:
        """The same as JSON Schema."""
        settings = {name: values.schema for name, values in values_of(self.of).items()}
        table = {"type": "object", "properties": settings, "additionalProperties": False}
        return {"anyOf": [table, {"type": "boolean"}, {"type": "null"}]} if self.optional else table

    def check(self, name: str, value: Any) -> None:
        """Raise InvalidInput unless ``value`` is of the dataclass, with each of its settings in range."""
        if value is None and self.optional:
            return
        if not isinstance(value, self.of):
            raise InvalidInput(f"{name} must be {self.words}, not {brief(value)}.")
        for inner, values in values_of(self.of).items():
            values.check(f"{name}.{inner}", getattr(value, inner))

    def merged(self, name: str, value: Any, present: Any) -> Any:
        """Return ``present`` with the settings of a mapping changed, or the dataclass that was given.

        Raises InvalidInput for an unknown setting, and for one out of range.
        """
        if self.optional and (value is None or isinstance(value, bool)):
            return present if value else None
        if isinstance(value, Mapping):
            values = values_of(self.of)
            if unknown := sorted(set(value) - set(values), key=str):
                raise InvalidInput(f"{name} has no setting {unknown[0]!r}; it has {', '.join(sorted(values))}.")
            value = dataclasses.replace(
                present, **{k: values[k].merged(f"{name}.{k}", v, getattr(present, k)) for k, v in value.items()}
            )
        self.check(name, value)
        return value

    def rows(self, name: str, whose: str, meaning: str) -> "Iterator[Setting]":
        """Yield the switch, where there is one, and the settings of the dataclass."""
        if self.optional:
            yield Setting(name, whose, self, meaning)
        yield from settings_of(self.of, f"{name}.", name)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its dotted name (``weights.LEG`` for each leg), the leg it belongs to, its values, its meaning."""

    name: str
    whose: str
    values: Values
    meaning: str


@cache
def values_of(settings: Any) -> Mapping[str, Values]:
    """Return the values that each setting of a dataclass takes, by name; other fields are left out."""
    return {name: values for name, (values, *_) in _lines(settings)}


def settings_of(settings: Any, prefix: str = "", whose: str = "") -> Iterator[Setting]:
    """Yield the settings of a dataclass in order; ``whose`` is the default for lines that name no leg."""
    for name, (values, meaning, *own) in _lines(settings):
        yield from values.rows(prefix + name, *own or [whose], meaning)


def _lines(settings: Any) -> "Iterator[tuple[str, tuple[Any, ...]]]":
    """Yield each setting of a dataclass: its name, and (values, meaning) or (values, meaning, whose)."""
    for field in dataclasses.fields(settings):
        if line := getattr(field.type, "__metadata__", None):
            yield field.name, line


_SHARE = Number(0, 10_000)
_COUNT = Number(0, 10_000, whole=True)
_FACTOR = Number(0, 100)


@dataclass(frozen=True, slots=True)
class LexicalSettings:
    """BM25 (Robertson and Zaragoza 2009, in Lucene's form)."""

    k1: Annotated[float, Number(0, 100), "how much a repeated word of a text counts; 0: repeats count nothing"] = 1.2
    b: Annotated[float, Number(0, 1), "how much a long text lowers the score; 0: not at all"] = 0.5
    match: Annotated[
        Literal["any", "all", "auto"],
        Choice(("any", "all", "auto")),
        "which words of the question a memory must hold; auto: all if ten memories hold them all, else any",
    ] = "any"


@dataclass(frozen=True, slots=True)
class GraphSettings:
    """The walk over the graph: where it starts, which edges it follows, and what bounds the work.

    The walk restarts at the memories that the question names and at the first memories of the other legs. ``seeders``
    are legs that are asked for seeds although they have no weight of their own (recipe ``graph``).
    """

    seeds: Annotated[int, _COUNT, "first memories of each other leg at which the walk starts"] = 10
    subject_share: Annotated[float, _SHARE, "share of the restart on memories about the names in the question"] = 1.0
    concept_share: Annotated[float, _SHARE, "share of the restart on memories with concepts of the question"] = 0.25
    anchor_share: Annotated[float, _SHARE, "share of the restart on memories with rare names of the question"] = 1.0
    anchor_df: Annotated[int, _COUNT, "the most memories that mention a rare name"] = 5
    lone_names: Annotated[
        Literal["always", "leading", "never"],
        Choice(("always", "leading", "never")),
        "when a name that a single memory mentions makes the question named; leading: if that memory shares another "
        "name with others",
    ] = "always"
    known_names: Annotated[bool, Switch(), "mentions are also names in a text that another memory is about"] = True
    lower_case: Annotated[bool, Switch(), "find known names that the question writes without capitals"] = True
    seed_share: Annotated[float, _SHARE, "share of the restart on the seeds"] = 0.5
    about: Annotated[float, _SHARE, "weight of edges from a mention of a name to the memories about it"] = 1.0
    co_mention: Annotated[float, _SHARE, "weight of edges to memories that mention the same name"] = 2.0
    neighbour: Annotated[float, _SHARE, "weight of edges to the previous and next memory of the session"] = 0.5
    neighbour_own: Annotated[float, _SHARE, "the same, for a neighbour by the same author"] = 0.25
    related: Annotated[float, _SHARE, "weight of edges over relationships; 0: relationships are not read"] = 0.0
    other_names: Annotated[bool, Switch(), "link a name to a subject with another spelling of it as title"] = True
    gate: Annotated[float, _SHARE, "how strongly likeness to the question decides how much mass passes; 0: no gate"] = (
        2.0
    )
    decay: Annotated[float, _SHARE, "the share of the mass that is left after each hop"] = 0.5
    hops: Annotated[int, _COUNT, "steps of the walk"] = 1
    beam: Annotated[int, _COUNT, "memories that a hop starts from"] = 20
    targets: Annotated[int, _COUNT, "memories that a hop may reach"] = 100
    fan: Annotated[int, _COUNT, "concepts of one memory that the walk follows"] = 20
    max_df: Annotated[int, _COUNT, "the most memories that may mention a concept for the walk to follow it"] = 30
    author_bonus: Annotated[float, _SHARE, "factor for memories by an author named in the question"] = 2.0
    stems: Annotated[bool, Switch(), "walk over single words too, besides names"] = True
    bigrams: Annotated[bool, Switch(), "walk over pairs of words too, besides names"] = True
    walk: Annotated[
        Literal["gated", "pagerank"], Choice(("gated", "pagerank")), "the gated walk, or pure personalised PageRank"
    ] = "gated"
    alpha: Annotated[float, Number(0, 1, below=True), "damping of PageRank: the chance that it does not restart"] = 0.5
    seeders: Annotated[tuple[str, ...], Names(), "legs that give seeds without a weight of their own"] = ()


@dataclass(frozen=True, slots=True)
class ConversationSettings:
    """Rules for memories with an author; see semmem.legs.conversation. They act inside the legs, not in fusion.

    Questions that collect ("which cities has she", "how many") and months are recognised in English, German, Spanish
    and French, by the language of the namespace; greetings before a text in English only.
    """

    dialogue: Annotated[bool, Switch(), "apply rules about authors only if authors take turns"] = False
    author_lexical: Annotated[float, _FACTOR, "factor of BM25 for memories by an author named in the question"] = 1.6
    author_dense: Annotated[float, _FACTOR, "added to the cosine of memories by an author named in the question"] = 0.1
    previous: Annotated[float, _FACTOR, "share of the previous turn's score that is added to a turn"] = 0.3
    asked: Annotated[float, _FACTOR, "the same, if the previous turn ends in a question mark"] = 0.5
    before: Annotated[float, _FACTOR, "share of the score of the turn before the previous one"] = 0.1
    before_asked: Annotated[float, _FACTOR, "the same, if the turn between them asks"] = 0.1
    next: Annotated[float, _FACTOR, "share of the next turn's score"] = 0.1
    own: Annotated[float, _FACTOR, "the largest share of a previous turn by the same author"] = 0.15
    month_lexical: Annotated[
        float, _FACTOR, "factor of BM25 for memories of a month named in the question, or the next month"
    ] = 1.5
    month_dense: Annotated[
        float, _FACTOR, "added to the cosine of memories of a month named in the question, or the next month"
    ] = 0.06
    collecting: Annotated[bool, Switch(), "recognise questions whose answer is gathered from many turns"] = True
    collecting_window: Annotated[float, _FACTOR, "factor of the shares of other turns in such a question"] = 0.33
    collecting_neighbour: Annotated[float, _FACTOR, "factor of graph.neighbour in such a question"] = 0.5
    collecting_author_dense: Annotated[float, _FACTOR, "author_dense in such a question"] = 0.2
