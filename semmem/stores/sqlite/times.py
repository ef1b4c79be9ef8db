"""Convert times for SQLite: whole microseconds since 1970 in UTC, so that numbers sort as times do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

__all__ = ["at_microsecond", "microsecond"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microsecond(at: datetime) -> int:
    """Return a time as whole microseconds since 1970 in UTC."""
    return (at - _EPOCH) // _MICROSECOND


def at_microsecond(number: int) -> datetime:
    """Return the time, in UTC, for a number from ``microsecond``."""
    return _EPOCH + number * _MICROSECOND
