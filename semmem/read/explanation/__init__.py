"""Explain why a memory is where it is in a recall, and what would let it in: the answer of ``recall.explain(id)``."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from reprlib import repr as shown
from typing import TYPE_CHECKING, Any

from semmem.fusion import IMPORTANCE, SUPERSEDING, Fused
from semmem.legs.graph_paths import Step, path_line, paths_to
from semmem.model.errors import InvalidInput, NotFound
from semmem.model.exchange import CandidateMetadata, local
from semmem.model.filters import string
from semmem.model.other_names import renamed
from semmem.model.short_ids import MOST_ALIKE, is_short, whole_id
from semmem.model.store import Snapshot, Store
from semmem.model.tables import html_table
from semmem.model.types import Memory
from semmem.read.candidates import PERIOD, RECENCY, Candidates, Cut, Key
from semmem.read.explanation.absence import not_valid, not_valid_at, what_became
from semmem.read.explanation.what_if import Opening
from semmem.read.steps import cut, unseen
from semmem.read.superseding import newest, with_newer

if TYPE_CHECKING:
    pass

__all__ = ["Explanation", "LegExplanation", "explain"]


@dataclass(frozen=True, slots=True)
class LegExplanation:
    """What one leg did with the memory.

    ``status`` is a sentence. ``needs`` maps ``weight``, ``rank_constant`` and ``rank`` to the nearest value that would
    bring the memory into the hits with everything else unchanged: a weight just above the value, a rank constant or
    rank up to it. Each value was tested by fusing again, reserve and prior included. A key is absent where no value
    would help, and all are absent where a reranker decides the order.
    """

    leg: str
    rank: int | None
    score: float | None
    share: float
    weight: float
    rank_constant: float
    status: str
    needs: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a memory is at its rank. ``rank`` is None where no leg found the memory or it was folded into another hit.

    ``part`` is the best matching part of a split text. ``path`` is the path by which the graph leg reached the memory,
    hop by hop; several paths follow one another, see ``paths``. ``bar`` is the score of the last memory returned; None
    when fewer than ``limit`` were returned or when the hits are not ordered by score. ``withheld_below`` is the
    ``min_confidence`` that withheld a memory whose rank was good enough; ``superseded_by`` is the newest memory that
    supersedes this one and stands above it; ``over_budget`` is the ``token_budget`` that had no room for the memory;
    ``not_valid`` says in words since when, or until when, the memory is not valid. ``periods`` are those that the
    question names, each with the time that it stands for, where the recipe has a ``period_floor``.
    """

    id: str
    namespace: str
    rank: int | None
    returned: bool
    score: float
    bar: float | None
    limit: int
    regime: str
    legs: Mapping[str, LegExplanation]
    components: Mapping[str, float]
    path: tuple[Step, ...]
    folded_into: str | None = None
    part: int | None = None
    withheld_below: float | None = None
    superseded_by: str | None = None
    over_budget: int | None = None
    not_valid: str | None = None
    periods: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[tuple[Step, ...], ...]:
        """Return ``path`` split into paths; each begins at the question and ends at the memory."""
        last = [(step.to, step.part) for step in self.path[-1:]]
        ends = [index for index, step in enumerate(self.path, 1) if (step.to, step.part) in last]
        return tuple(self.path[start:end] for start, end in zip([0, *ends], ends, strict=False))

    @property
    def ways(self) -> tuple[tuple[Step, ...], ...]:
        """The former name of ``paths``."""
        warnings.warn(renamed("ways", "paths"), DeprecationWarning, stacklevel=2)
        return self.paths

    def as_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        import dataclasses

        out = dataclasses.asdict(self)
        out["path"] = [str(step) for step in self.path]
        return out

    def _repr_html_(self) -> str:
        rows = [
            {
                "leg": one.leg,
                "rank": one.rank,
                "share": one.share,
                "status": one.status,
                "enough": ", ".join(f"{what.replace('_', ' ')} {value:g}" for what, value in one.needs.items()),
            }
            for one in self.legs.values()
        ]
        table = html_table(str(self).partition("\n")[0], rows, ("leg", "rank", "share", "status", "enough"))
        paths = "".join(f"<li>{escape(path_line(path))}</li>" for path in self.paths)
        return table + (f"<ol>{paths}</ol>" if paths else "")

    def __str__(self) -> str:
        place = f"rank {self.rank}" if self.rank else "folded" if self.folded_into else "not found"
        part = f", part {self.part}" if self.part else ""
        lines = [f"{self.id} ({self.namespace}){part}: {place}" + (f", score {self.score:.4f}" if self.score else "")]
        if self.folded_into:
            lines.append(f"  folded into {self.folded_into}")
        if self.withheld_below is not None:
            lines.append(f"  withheld: the confidence of the recall is below {self.withheld_below:g}")
        elif self.over_budget is not None:
            lines.append(f"  left out: no room for it in a budget of {self.over_budget} tokens")
        elif not self.returned and self.bar is not None:
            lines.append(f"  a place among the first {self.limit} needed a score above {self.bar:.4f}")
        for leg in self.legs.values():
            lines.append(f"  {leg.leg}: {leg.status}")
            for what, value in leg.needs.items():
                lines.append(f"    would be a hit with {what.replace('_', ' ')} {value:g}")
        if worth := self.components.get(IMPORTANCE):
            lines.append(f"  importance: {worth:+.4f}, compared with importance 0.5")
        if lost := self.components.get(RECENCY):
            lines.append(f"  recency: {lost:+.4f}, compared with the newest memory found")
        if self.periods and self.components:  # else its time made no difference to a score
            lost, named = self.components.get(PERIOD, 0.0), " and ".join(self.periods)
            lines.append(f"  period: {f'{lost:+.4f}, not ' if lost else ''}created in {named}")
        if rise := self.components.get(SUPERSEDING):
            lines.append(f"  superseding: {rise:+.4f}, because it takes the place of an older memory")
        lines += [f"  {self.not_valid}"] * bool(self.not_valid)
        lines += [f"  superseded by {self.superseded_by}, so it ranks below it"] * bool(self.superseded_by)
        lines += [f"  graph: {path_line(path)}" for path in self.paths]
        return "\n".join(lines)


