"""The kinds of values that a memory's fields take: their JSON Schemas, and how a value is checked. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from reprlib import repr as shown
from typing import Any, TypeAlias, TypeVar

from semmem.model.errors import InvalidInput
from semmem.model.serialization import instant

__all__ = [
    "MOST_DIMENSIONS",
    "Choice",
    "Duration",
    "Json",
    "Kind",
    "Schema",
    "Share",
    "Switch",
    "Tags",
    "Text",
    "Time",
    "Vector",
    "Whole",
    "one_of",
]

T = TypeVar("T")

Schema: TypeAlias = dict[str, Any]

MOST_DIMENSIONS = 16_000
"""The longest vector: as long as pgvector stores one."""

_DEEPEST = 100
_LONGEST_TTL_S = 31_557_600_000.0
_UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_UNIT = 1e-6
"""A vector whose length differs from 1 only by float32 rounding is kept as it is, so that it survives an export."""


class Kind:
    """The values that a field takes."""

    @property
    def words(self) -> str:
        """The values in words."""
        raise NotImplementedError

    @property
    def schema(self) -> Schema:
        """The values as JSON Schema."""
        raise NotImplementedError

    @property
    def outline(self) -> Schema:
        """The same for a model that calls a tool, which pays for each token: without bounds that it never meets."""
        return {"type": self.schema["type"]}

    def checked(self, name: str, value: Any) -> Any:
        """Return ``value`` as a memory holds it. Raises InvalidInput, with the name of the field in the sentence."""
        raise NotImplementedError


@dataclass(frozen=True)
class Text(Kind):
    """A text of at most ``longest`` characters; the empty one counts as none, unless it is ``needed``."""

    longest: int
    needed: bool = False

    @property
    def words(self) -> str:
        """A text, and its greatest length."""
        return f"a text of at most {self.longest:,} characters"

    @property
    def schema(self) -> Schema:
        """A string without NUL."""
        needed = {"minLength": 1, "maxLength": self.longest} if self.needed else {}
        return {"type": "string", "pattern": "^[^\\u0000]*$", **needed}

    def checked(self, name: str, value: Any) -> str | None:
        """Return the plain string, None for an empty one that is not needed."""
        if not isinstance(value, str):
            raise InvalidInput(f"{name} must be a string, not {type(value).__name__}; write str(…) around it.")
        if len(value) > self.longest:
            raise InvalidInput(f"{name} has {len(value)} characters; at most {self.longest} are stored.")
        if "\x00" in value:
            raise InvalidInput(f"{name} contains a NUL character, which no store can hold; remove it.")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput(f"{name} contains half a surrogate pair at {error.start}; decode it properly.") from None
        plain = str.__str__(value)  # the plain string of a subclass, such as an Enum
        return plain if plain or self.needed else None


@dataclass(frozen=True)
class Choice(Kind):
    """One of a few words."""

    choices: tuple[str, ...]

    @property
    def words(self) -> str:
        """The choices."""
        return f"one of {', '.join(self.choices)}"

    @property
    def schema(self) -> Schema:
        """The choices."""
        return {"type": "string", "enum": list(self.choices)}

    @property
    def outline(self) -> Schema:
        """The choices."""
        return self.schema

    def checked(self, name: str, value: Any) -> str:
        """Return the word."""
        return one_of(name, value, self.choices)


class Whole(Kind):
    """A whole number of 63 bits."""

    @property
    def words(self) -> str:
        """The values in words."""
        return "a whole number"

    @property
    def schema(self) -> Schema:
        """A whole number in that range."""
        return {"type": "integer", "minimum": 1 - 2**63, "maximum": 2**63 - 1}

    def checked(self, name: str, value: Any) -> int:
        """Return the number."""
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**63:
            raise InvalidInput(f"{name} must be a whole number of at most 63 bits, not {shown(value)}.")
        return int(value)


class Share(Kind):
    """A number from 0 to 1."""

    @property
    def words(self) -> str:
        """The values in words."""
        return "a number from 0 to 1"

    @property
    def schema(self) -> Schema:
        """The range."""
        return {"type": "number", "minimum": 0, "maximum": 1}

    @property
    def outline(self) -> Schema:
        """The range."""
        return self.schema

    def checked(self, name: str, value: Any) -> float:
        """Return the number."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise InvalidInput(f"{name} must be a number from 0 to 1, not {shown(value)}.")
        return float(value)


