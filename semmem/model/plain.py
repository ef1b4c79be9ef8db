"""Values as what JSON knows. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence, Set
from datetime import datetime, timedelta
from enum import Enum
from fractions import Fraction
from typing import Any

__all__ = ["plain"]


def plain(value: Any) -> Any:
    """Return ``value`` as what JSON knows.

    A thing with ``as_dict`` says itself what it is; a dataclass gives its fields, a fraction its float, a time ISO
    8601, a duration its seconds. Mapping keys become strings. Anything else is given as its text.
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