def explain(
    candidates: Candidates,
    window: Cut,
    id: str,
    store: Store,
    snapshot: Snapshot,
    namespace: str | None = None,
    language: str = "english",
) -> Explanation:
    """Explain the memory ``id`` of ``namespace``, or of the only namespace of the recall that has the id.

    Raises NotFound where no namespace has it, and InvalidInput where several have it or where it is in no index.
    """
    memory = _memory(candidates, id, store, namespace)
    namespace, id = memory.namespace, memory.id
    metadata = _heads(memory, snapshot)
    candidates = with_newer(candidates, snapshot, [(id, namespace)])
    inside = dict(zip(metadata, _matching(candidates, list(metadata.values())), strict=True))
    ranked = {fused.key: fused for fused in candidates.ranked}
    groups = cut(candidates, window)
    place = next((index for index, (f, _) in enumerate(groups, 1) if f.key in metadata), None)
    order = [groups[place - 1][0].key] if place is not None else [f.key for f in candidates.ranked if f.key in metadata]
    key = next(iter([*order, *(k for k in metadata if inside[k]), *metadata]))
    fused = ranked.get(key)
    final = groups[place - 1][0] if place is not None else fused  # reranker and superseding change the components
    newer = newest(candidates, (id, namespace))
    last = window.offset + window.limit
    returned = place is not None and window.offset < place <= last
    folded_into = None
    if place is None and fused is not None:
        folded_into = next((f.key[0] for f, folded in groups if _holds(f, folded, key, window)), None)
    by_score = window.sort_by == "relevance"
    bar = groups[last - 1][0].score if by_score and len(groups) >= last else None
    wanting = (
        by_score and inside[key] and not folded_into and (place is None or place > last) and not candidates.reranked
    )
    opening = Opening(candidates, window, key, metadata) if wanting else None
    lapsed = _lapsed(candidates, memory, metadata[key], store, any(inside.values()))
    outside = "" if inside[key] else lapsed if candidates.scope.at is not None else None
    return Explanation(
        id,
        namespace,
        place,
        returned,
        final.score if final else 0.0,
        bar,
        window.limit,
        candidates.regime,
        {leg: _leg(leg, candidates, key, fused, outside, opening, metadata[key]) for leg in candidates.recipe.weights},
        dict(final.components) if final else {},
        _path(candidates, store, snapshot, metadata[key].row_id, language) if fused is not None else (),
        folded_into,
        key[1] or None,
        superseded_by=newer[0] if newer is not None else None,
        not_valid=lapsed,
        periods=tuple(map(str, candidates.question.periods or ())),
    )


def _memory(candidates: Candidates, id: str, store: Store, space: str | None) -> Memory:
    """Return the memory ``id`` of the namespace ``space``, or of the only namespace of the recall that has it."""
    string("id", id)
    spaces = candidates.scope.namespaces
    if space is not None and string("namespace", space) not in spaces:
        raise InvalidInput(f"This recall did not search namespace {shown(space)}, only {', '.join(spaces)}.")
    places = (space,) if space is not None else spaces
    having = [memory for namespace in places for memory in store.get(namespace, [_whole(id, namespace, store)])]
    if not having:
        reason = next(filter(None, (what_became(store, namespace, id) for namespace in places)), "")
        raise NotFound(reason or f"There is no memory {shown(id)} in {', '.join(places)}; `list` shows what is stored.")
    if len(having) > 1:
        names = [memory.namespace for memory in having]
        raise InvalidInput(
            f"The id {shown(id)} is in several namespaces ({', '.join(names)}); say which: "
            f"explain({shown(id)}, namespace={shown(names[0])})."
        )
    return having[0]