class Switch(Kind):
    """True or false; 0 and 1 are neither."""

    @property
    def words(self) -> str:
        """The values in words."""
        return "true or false"

    @property
    def schema(self) -> Schema:
        """A truth value."""
        return {"type": "boolean"}

    @property
    def outline(self) -> Schema:
        """A truth value that is false unless given."""
        return {"type": "boolean", "default": False}

    def checked(self, name: str, value: Any) -> bool:
        """Return the truth value."""
        if not isinstance(value, bool):
            raise InvalidInput(f"{name} must be True or False, not {shown(value)}.")
        return value


class Time(Kind):
    """A time; without a zone it is in UTC."""

    @property
    def words(self) -> str:
        """The values in words."""
        return "a time in ISO 8601, by default in UTC"

    @property
    def schema(self) -> Schema:
        """A time in ISO 8601."""
        return {"type": "string", "format": "date-time"}

    def checked(self, name: str, value: Any) -> datetime:
        """Return the time in UTC."""
        try:
            at = instant(value)
        except ValueError:
            raise InvalidInput(
                f"{name} must be an ISO 8601 time such as 2026-01-31T09:00:00Z, not {shown(value)}."
            ) from None
        except TypeError:
            raise InvalidInput(
                f"{name} must be a datetime, a date or an ISO 8601 string, not {type(value).__name__}."
            ) from None
        try:
            at = at.astimezone(UTC)
            return datetime.combine(at.date(), at.time(), UTC)
        except (OverflowError, ValueError):
            raise InvalidInput(f"{name} must be between the years 1 and 9999 in UTC, not {shown(value)}.") from None


class Duration(Kind):
    """A duration: a timedelta, seconds, or a text such as 30d."""

    @property
    def words(self) -> str:
        """The values in words."""
        return "seconds, or a text such as 30d, 12h or 45m"

    @property
    def schema(self) -> Schema:
        """Seconds, or a text."""
        seconds = {"type": "number", "minimum": 1, "maximum": 999_999}
        return {"anyOf": [seconds, {"type": "string", "pattern": r"^[1-9][0-9]{0,3}[dhms]$"}]}

    @property
    def outline(self) -> Schema:
        """A text."""
        return {"type": "string"}

    def checked(self, name: str, value: Any) -> timedelta:
        """Return the duration, at most 1,000 years."""
        if isinstance(value, timedelta):
            lasting = value
        elif isinstance(value, int | float) and not isinstance(value, bool) and -math.inf < value < math.inf:
            lasting = timedelta(seconds=float(max(-1, min(value, _LONGEST_TTL_S))))
        elif isinstance(value, str) and value[-1:] in _UNITS_S and value[:-1].isascii() and value[:-1].isdecimal():
            lasting = timedelta(seconds=min(float(value[:-1][:12]) * _UNITS_S[value[-1]], _LONGEST_TTL_S))
        else:
            raise InvalidInput(f"{name} must be a number of seconds, or such as 30d, 12h or 45m, not {shown(value)}.")
        if not timedelta(0) < lasting <= timedelta(seconds=_LONGEST_TTL_S):
            raise InvalidInput(f"{name} must be more than 0 and at most 1000 years, not {shown(value)}.")
        return lasting


class Tags(Kind):
    """A list of words."""

    @property
    def words(self) -> str:
        """The values in words."""
        return "a list of texts of at most 200 characters"

    @property
    def schema(self) -> Schema:
        """A list of texts that are not empty."""
        return {"type": "array", "items": {**Text(200).schema, "minLength": 1}}

    @property
    def outline(self) -> Schema:
        """A list of texts."""
        return {"type": "array", "items": {"type": "string"}}

    def checked(self, name: str, value: Any) -> tuple[str, ...]:
        """Return the words; those of a set are sorted, because their order differs from process to process."""
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise InvalidInput(f"{name} must be a list of strings.")
        single = name.removesuffix("s")
        words = tuple(None if one is None else Text(200).checked(f"a {single}", one) for one in value)
        if not all(words):
            raise InvalidInput(f"A {single} cannot be empty.")
        return tuple(sorted(filter(None, words))) if isinstance(value, Set) else tuple(filter(None, words))


