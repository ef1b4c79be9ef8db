"""Short ids: the beginning of an id that semmem made stands for it, as in git. Pure.

Only ids that semmem makes (UUIDs) have a short form. An id of people's own, such as ``fact-1``, is never taken for the
beginning of ``fact-10``.
"""

from __future__ import annotations

from collections.abc import Sequence

from semmem.model.errors import InvalidInput

__all__ = ["LEAST", "MOST_ALIKE", "SHOWN", "is_short", "shortened", "whole_id"]

LEAST = 8
"""The fewest characters of a short id."""

SHOWN = 13
"""The fewest characters of a short id as semmem shows it: the millisecond of a UUIDv7, so no later id begins so."""

MOST_ALIKE = 100
"""Ids of one beginning that are looked at; an id with more of them beside it is shown whole."""

_PATTERN = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"


def is_short(id: str) -> bool:
    """Return whether ``id`` may be the beginning of a longer one that semmem made."""
    if not LEAST <= len(id) < len(_PATTERN):
        return False
    return all(
        (one == "-") == (place == "-") and one in "0123456789abcdef-" for one, place in zip(id, _PATTERN, strict=False)
    )


def whole_id(id: str, found: Sequence[str], namespace: str) -> str:
    """Return the one id in ``found`` that ``id`` stands for, ``id`` itself where that is stored or there is none.

    ``found`` are the stored ids that begin with it, ``MOST_ALIKE`` of them at most. Raises InvalidInput where several
    do.
    """
    whole = [one for one in found if len(one) == len(_PATTERN) and _is_made(one)]
    if id in found or not whole:
        return id
    if len(whole) > 1 or len(found) >= MOST_ALIKE:  # behind the last of so many, others may begin so
        some = ", ".join(whole[:3]) + (", …" if len(whole) > 3 else "")
        count = f"{MOST_ALIKE} or more" if len(found) >= MOST_ALIKE else str(len(whole))
        raise InvalidInput(
            f"The id {id!r} is ambiguous in namespace {namespace!r}: {count} ids begin with it ({some}); "
            "give more of it."
        )
    return whole[0]


def shortened(id: str, alike: Sequence[str]) -> str:
    """Return the shortest form of ``id`` to show; ``alike`` are the stored ids with the same first characters."""
    if id not in alike or len(id) != len(_PATTERN) or not _is_made(id) or len(alike) >= MOST_ALIKE:
        return id
    shared = max((_alike(id, one) for one in alike if one != id), default=0)
    size = max(SHOWN, shared + 1)
    return id[: size + (id[size - 1] == "-")]


def _alike(one: str, other: str) -> int:
    """Return how many characters two ids have in common at their beginning."""
    return next(
        (index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def _is_made(id: str) -> bool:
    """Return whether ``id`` is an id that semmem makes, or the beginning of one."""
    return all(
        one == "-" if place == "-" else one in "0123456789abcdef" for one, place in zip(id, _PATTERN, strict=False)
    )