def _whole(id: str, namespace: str, store: Store) -> str:
    """Return the id of which ``id`` may be the beginning."""
    if not is_short(id):
        return id
    return whole_id(id, store.ids_with_prefix(namespace, [id], MOST_ALIKE)[id], namespace)


def _lapsed(
    candidates: Candidates, memory: Memory, candidate: CandidateMetadata, store: Store, inside: bool
) -> str | None:
    """Return since when the memory is not valid and what follows from it; None where nothing follows."""
    at = candidates.scope.at
    if at is not None and not inside and store.life is not None:
        version = store.life.version_at(memory.namespace, memory.id, at)
        return f"{not_valid_at(at)}, so it is not there" if version is None else None
    reason = not_valid(memory, datetime.now(UTC)) if candidate.row_id in candidates.scope.lapsed else None
    return reason and f"{reason}: it ranks below valid memories"


def _heads(memory: Memory, snapshot: Snapshot) -> dict[Key, CandidateMetadata]:
    """Return the metadata of all rows that index the memory, by key."""
    namespace, id = memory.namespace, memory.id
    metadata = (candidate for candidate in snapshot.metadata_of([id]).values() if candidate.namespace == namespace)
    keys = {(h.id, h.part, h.namespace): h for h in sorted(metadata, key=lambda h: h.part)}
    if not keys and memory.sensitive:
        raise InvalidInput(
            f"The memory {shown(id)} is sensitive: it is in no index, and no recall finds it; `get` does by its exact "
            "id, `list` by its exact title or a tag."
        )
    if not keys:
        raise NotFound(f"The memory {shown(id)} was forgotten just now; `list` shows what is stored.")
    return keys


def _matching(candidates: Candidates, metadata: list[CandidateMetadata]) -> list[bool]:
    import numpy as np

    matching: list[bool] = candidates.scope.matches(np.array([h.row_id for h in metadata], dtype=np.int64)).tolist()
    return matching


def _holds(fused: Fused[Key], folded: tuple[Key, ...], key: Key, window: Cut) -> bool:
    """Return whether ``key`` was folded into ``fused``: as the same text, or as another part of the same memory."""
    return key in folded or (window.fold_parts and (key[0], key[2]) in {(k[0], k[2]) for k in (fused.key, *folded)})


def _leg(
    leg: str,
    candidates: Candidates,
    key: Key,
    fused: Fused[Key] | None,
    outside: str | None,
    opening: Opening | None,
    candidate: CandidateMetadata,
) -> LegExplanation:
    """Return what one leg did with the memory.

    ``outside`` is "" for a memory in scope, None for one that a filter leaves out, else the reason why it is out of
    scope.
    """
    recipe = candidates.recipe
    weight = recipe.weights_in(candidates.regime).get(leg, recipe.weights[leg])
    constant = recipe.constants(candidates.regime).get(leg, 0.0)
    if leg not in recipe.legs:
        return LegExplanation(leg, None, None, 0.0, weight, constant, "not called (weight or depth 0)", {})
    if leg in candidates.degraded:
        return LegExplanation(leg, None, None, 0.0, weight, constant, f"degraded: {candidates.degraded[leg]}", {})
    rank = fused.ranks.get(leg) if fused is not None else None
    share = fused.components.get(leg, 0.0) if fused is not None else 0.0
    score = candidates.raw[leg][rank - 1] if rank else None
    if rank:
        status = f"rank {rank}, {share:.4f} = {weight:g} / ({constant:g} + {rank}), scaled"
        if recipe.fusion != "rrf":
            status = f"rank {rank}, {share:.4f} by {recipe.fusion} at weight {weight:g}"
    elif outside != "":
        status = f"out of scope: {outside or 'a filter or exclude leaves it out'}"
    elif leg in unseen(candidates) and _is_version(candidate):
        return LegExplanation(leg, None, None, 0.0, weight, constant, "not in the list: it sees no earlier version", {})
    else:
        status = f"not in the list (depth {recipe.depths.get(leg, 100)})"
    needs = opening.needs(leg) if opening is not None else {}
    return LegExplanation(leg, rank, score, share, weight, constant, status, needs)


def _is_version(candidate: CandidateMetadata) -> bool:
    """Return whether a row is an earlier version of a memory, as a recall of an earlier time finds it."""
    from semmem.stores.packed_postings import FIRST_EARLIER

    return bool(local(candidate.row_id) >= FIRST_EARLIER)


def _path(candidates: Candidates, store: Store, snapshot: Snapshot, target: int, language: str) -> tuple[Step, ...]:
    """Return how the graph leg reached the memory; empty where the leg was not called or did not reach it."""
    from semmem.legs.graph_linking import WalkTrace

    traces = [candidates.traces[leg] for leg in candidates.rankings]
    walked = next((trace for trace in traces if isinstance(trace, WalkTrace)), None)
    if walked is None or store.graph is None:
        return ()
    return paths_to(target, walked, snapshot, store.graph, language)