class Json(Kind):
    """A JSON object."""

    @property
    def words(self) -> str:
        """The values in words."""
        return "a JSON object"

    @property
    def schema(self) -> Schema:
        """An object."""
        return {"type": "object"}

    def checked(self, name: str, value: Any) -> Mapping[str, Any]:
        """Return the object as JSON has it."""
        if not isinstance(value, Mapping) or not all(isinstance(k, str) for k in value):
            raise InvalidInput(f"{name} must be a mapping with string keys.")
        if not value:
            return {}
        try:
            raw = json.dumps(dict(value), allow_nan=False)
            if len(raw) > 1_000_000:
                raise InvalidInput(f"{name} has {len(raw)} characters as JSON; at most 1000000 are stored.")
            loaded: Mapping[str, Any] = json.loads(raw)
        except RecursionError:
            raise InvalidInput(f"{name} is nested deeper than {_DEEPEST} levels; flatten it.") from None
        except InvalidInput:
            raise
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"{name} must be JSON values: {str(error).rstrip('.')}.") from None
        _check_json(name, loaded, _DEEPEST)
        return loaded


def _check_json(name: str, value: Any, levels: int) -> None:
    """Raise InvalidInput for values that JSON has and PostgreSQL's jsonb has not."""
    if isinstance(value, str):
        Text(len(value)).checked(name, value)
    elif isinstance(value, Mapping | list):
        if levels == 0:
            raise InvalidInput(f"{name} is nested deeper than {_DEEPEST} levels; flatten it.")
        for part in (*value, *value.values()) if isinstance(value, Mapping) else value:
            _check_json(name, part, levels - 1)


class Vector(Kind):
    """A vector, which is stored with length 1."""

    @property
    def words(self) -> str:
        """The values in words."""
        return "a list of numbers"

    @property
    def schema(self) -> Schema:
        """A list of numbers that are not all 0."""
        return {"type": "array", "items": {"type": "number"}, "minItems": 1, "contains": {"not": {"const": 0}}}

    def checked(self, name: str, value: Any) -> Any:
        """Return the vector as an array of float32."""
        import numpy as np

        try:
            vector = np.asarray(value)
        except (TypeError, ValueError, RuntimeError):
            raise InvalidInput(f"{name} must be a flat list of numbers.") from None
        if vector.dtype.kind not in "fiu" and vector.size:
            raise InvalidInput(f"{name} must be a flat list of numbers.")
        if vector.ndim != 1 or not 1 <= len(vector) <= MOST_DIMENSIONS:
            raise InvalidInput(
                f"{name} must be a flat list of 1 to {MOST_DIMENSIONS} numbers; this one has the shape {vector.shape}."
            )
        if not isinstance(value, np.ndarray) and any(isinstance(one, bool | np.bool_) for one in value):
            raise InvalidInput(f"{name} must be a flat list of numbers.")  # numpy takes them for 0 and 1
        vector = vector.astype(np.float64)
        largest = float(np.abs(vector).max())
        if not math.isfinite(largest) or largest == 0:
            raise InvalidInput(f"{name} must hold finite numbers that are not all 0.")
        if largest <= 1 + _UNIT and abs(math.sqrt(float((vector * vector).sum())) - 1) <= _UNIT:
            return vector.astype(np.float32)
        vector = vector / largest  # first, so that no square overflows or underflows
        return (vector / np.linalg.norm(vector)).astype(np.float32)


def one_of(name: str, value: Any, choices: Sequence[T]) -> T:
    """Return ``value`` if it is one of ``choices``. Raises InvalidInput."""
    if not isinstance(value, str) or value not in choices:
        *first, last = (f'"{one}"' for one in choices)
        raise InvalidInput(f"{name} must be {', '.join(first)} or {last}, not {value!r}.")
    return value  # type: ignore[return-value]
