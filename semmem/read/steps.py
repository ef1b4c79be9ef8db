"""The steps between fusion and the hits, in order, each with what it does to the list and to a place in it.

The list ``STEPS`` has two readers: ``cut`` applies the steps, and ``lists`` asks each step for its ``Effect``, which is
all that reach knows of it. A new step is one more entry: a pure function on the list, and its effect on the first k
places. An effect that claims too little makes a class of reach weaker. One that claims too much is a contradiction,
which the differential test finds (tests/rank_cap/differential.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, inf

from semmem.fusion import Fused, Made, fold_duplicates
from semmem.rank_cap.places import Effect, Listed, Lists, merged
from semmem.read.candidates import Candidates, Cut, Group, Key
from semmem.read.superseding import of_superseding, supersede

__all__ = ["STEPS", "Step", "cut", "lists", "lists_by_regime", "page", "unseen"]

_FIELDS = {"importance": "importance", "created": "created_at", "updated": "updated_at"}
_NEVER = float("-inf")


@dataclass(frozen=True, slots=True)
class Step:
    """One step between fusion and the hits.

    ``apply`` takes and returns the list of candidates. ``effect`` takes k and the number of places in the final list.
    """

    name: str
    apply: Callable[[Sequence[Group], Candidates, Cut], Sequence[Group]]
    effect: Callable[[int, int, Candidates, Cut], Effect]


def cut(candidates: Candidates, window: Cut) -> Sequence[Group]:
    """Return all candidates after all steps; the hits are one ``page`` of them.

    A step that has nothing to do returns the list that it was given, and so no candidate is made that is not shown.
    """
    groups: Sequence[Group] = Made(candidates.ranked, lambda fused: (fused, ()))
    for step in STEPS:
        groups = step.apply(groups, candidates, window)
    return groups


def page(groups: Sequence[Group], window: Cut) -> Sequence[Group]:
    """Return the candidates of the page from ``offset`` to ``offset + limit``."""
    return groups[window.offset : window.offset + window.limit]


def lists(candidates: Candidates, window: Cut, *, withheld: bool = False) -> Lists:
    """Return what reach may know of one recall: the list of each leg, and the effects of the steps after fusion.

    ``withheld`` says that no hit is shown, because the confidence was too low.
    """
    places = len(cut(candidates, window))
    k = window.limit + window.offset
    decided: int | None = k
    sure_places = window.limit if window.offset == 0 else 0
    notes = (
        [f"What is guaranteed a place may stand on a page before place {window.offset + 1}."] if window.offset else []
    )
    effects = []
    for step in reversed(STEPS):
        effects.append(effect := step.effect(sure_places, places, candidates, window))
        decided = None if decided is None else step.effect(decided, places, candidates, window).decided
        sure_places = effect.kept
        notes += [effect.note] if effect.note else []
    called = {leg: keys for leg, keys in candidates.rankings.items() if leg in candidates.recipe.legs and not withheld}
    one = merged([f.key for f in candidates.ranked], [effect.one for effect in effects if effect.one])
    dropped = {key for effect in effects for key in effect.gone}
    unsure = {key for effect in effects for key in effect.unsure}
    importance, shares = candidates.priors().weighed, candidates.shares()
    return Lists(
        {
            leg: Listed.of(
                keys,
                one=one,
                gone=dropped,
                unsure=unsure,
                importance=importance,
                exact=candidates.exact,
                shares=shares.get(leg),
            )
            for leg, keys in called.items()
        },
        {leg: _why_not(leg, candidates, withheld) for leg in candidates.recipe.legs if leg not in called},
        decided,
        sure_places,
        places,
        len(candidates.ranked) - len({one[fused.key] for fused in candidates.ranked if fused.key not in dropped}),
        tuple(notes),
        {leg: f"{why} For one of these it is unreachable." for leg, why in unseen(candidates).items()},
    )


def lists_by_regime(candidates: Candidates, window: Cut, *, withheld: bool = False) -> dict[str, Lists]:
    """Return ``lists`` for each regime of the recipe: a prior by time weighs by the least factor of its regime."""
    each = {
        name: replace(candidates, regime=name, reranked=_terms_in(name, candidates))
        for name in candidates.recipe.regimes
    }
    return {name: lists(one, window, withheld=withheld) for name, one in each.items()}


def unseen(candidates: Candidates) -> dict[str, str]:
    """Return, for a leg that cannot see earlier versions in a recall of an earlier time, a sentence that says so."""
    seen = "as_of" not in candidates.degraded or not candidates.recipe.walks
    return {} if seen else {"graph": candidates.degraded["as_of"]}


def _why_not(leg: str, candidates: Candidates, withheld: bool) -> str:
    if withheld:
        return "may have answered: the confidence is below min_confidence, so nothing is shown."
    return f"could not answer: {candidates.degraded[leg].rstrip('.')}." if leg in candidates.degraded else "has no list"


# ---------------------------------------------------------------------- copies of one text


def _fold_copies(groups: Sequence[Group], candidates: Candidates, window: Cut) -> Sequence[Group]:
    """Fold candidates with the same normalised content; each that stays has the keys folded into it.

    Copies are folded before parts, because two long memories that share one paragraph are not the same: the later one
    stays, with its next best part. It is a duplicate only when all of its parts that were found are.
    """
    metadata = candidates.metadata if candidates.recipe.dedup else {}
    if len({head.content for head in metadata.values()}) == len(metadata):
        return groups
    content = {key: head.content for key, head in metadata.items()}
    return fold_duplicates([fused for fused, _ in groups], content)


def _of_copies(k: int, places: int, candidates: Candidates, window: Cut) -> Effect:
    """Return the effect of folding copies: they become one place, and the hit names what was folded into it.

    There is one exception. A part may have the same text as a part of another memory while its own memory is shown by
    another part. It may be folded into the other memory, and its own memory may stand far below.
    """
    if not candidates.recipe.dedup:
        return Effect(k, k)
    content = {fused.key: candidates.metadata[fused.key].content for fused in candidates.ranked}
    owners: dict[bytes, set[tuple[str, str]]] = {}
    rows: dict[tuple[str, str], set[bytes]] = {}
    for (id, _, namespace), text in content.items():
        owners.setdefault(text, set()).add((id, namespace))
        rows.setdefault((id, namespace), set()).add(text)
    unsure = [
        key
        for key, text in content.items()
        if window.fold_parts and places > k and len(owners[text]) > 1 and len(rows[key[0], key[2]]) > 1
    ]
    return Effect(k, k, one=content, unsure=unsure)


# ---------------------------------------------------------------------- parts of one memory


def _fold_parts(groups: Sequence[Group], candidates: Candidates, window: Cut) -> Sequence[Group]:
    return _parts(groups) if window.fold_parts and candidates.has_parts else groups


def _of_parts(k: int, places: int, candidates: Candidates, window: Cut) -> Effect:
    """Return the effect of folding parts: all parts of a memory become one place, that of the best part."""
    if not window.fold_parts:
        return Effect(k, k)
    return Effect(k, k, one={fused.key: (fused.key[0], fused.key[2]) for fused in candidates.ranked})


def _parts(groups: Sequence[Group]) -> list[Group]:
    places: dict[tuple[str, str], int] = {}
    whole: list[tuple[Fused[Key], list[Key]]] = []
    for fused, folded in groups:
        id, _, namespace = fused.key
        index = places.setdefault((id, namespace), len(whole))
        if index == len(whole):
            whole.append((fused, []))
        whole[index][1].extend(folded)
    out: list[Group] = []
    for fused, folded_ in whole:
        first = {(id, namespace): (id, part, namespace) for id, part, namespace in reversed(folded_)}
        once = [key for key in folded_ if first[key[0], key[2]] == key and (key[0], key[2]) not in places]
        out.append((fused, tuple(once)))
    return out


# ---------------------------------------------------------------------- a reranker


def _rerank(groups: Sequence[Group], candidates: Candidates, window: Cut) -> Sequence[Group]:
    """Order the candidates that the reranker saw by its scores, ties in their former order.

    The other candidates follow, with scores scaled so that none exceeds those.
    """
    terms = candidates.reranked
    if not terms:
        return groups
    judged = [(f, folded) for f, folded in groups if f.key in terms]
    head = [(f._replace(score=fsum(terms[f.key].values()), components=dict(terms[f.key])), fs) for f, fs in judged]
    head.sort(key=lambda k: -k[0].score)
    return _after(head, [k for k in groups if k[0].key not in terms])


def _after(head: Sequence[Group], rest: Sequence[Group]) -> list[Group]:
    """Put ``rest`` behind ``head``, with scores and components scaled so that no score exceeds those of ``head``."""
    top = max((f.score for f, _ in rest), default=0.0)
    least = head[-1][0].score if head else inf
    factor = min(1.0, max(0.0, least) / top) if top > 0 else 1.0
    return [*head, *((_scaled(f, factor, least), folded) for f, folded in rest)]


def _scaled(fused: Fused[Key], factor: float, most: float) -> Fused[Key]:
    """Return a memory with ``factor`` times its score and components; these are lowered to a score of ``most``."""
    product = fused.score * factor
    score = min(most, product)  # the product rounds, and a reranker may give scores below 0
    lower = (score - product) / max(1, len(fused.components))
    return fused._replace(score=score, components={n: share * factor + lower for n, share in fused.components.items()})


def _terms_in(regime: str, candidates: Candidates) -> Mapping[Key, Mapping[str, float]]:
    """Return the reranker's terms in ``regime``: empty ones where it would run and was not asked."""
    if candidates.recipe.reranker_in(regime) is None:
        return {}
    was_asked = candidates.recipe.reranker_in(candidates.regime) is not None
    return candidates.reranked if was_asked else {key: {} for key in candidates.metadata}


