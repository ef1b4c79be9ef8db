"""What the verbs about namespaces check: two names, and a limit."""

from __future__ import annotations

from reprlib import repr as shown
from typing import Any

from semmem.model.errors import InvalidInput
from semmem.write.items import check_namespace

__all__ = ["NOT_DROPPED", "checked_limit", "two_names"]

NOT_DROPPED = "; nothing was dropped"
"""How the error of a drop ends that has not begun."""

_LEAST_DAYS, _MOST_DAYS = 1 / 24, 36_500.0


def two_names(old: str, new: str) -> tuple[str, str]:
    """Return two names of namespaces. Raises InvalidInput unless they are two."""
    check_namespace(old)
    check_namespace(new)
    if old == new:
        raise InvalidInput(f"{old!r} has that name already; give another one.")
    return old, new


def checked_limit(name: str, value: Any) -> Any:
    """Return a limit. Raises InvalidInput for what is none."""
    days = name == "keep_days"
    kind: Any = int | float if days else int
    least, most = (_LEAST_DAYS, _MOST_DAYS) if days else (0, 2**62)
    if isinstance(value, bool) or not isinstance(value, kind) or not (value == 0 or least <= value <= most):
        what = f"a number of days from 1/24 (an hour) to {_MOST_DAYS:,.0f}" if days else "a whole number"
        raise InvalidInput(f"{name} must be {what}, or 0 for no limit, not {shown(value)}.")
    return float(value) if days else value
