"""Reach: what each leg of a recipe can do to the first k, proven from the recipe's numbers before any query is run.

The functions are in ``reaching``; they ask ``leg_reach`` in ``classes`` for the classes of a called leg. It asks a
``contest``, of which each kind of fusion has its own: ``bounds`` by rank, ``score_bounds`` by score. What places earn
is in ``shares``, the facts about lists and steps after fusion in ``places``, the table for people in ``report``. The
room is named after the rank cap, because ``semmem.reach`` is the function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from semmem.rank_cap.reaching import reach, reach_in, reach_of

__all__ = ["reach", "reach_in", "reach_of"]


def __getattr__(name: str) -> Any:
    """Fetch a function of reach when it is asked for (PEP 562): a recall needs nothing of this room but ``places``."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from semmem.rank_cap import reaching

    return getattr(reaching, name)