def _of_reranker(k: int, places: int, candidates: Candidates, window: Cut) -> Effect:
    """Return the effect of a reranker: any candidate that it saw may come first."""
    if not candidates.reranked:
        return Effect(k, k)
    depth = candidates.recipe.rerank_depth
    reranker, top = candidates.recipe.rerank, max(k, depth)
    note = f"The reranker {reranker} orders the first {depth} anew, so this is about the top {top}."
    return Effect(top, k if k >= min(depth, places) else 0, note=note)


# ---------------------------------------------------------------------- another order


def _sort(groups: Sequence[Group], candidates: Candidates, window: Cut) -> Sequence[Group]:
    if window.sort_by == "relevance":
        return groups
    if window.sort_by == "accessed":
        return sorted(groups, key=lambda k: candidates.accessed.get((k[0].key[0], k[0].key[2]), _NEVER), reverse=True)
    field = _FIELDS[window.sort_by]
    return sorted(groups, key=lambda k: getattr(candidates.metadata[k[0].key], field), reverse=True)


def _of_sorting(k: int, places: int, candidates: Candidates, window: Cut) -> Effect:
    """Return the effect of sorting by a field: any candidate may come first."""
    if window.sort_by == "relevance":
        return Effect(k, k)
    note = f"Sorted by {window.sort_by}, so scores decide nothing and whatever a leg finds may come first."
    return Effect(None, k if places <= k else 0, note=note)


