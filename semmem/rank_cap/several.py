"""The class of a memory that several legs found: what lists as long as these can do with it, at its ranks.

For one leg ``LegReach.class_at`` says it. Several shares add up, so a memory that no leg could bring in alone may come
in by their sum: it is boost-only where the sum, with the importance that is best for it, is below what the k-th other
memory of some list earns at least, and the consensus slot is not its own. What one of its legs guarantees, further
shares do not take away.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from semmem.model.leg_scores import BONUS_LEG
from semmem.model.recipe import Recipe
from semmem.rank_cap.guaranteed_slots import AGREED, exact_floor, noise
from semmem.rank_cap.places import Lists
from semmem.rank_cap.report import CLASSES, ReachClass, RegimeReach
from semmem.rank_cap.shares import as_written, earned

__all__ = ["class_of_find"]


def class_of_find(
    recipe: Recipe, regime: str, lists: Lists, reach: RegimeReach, ranks: Mapping[str, int]
) -> ReachClass:
    """Return the class of a memory that the legs of ``ranks`` list there, from 1, and no other leg does.

    ``reach`` is that of ``lists``, which are known. Of a memory with several rows in a list the best one counts.
    """
    classes: list[ReachClass] = [reach.legs[leg].class_at(rank) for leg, rank in ranks.items()]
    strongest = max(classes, key=CLASSES.index)
    if len(ranks) < 2 or strongest != "boost-only" or lists.decided is None:
        return strongest
    may = _may_be_raised(recipe, regime, lists, lists.decided, ranks) or _may_enter(
        recipe, regime, lists, lists.decided, ranks
    )
    return "possible" if may else "boost-only"


def _may_be_raised(recipe: Recipe, regime: str, lists: Lists, k: int, ranks: Mapping[str, int]) -> bool:
    """Return whether the consensus slot of most legs' first memory may be its own, and among the first ``k``.

    Rows that fold away bring a place beyond the cut-off within it.
    """
    place = recipe.reserve_in(regime).get(AGREED)
    if place is None or place > k + lists.folded:
        return False
    weights = recipe.weights_in(regime)
    answers = [leg for leg, listed in lists.lists.items() if listed.length and weights[leg]]
    return 2 * sum(ranks.get(leg) == 1 for leg in answers) > len(answers)


def _may_enter(recipe: Recipe, regime: str, lists: Lists, k: int, ranks: Mapping[str, int]) -> bool:
    """Return whether the sum of its shares reaches the least that the k-th other memory of every list earns."""
    called = {leg: listed for leg, listed in lists.lists.items() if listed.length}
    weights, constants = recipe.weights_in(regime), recipe.constants(regime)
    earns = {
        leg: earned(recipe.fusion, leg, as_written(weights[leg]), as_written(constants[leg]), listed.scaled)
        for leg, listed in called.items()
    }
    firsts = {leg: one.first for leg, one in earns.items()}
    bonus = as_written(recipe.exact_bonus) * firsts.get(BONUS_LEG, Fraction(0))
    value = sum((earns[leg].most(rank) for leg, rank in ranks.items()), Fraction(0))
    value += bonus if any(called[leg].exact for leg in ranks) else 0
    # the k-th other memory stands behind this one in a list that names it earlier, and earns less there
    known = {leg: of.firsts[k - 1] for leg, of in called.items() if earns[leg].known and len(of.firsts) >= k}
    bars = (earns[leg].least(kth) for leg, kth in known.items() if ranks.get(leg, kth + 1) > kth)
    bar = max(bars, default=Fraction(0))
    if recipe.prior or recipe.by_time:
        floor = exact_floor(recipe, constants)
        value *= floor + (1 - floor) * Fraction(max(called[leg].most for leg in ranks))
        bar *= floor + (1 - floor) * Fraction(min(listed.least for listed in called.values()))
    return value >= bar - noise(firsts, bonus)
