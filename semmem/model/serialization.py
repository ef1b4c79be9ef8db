"""Convert values to JSON, and times from the forms in which people write them. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence, Set
from datetime import UTC, date, datetime, time, timedelta
from enum import Enum
from fractions import Fraction
from typing import Any

__all__ = ["instant", "plain", "to_the_minute"]


def plain(value: Any) -> Any:
    """Return ``value`` as JSON values.

    An object with ``as_dict`` gives that; a dataclass gives its fields, a fraction its float, a time ISO
    8601, a duration its seconds. Mapping keys become strings. Any other object gives its text.
    """
    if value is None or (isinstance(value, str | bool | int | float) and not isinstance(value, Enum)):
        return value
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if hasattr(value, "as_dict"):
        return plain(value.as_dict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value) if not f.name.startswith("_")}
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, Set):
        return sorted(plain(one) for one in value)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [plain(one) for one in value]
    if hasattr(value, "item"):  # a numpy scalar, without importing numpy
        return plain(value.item())
    return str(value)


def instant(value: Any) -> datetime:
    """Return a time given as a datetime, a date or ISO 8601 text; without a zone it is in UTC.

    Raises ValueError for a text that is no time, TypeError for what is none of the three.
    """
    if isinstance(value, str):
        if len(value) > 8 and value[:9].isdigit():  # of a number, fromisoformat makes the year of its first four digits
            raise ValueError(f"{value!r} is a number and no ISO 8601 text")
        value = datetime.fromisoformat(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time.min, UTC)
    if not isinstance(value, datetime):
        raise TypeError(f"a time is a datetime, a date or text, not {type(value).__name__}")
    return value.replace(tzinfo=UTC) if value.utcoffset() is None else value


def to_the_minute(value: Any) -> str:
    """Return a time as a reader is shown it: its minute in UTC, such as ``2026-11-26T09:05``."""
    return instant(value).astimezone(UTC).strftime("%Y-%m-%dT%H:%M")