# ---------------------------------------------------------------------- a budget of tokens


def _as_it_stands(groups: Sequence[Group], candidates: Candidates, window: Cut) -> Sequence[Group]:
    """Return the list unchanged; the budget is applied when texts have been read (semmem.read.context.packed)."""
    return groups


def _of_budget(k: int, places: int, candidates: Candidates, window: Cut) -> Effect:
    """Return the effect of a token budget: any hit may be left out, and none from behind the page replaces it."""
    if window.token_budget is None:
        return Effect(k, k)
    note = f"A budget of {window.token_budget:,} tokens leaves out what has no place in it, so no place is guaranteed."
    return Effect(k, 0, note=note)


# ---------------------------------------------------------------------- what is superseded


def _supersede(groups: Sequence[Group], candidates: Candidates, window: Cut) -> Sequence[Group]:
    return supersede(groups, candidates, window) if candidates.newer else groups


# ---------------------------------------------------------------------- what is not valid now


def _below(groups: Sequence[Group], candidates: Candidates, window: Cut) -> Sequence[Group]:
    """Put memories that are not valid now behind those that are; lower their scores and components in proportion."""
    lapsed = candidates.scope.lapsed
    behind = [one for one in groups if candidates.metadata[one[0].key].row_id in lapsed] if lapsed else []
    if not behind or len(behind) == len(groups):
        return groups
    valid = [one for one in groups if candidates.metadata[one[0].key].row_id not in lapsed]
    return _after(valid, behind)


def _of_validity(k: int, places: int, candidates: Candidates, window: Cut) -> Effect:
    """Return the effect of validity: a memory that is not valid now falls behind all others."""
    if not any(candidates.metadata[fused.key].row_id in candidates.scope.lapsed for fused in candidates.ranked):
        return Effect(k, k)
    note = "What is not valid now ranks below what is, so scores alone do not decide the places."
    return Effect(None, k if len(candidates.ranked) <= k else 0, note=note)


STEPS = (
    Step("validity", _below, _of_validity),
    Step("copies", _fold_copies, _of_copies),
    Step("parts", _fold_parts, _of_parts),
    Step("reranker", _rerank, _of_reranker),
    Step("validity after a reranker", _below, _of_validity),
    Step("order", _sort, _of_sorting),
    Step("superseding", _supersede, of_superseding),
    Step("budget", _as_it_stands, _of_budget),
)
"""The steps, in the order in which they are applied."""
