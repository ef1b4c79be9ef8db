"""Put superseded memories behind those that supersede them: a step between fusion and the hits.

The memories of one chain share the places that they have earned. The newest memory takes the best place with its score.
The superseded ones fall back to the remaining places, their scores and components lowered in proportion. All other
memories stay where they are. Where no leg found the newest memory, it is put directly above the one it supersedes. So a
question that only an outdated memory has words for still gets an answer, and the answer is up to date.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from semmem.fusion import SUPERSEDING, Fused
from semmem.model.history import DEEPEST
from semmem.model.store import Snapshot
from semmem.rank_cap.places import Effect
from semmem.read.candidates import Candidates, Cut, Group, Key, Name

__all__ = ["above", "newest", "of_superseding", "supersede", "with_newer"]


def with_newer(candidates: Candidates, snapshot: Snapshot, more: Collection[Name] = ()) -> Candidates:
    """Return ``candidates`` with the memories that supersede its candidates and ``more``.

    The snapshot is asked once, and only where the namespaces have links that supersede.
    """
    spaces = [n for n in candidates.scope.namespaces if n in candidates.scope.superseding]
    if not spaces or not candidates.recipe.superseding:
        return candidates
    names: dict[str, set[str]] = {n: set() for n in spaces}
    for id, namespace in {*map(_name, (fused.key for fused in candidates.ranked)), *more}:
        if namespace in names:
            names[namespace].add(id)
    import numpy as np

    rows = sorted(snapshot.newer(names), key=lambda row: (row.candidate.created_at, row.candidate.id), reverse=True)
    matching = candidates.scope.matches(np.array([row.candidate.row_id for row in rows], dtype=np.int64)).tolist()
    newer: dict[Name, dict[Name, None]] = {}
    fetched: dict[Name, Key] = {}
    metadata = dict(candidates.metadata)
    for row, inside in zip(rows, matching, strict=True):
        candidate = row.candidate
        name, key = (candidate.id, candidate.namespace), (candidate.id, candidate.part, candidate.namespace)
        newer.setdefault((row.old, candidate.namespace), {})[name] = None
        if inside and not row.hidden:
            fetched[name] = key
            metadata.setdefault(key, candidate)
    return replace(candidates, newer={old: tuple(by) for old, by in newer.items()}, fetched=fetched, metadata=metadata)


def _name(key: Key) -> Name:
    return key[0], key[2]


def above(name: Name, newer: Mapping[Name, Sequence[Name]]) -> tuple[Name, ...]:
    """Return all memories that supersede ``name``, directly or through others, the nearest first."""
    names: dict[Name, None] = {}
    edge = [name]
    for _ in range(DEEPEST):
        edge = [n for old in edge for n in newer.get(old, ()) if n not in names and n != name]
        names.update(dict.fromkeys(edge))
    return tuple(names)


def newest(candidates: Candidates, name: Name) -> Name | None:
    """Return the memory at the end of the chain above ``name``; None where nothing supersedes it.

    Where several memories supersede one, those that are shown come first, then the one created last.
    """
    chain = above(name, candidates.newer)
    ends = [one for one in chain if not above(one, candidates.newer)]
    shown = _candidate_names(candidates) | candidates.fetched.keys()
    return next((one for one in ends if one in shown), ends[0] if ends else None)


def _candidate_names(candidates: Candidates) -> set[Name]:
    """Return the memories found by a leg that has a weight."""
    return {_name(fused.key) for fused in candidates.ranked}


def _to_fetch(candidates: Candidates) -> dict[Name, Key]:
    """Return, for each candidate whose newest version no leg found, the row to put above it."""
    names = _candidate_names(candidates)
    out = {}
    for name in names & candidates.newer.keys():
        chain = [one for one in above(name, candidates.newer) if one in names or one in candidates.fetched]
        ends = [one for one in chain if not set(above(one, candidates.newer)) & set(chain)]
        if ends and not names.intersection(ends):
            out[name] = candidates.fetched[ends[0]]
    return out


# ---------------------------------------------------------------------- what it does to the list


def supersede(groups: Sequence[Group], candidates: Candidates, window: Cut) -> list[Group]:
    """Put newer memories before those that they supersede; see the module's docstring."""
    listed = _with_fetched([_shown_by(one, candidates) for one in groups], candidates)
    folded_at = {_name(key): [index] for index, (_, folded) in enumerate(listed) for key in folded}
    places: dict[Name, list[int]] = {}
    for index, (fused, _) in enumerate(listed):  # several places where parts are not folded: all of them come first
        places.setdefault(_name(fused.key), []).append(index)
    places = {**folded_at, **places}
    before = [
        sorted({place for one in above(_name(fused.key), candidates.newer) for place in places.get(one, ())} - {index})
        for index, (fused, _) in enumerate(listed)
    ]
    order = _arranged(before)
    if window.sort_by == "relevance":
        return [_with_score(listed[of], listed[index][0].score) for index, of in enumerate(order)]
    out: list[Group] = []
    score: dict[int, float] = {}
    for of in order:  # sorted by a field, so scores stay as they are
        score[of] = min([listed[of][0].score, *(score[one] for one in before[of] if one in score)])
        out.append(_with_score(listed[of], score[of]))
    return out


