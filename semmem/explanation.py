"""Why a memory is where it is, and what would let it in: the answer of ``recall.explain(id)``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from semmem.errors import NotFound
from semmem.types import Recipe

if TYPE_CHECKING:
    from semmem.recall import Candidates, Key, Recall

__all__ = ["Explanation", "LegExplanation", "Step", "explain"]


@dataclass(frozen=True, slots=True)
class Step:
    """One edge of the walk: from a question, memory or leg over ``by`` to the memory ``to``, with the mass it carried."""

    start: str
    by: str
    to: str
    mass: float

    def __str__(self) -> str:
        return f"{self.start} → {self.by} → {self.to} ({self.mass:.3g})"


@dataclass(frozen=True, slots=True)
class LegExplanation:
    """What one leg did with the memory.

    ``status`` is a sentence. ``needs`` maps ``weight``, ``rank_constant`` or ``rank`` to the value from which on this
    leg alone would lift the memory over the bar, everything else unchanged; a key is absent where no value would.
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
    """All of it: ``rank`` among the ranked candidates (None: no leg found it), ``bar`` the score to beat at ``limit``."""

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

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        import dataclasses

        out = dataclasses.asdict(self)
        out["path"] = [str(step) for step in self.path]
        return out

    def __str__(self) -> str:
        lines = [f"{self.id} ({self.namespace}): " + (f"rank {self.rank}, score {self.score:.4f}" if self.rank else "not found")]
        if self.folded_into:
            lines.append(f"  folded into {self.folded_into}: the same text")
        if not self.returned and self.bar is not None:
            lines.append(f"  the bar at {self.limit} was {self.bar:.4f}")
        for leg in self.legs.values():
            lines.append(f"  {leg.leg}: {leg.status}")
            for what, value in leg.needs.items():
                lines.append(f"    would be in with {what.replace('_', ' ')} {value:g}")
        lines += [f"  {step}" for step in self.path]
        return "\n".join(lines)


def explain(recall: Recall, id: str, store: Any) -> Explanation:
    """Explain the memory ``id`` of any namespace of the recall. Raises NotFound when no namespace has it."""
    found = recall.candidates
    for namespace in found.scope.namespaces:
        memories = store.get(namespace, [id])
        if memories:
            break
    else:
        raise NotFound(f"There is no memory {id!r} in {', '.join(found.scope.namespaces)}; `list` shows what is stored.")
    memory = memories[0]
    parent, _, part = (memory.parent_id, 0, int(id.rpartition("#")[2])) if memory.parent_id else (id, 0, None)
    keys = [k for k in found.heads if k[0] == parent and k[2] == namespace and (part is None or k[1] == part)]
    ranked = {fused.key: (at, fused) for at, fused in enumerate(found.ranked, 1)}
    key = min((k for k in keys if k in ranked), key=lambda k: ranked[k][0], default=None)
    at, fused = ranked[key] if key is not None else (None, None)
    hit = next((h for h in recall if (h.memory.parent_id or h.memory.id) == parent and h.memory.namespace == namespace), None)
    holder = next((h for h in recall if parent in h.duplicates), None)
    bar = min((h.score for h in recall), default=None) if len(recall) >= recall.limit else None
    in_scope = _in_scope(found, store, namespace, id)
    recipe = found.recipe
    factor = _factor(found, key, memory.importance)
    legs = {}
    for leg in recipe.weights:
        legs[leg] = _leg(leg, found, key, fused, bar, factor, in_scope, hit is not None, recipe)
    path = _path(found, store, key) if key is not None else ()
    return Explanation(
        id,
        namespace,
        hit.rank if hit else at,
        hit is not None,
        fused.score if fused else 0.0,
        bar,
        recall.limit,
        found.regime,
        legs,
        dict(fused.components) if fused else {},
        path,
        holder.memory.id if holder and hit is None else None,
    )


def _in_scope(found: Candidates, store: Any, namespace: str, id: str) -> bool:
    import numpy as np

    ords = np.array(store.locate(namespace, id) or (0,), dtype=np.int64)
    return bool(found.scope.admits(ords).any())


def _factor(found: Candidates, key: Key | None, importance: float) -> float:
    """Return what a share of 1 in plain RRF units is worth in the score: prior over divisor."""
    recipe, constants = found.recipe, found.recipe.constants(found.regime)
    most = sum(recipe.weights[leg] / (constants[leg] + 1) for leg in recipe.legs)
    if recipe.exact_bonus and "lexical" in constants:
        most += recipe.exact_bonus * recipe.weights["lexical"] / (constants["lexical"] + 1)
    importance = found.heads[key].importance if key is not None else importance
    prior = recipe.prior_floor + (1 - recipe.prior_floor) * importance if recipe.prior else 1.0
    return prior / most


