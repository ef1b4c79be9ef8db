"""What the places of a leg earn before a question is asked, in a fusion that reads scores: between which shares.

A share is in units of the leg's weight: 1 for a place whose score is the best there can be after scaling. ``within``
gives the shares that follow from a range of the leg's own scores, ``seen`` those that the places of lists earned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from semmem.model.errors import InvalidInput
from semmem.model.leg_scores import MEEK_LEG, least_score
from semmem.model.recipe import Fusion

__all__ = ["ShareRange", "seen", "within"]


@dataclass(frozen=True, slots=True)
class ShareRange:
    """The least and the most share of each place, from the first; neither rises from a place to the next.

    A place beyond the last one that is given earns between 0 and what that one earns at the most. Raises InvalidInput
    for shares outside [0, 1], a least share above the most, or one that rises.
    """

    least: tuple[float, ...]
    most: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.most or len(self.least) != len(self.most):
            raise InvalidInput("A range of shares needs a least and a most share for each place, of one place or more.")
        if not all(0 <= low <= high <= 1 for low, high in zip(self.least, self.most, strict=True)):
            raise InvalidInput("The shares of a place must be between 0 and 1, the least no larger than the most.")
        if any(b > a for of in (self.least, self.most) for a, b in pairwise(of)):
            raise InvalidInput(
                "A list is in the order of its scores, so a later place cannot earn more: check the range."
            )

    def to(self, depth: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return the most and the least share of each of ``depth`` places."""
        more = max(0, depth - len(self.most))
        return (*self.most, *[self.most[-1]] * more)[:depth], (*self.least, *[0.0] * more)[:depth]


def within(fusion: Fusion, leg: str, least: float, most: float, depth: int) -> ShareRange:
    """Return the shares of a leg whose scores lie between ``least`` and ``most``, in lists of up to ``depth`` places.

    Only ``tm2c2`` scales from a fixed least score, so only there a range says something: a place earns no less than
    the least score does beside the best. ``convex`` and ``scored`` scale each list by its own last score, which may
    stand anywhere. Raises InvalidInput for a range that is none.
    """
    if not (math.isfinite(least) and math.isfinite(most) and least <= most):
        raise InvalidInput(f"The scores of {leg} must be a range such as 0:1, the least first, not {least}:{most}.")
    first = 0.0 if fusion == "scored" and leg == MEEK_LEG else 1.0
    bottom = least_score(leg)
    last = (least - bottom) / (most - bottom) if fusion == "tm2c2" and least > bottom else 0.0
    return ShareRange((first, *[last] * (depth - 1)), (1.0,) * depth)


def seen(lists: Sequence[Sequence[float]]) -> ShareRange:
    """Return between which shares each place of ``lists`` earned; ``shares_of`` gives the shares of a list.

    A place that some list does not reach may earn nothing. Raises InvalidInput where no list has a place.
    """
    of_places = list(zip_longest(*lists, fillvalue=None))
    least = tuple(min(0.0 if share is None else share for share in of) for of in of_places)
    most = tuple(max(share for share in of if share is not None) for of in of_places)
    return ShareRange(least, most)