def _shown_by(one: Group, candidates: Candidates) -> Group:
    """Let the newest of several copies of one text stand for the hit, where one supersedes the others.

    So does a copy that is newer than all that supersedes the hit: the text was said again, and holds again.
    """
    fused, folded = one
    newer = above(_name(fused.key), candidates.newer)
    of = next((key for name in newer[::-1] for key in folded if _name(key) == name), None)
    if of is None and newer:
        of = _said_again(folded, newer, candidates)
    if of is None:
        return one
    own = next((ranked for ranked in candidates.ranked if ranked.key == of), None)
    if own is None:
        return one
    shown = _with_score((own, ()), fused.score)[0]
    return shown, (fused.key, *(key for key in folded if key != of))


def _said_again(folded: Sequence[Key], newer: Sequence[Name], candidates: Candidates) -> Key | None:
    """Return the newest of some copies that nothing supersedes, if it is newer than what of ``newer`` is shown."""
    created = {key: candidates.metadata[key].created_at for key in folded if not above(_name(key), candidates.newer)}
    last = max(created, key=lambda key: (created[key], key), default=None)
    by = [candidates.metadata[key].created_at for name, key in candidates.fetched.items() if name in newer]
    return last if last is not None and by and created[last] > max(by) else None


def _with_fetched(groups: Sequence[Group], candidates: Candidates) -> list[Group]:
    """Put each newest memory that no leg found directly above the first memory that it supersedes, with its score."""
    rows = _to_fetch(candidates)
    added: set[Key] = set()
    out: list[Group] = []
    for fused, folded in groups:
        key = rows.get(_name(fused.key))
        if key is not None and key not in added:
            added.add(key)
            out.append((Fused(key, fused.score, {SUPERSEDING: fused.score}, {}), ()))
        out.append((fused, folded))
    return out


def _arranged(before: Sequence[Sequence[int]]) -> list[int]:
    """Return which candidate takes each place: newer memories first within a chain, all others unmoved.

    ``before[i]`` holds the places of the candidates that must come before candidate i.
    """
    chains = {index: index for index in range(len(before))}

    def chain(index: int) -> int:
        while chains[index] != index:
            chains[index] = index = chains[chains[index]]
        return index

    for index, ahead in enumerate(before):
        for one in ahead:
            chains[chain(one)] = chain(index)
    members: dict[int, list[int]] = {}
    for index in range(len(before)):
        members.setdefault(chain(index), []).append(index)
    out = list(range(len(before)))
    for places in members.values():
        order: dict[int, None] = {}

        def take(index: int, order: dict[int, None] = order, under: frozenset[int] = frozenset()) -> None:
            for one in before[index]:
                if one not in order and one not in under:
                    take(one, order, under | {index})
            order.setdefault(index)

        for index in places:
            take(index)
        for index, of in zip(places, order, strict=True):
            out[index] = of
    return out


def _with_score(one: Group, score: float) -> Group:
    """Return a candidate with another score.

    A lower score lowers all components in proportion; a higher one adds the component "superseding".
    """
    fused, folded = one
    if score == fused.score:
        return one
    if score > fused.score or fused.score == 0:  # a reranker may give scores of 0 or less, which no factor can raise
        rise = fused.components.get(SUPERSEDING, 0.0) + score - fused.score
        return fused._replace(score=score, components={**fused.components, SUPERSEDING: rise}), folded
    factor = score / fused.score
    return fused._replace(score=score, components={n: c * factor for n, c in fused.components.items()}), folded


# ---------------------------------------------------------------------- what it can do to a place


def of_superseding(k: int, places: int, candidates: Candidates, window: Cut) -> Effect:
    """Return the effect of superseding: a newer memory may come from anywhere, and a fetched one takes a place.

    So may a copy of what is superseded, where its text was said again. A memory fetched to stand above one candidate
    may supersede another one too, and take that candidate's place.
    """
    names = _candidate_names(candidates)
    to_fetch = {name: _name(key) for name, key in _to_fetch(candidates).items()}
    elsewhere = {
        name: names | (set(to_fetch.values()) - {to_fetch.get(name)}) for name in names & candidates.newer.keys()
    }
    older = {name for name, others in elsewhere.items() if others.intersection(above(name, candidates.newer))}
    fetched = len(set(to_fetch.values()))
    again = _may_be_said_again(candidates)
    if not older and not fetched and not again:
        return Effect(k, k)
    sure_places = k if places <= k else max(0, k - fetched)
    if not older and not again:
        return Effect(k, sure_places)
    note = "What supersedes another memory takes its place, so whatever a leg finds may come first."
    return Effect(None, sure_places, note=note)


def _may_be_said_again(candidates: Candidates) -> bool:
    """Return whether a copy of a superseded candidate may be shown in its place."""
    if not candidates.recipe.dedup:
        return False
    copies: dict[bytes, list[Key]] = {}
    for fused in candidates.ranked:
        copies.setdefault(candidates.metadata[fused.key].content, []).append(fused.key)
    return any(
        _said_again(keys, newer, candidates) is not None
        for keys in copies.values()
        if len(keys) > 1
        for key in keys
        if (newer := above(_name(key), candidates.newer))
    )