def _leg(
    leg: str,
    found: Candidates,
    key: Key | None,
    fused: Any,
    bar: float | None,
    factor: float,
    in_scope: bool,
    returned: bool,
    recipe: Recipe,
) -> LegExplanation:
    weight = recipe.weights[leg]
    constant = recipe.constants(found.regime).get(leg, 0.0)
    depth = recipe.depths.get(leg, 100)
    if leg not in recipe.legs:
        return LegExplanation(leg, None, None, 0.0, weight, constant, "not called (weight or depth 0)", {})
    if leg in found.degraded:
        return LegExplanation(leg, None, None, 0.0, weight, constant, f"degraded: {found.degraded[leg]}", {})
    rank = fused.ranks.get(leg) if fused is not None else None
    share = fused.components.get(leg, 0.0) if fused is not None else 0.0
    score = found.raw[leg][rank - 1] if rank else None
    if rank:
        status = f"rank {rank}, {share:.4f} = {weight:g} / ({constant:g} + {rank}), scaled"
    elif not in_scope:
        status = "out of scope: a filter or exclude leaves it out"
    else:
        status = f"not in the list (depth {depth})"
    needs: dict[str, float] = {}
    total = fused.score if fused is not None else 0.0
    if bar is not None and not returned and in_scope:
        missing = (bar - (total - share)) / factor
        needs = _needs(missing, weight, constant, rank, depth)
    return LegExplanation(leg, rank, score, share, weight, constant, status, needs)


def _needs(missing: float, weight: float, constant: float, rank: int | None, depth: int) -> dict[str, float]:
    """Return from which weight, rank constant or rank on w / (k + r) exceeds ``missing``, the others unchanged."""
    if missing <= 0:
        return {}
    out: dict[str, float] = {}
    if rank:
        out["weight"] = round(missing * (constant + rank), 6)
        if (smaller := weight / missing - rank) >= 0:
            out["rank_constant"] = round(smaller, 6)
    best = Fraction(weight) / Fraction(missing) - Fraction(constant)
    last = -(-best.numerator // best.denominator) - 1  # the largest whole rank below it
    if 1 <= last and (rank is None or last < rank):
        out["rank"] = float(min(last, depth))
    return out


def _path(found: Candidates, store: Any, key: Key) -> tuple[Step, ...]:
    """Return the heaviest way the walk took to the memory: question → concept → memory → concept → memory."""
    trace = found.traces.get("graph")
    if trace is None or "graph" not in found.rankings:
        return ()
    target = found.heads[key].ord
    links: list[tuple[int, int, int, float]] = []
    here = target
    for edges in reversed(_hops_to(trace, target)):
        import numpy as np

        to = np.flatnonzero(edges.target == here)
        best = to[np.argmax(edges.weight[to])]
        links.append((int(edges.source[best]), int(edges.key[best]), here, float(edges.weight[best])))
        here = int(edges.source[best])
    links.reverse()
    namespaces = found.scope.namespaces
    names = store.names(namespaces, {k for _, k, _, _ in links if k})
    ords = sorted({here, target, *(o for s, _, t, _ in links for o in (s, t))})
    ids = {o: (f"{h.id}#{h.part}" if h.part else h.id) for o, h in store.heads(namespaces, ords).items()}
    if here in trace.linked:
        by = trace.labels.get(trace.linked[here][0], "a name")
    elif here in trace.concepts:
        by = trace.labels.get(trace.concepts[here][0], "a concept")
    else:
        by = trace.seeds.get(here, "a seed")
    steps = [Step("question", by, ids.get(here, "?"), trace.restart.get(here, 0.0))]
    for source, concept, to_, mass in links:
        steps.append(
            Step(ids.get(source, "?"), names.get(concept, "next in session") if concept else "next in session", ids.get(to_, "?"), mass)
        )
    return tuple(steps)


def _hops_to(trace: Any, target: int) -> list[Any]:
    """Return the fewest hops whose edges lead to ``target`` and whose sources the walk had reached; none for a restart."""
    if target in trace.restart:
        return []
    for number, edges in enumerate(trace.hops, 1):
        if (edges.target == target).any():
            return list(trace.hops[:number])
    return []
