"""The walk over memories and concepts, in bounded work: pure arithmetic on the edges of a few memories.

A restart spreads mass over memories the question names or the legs found; each hop carries the mass of the heaviest ones
along three channels (graph-leg.md, "Edges"), each normalised by itself:

- *about*: from a memory to the memories whose subject it mentions;
- *co-mention*: to the memories that mention the same rare concepts;
- *neighbour*: to the previous and next memory of the session.

It is personalised PageRank (Haveliwala 2002) in spirit: restart, decay, bounded. ``personalised_pagerank`` is the pure
form over the same edges. Nothing here does I/O; arrays in, arrays out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Edges", "Mass", "combine", "edges", "gate", "hop", "idf", "personalised_pagerank", "strongest"]

Mass = dict[int, float]
"""ord -> mass, at least 0."""
_DIGITS = 12
"""Mass is compared to this many significant digits, so that the order in which sums were taken cannot decide."""


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges from a few memories through concepts: parallel arrays, one element an edge source → key → target.

    ``weight`` is the share of the source's mass that passes over the edge; of one source the weights sum to at most
    the channels' sum.
    """

    source: NDArray[np.int64]
    key: NDArray[np.int64]
    target: NDArray[np.int64]
    weight: NDArray[np.float64]


def idf(memories: int, df: NDArray[Any] | int) -> Any:
    """Return ln(1 + N/df) / ln(1 + N): 1 for a concept of one memory, about 0 for one that all mention; 0 for df 0."""
    import numpy as np

    counts = np.asarray(df, dtype=np.float64)
    if memories < 1:
        return np.zeros_like(counts)
    with np.errstate(divide="ignore"):
        raw = np.log1p(memories / counts) / np.log1p(memories)
    return np.where(counts > 0, raw, 0.0)


def combine(parts: Sequence[tuple[Mapping[int, float], float, float]]) -> tuple[Mass, Mass]:
    """Return the restart and its part of the score from (mass, share, factor in the score) parts.

    Each part is scaled to its share, parts without mass are left out, the whole sums to 1.
    """
    present = [(mass, share, factor, sum(mass.values())) for mass, share, factor in parts if share > 0]
    present = [part for part in present if part[3] > 0]
    shares = sum(share for _, share, _, _ in present)
    restart: Mass = {}
    score: Mass = {}
    for mass, share, factor, total in present:
        for ord, value in mass.items():
            part = value / total * share / shares
            restart[ord] = restart.get(ord, 0.0) + part
            score[ord] = score.get(ord, 0.0) + part * factor
    return restart, score


def edges(
    forwards: Mapping[int, NDArray[Any]],
    postings: Mapping[int, NDArray[Any]],
    memories: int,
    *,
    about: float,
    co_mention: float,
    fan: int,
    max_df: int,
) -> Edges:
    """Return the about and co-mention edges of the memories in ``forwards``.

    ``forwards`` maps an ord to its entries (key, mention, subject); ``postings`` a key to its entries (ord, mention,
    subject), and holds no key of more than ``max_df`` mentions. Weights of entries are in any one unit.
    """
    import numpy as np

    keys = np.array(sorted(postings), dtype=np.int64)
    if not len(keys) or not forwards:
        return _no_edges()
    lists = [postings[k] for k in keys.tolist()]
    sizes = np.array([len(p) for p in lists])
    held = np.concatenate(lists)
    at_key = np.repeat(np.arange(len(keys)), sizes)
    mention, subject = held["mention"].astype(np.float64), held["subject"].astype(np.float64)
    df = np.bincount(at_key, weights=(mention > 0), minlength=len(keys))
    subjects = np.bincount(at_key, weights=(subject > 0), minlength=len(keys))
    weight = np.where(df <= max_df, idf(memories, df), 0.0)
    starts = np.concatenate(([0], np.cumsum(sizes)))

    ords = np.array(sorted(forwards), dtype=np.int64)
    entries = np.concatenate([forwards[o] for o in ords.tolist()])
    owner = np.repeat(np.arange(len(ords)), [len(forwards[o]) for o in ords.tolist()])
    slot = np.searchsorted(keys, entries["key"])
    found = (slot < len(keys)) & (keys[np.minimum(slot, len(keys) - 1)] == entries["key"])
    entries, owner, slot = entries[found], owner[found], slot[found]
    load = entries["mention"].astype(np.float64) * weight[slot]

    channels = []
    others = subjects[slot] - (entries["subject"] > 0)
    kept = (load > 0) & (others > 0)
    channels.append((kept, about, subject, load))
    shared = (load > 0) & (df[slot] >= 2)
    channels.append((_heaviest(owner, load, entries["key"], shared, fan), co_mention, mention, load))

    pieces = []
    for kept, strength, value, load in channels:
        if strength <= 0 or not kept.any():
            continue
        which = np.flatnonzero(kept)
        out = load[which] / np.bincount(owner[which], weights=load[which], minlength=len(ords))[owner[which]]
        totals = np.bincount(at_key, weights=value, minlength=len(keys))
        counts = sizes[slot[which]]
        entry = np.repeat(np.arange(len(which)), counts)
        offset = np.arange(len(entry)) - np.repeat(np.cumsum(counts) - counts, counts)
        held_at = starts[slot[which]][entry] + offset
        share = value[held_at] / np.maximum(totals[slot[which]][entry], 1e-300)
        alive = share > 0
        pieces.append(
            Edges(
                ords[owner[which]][entry][alive],
                keys[slot[which]][entry][alive],
                held["ord"][held_at].astype(np.int64)[alive],
                (strength * out[entry] * share)[alive],
            )
        )
    if not pieces:
        return _no_edges()
    return Edges(*(np.concatenate([getattr(p, name) for p in pieces]) for name in ("source", "key", "target", "weight")))


def _no_edges() -> Edges:
    import numpy as np

    none = np.zeros(0, dtype=np.int64)
    return Edges(none, none, none, np.zeros(0))


def _heaviest(
    owner: NDArray[Any], load: NDArray[Any], keys: NDArray[Any], allowed: NDArray[np.bool_], fan: int
) -> NDArray[np.bool_]:
    """Mark, of each owner's allowed entries, the ``fan`` of largest load (ties: smaller key)."""
    import numpy as np

    which = np.flatnonzero(allowed)
    order = which[np.lexsort((keys[which], -load[which], owner[which]))]
    kept = np.zeros(len(load), dtype=bool)
    if len(order):
        first = np.r_[True, owner[order][1:] != owner[order][:-1]]
        begin = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
        kept[order[np.arange(len(order)) - begin < fan]] = True
    return kept


def hop(
    mass: Mapping[int, float], along: Edges, neighbours: Mapping[int, tuple[int | None, int | None]], neighbour: float
) -> tuple[Mass, Edges]:
    """Return where ``mass`` goes, and the edges with the mass each one carried (neighbours have key 0)."""
    import numpy as np

    if len(along.source):
        carriers = np.array(sorted(mass), dtype=np.int64)
        values = np.array([mass[o] for o in carriers.tolist()])
        carried = along.weight * values[np.searchsorted(carriers, along.source)]
    else:
        carried = along.weight
    side = [
        (ord, other, neighbour * mass[ord])
        for ord in sorted(mass)
        for other in neighbours.get(ord, ())
        if other is not None and neighbour > 0
    ]
    source = np.concatenate([along.source, np.array([s for s, _, _ in side], dtype=np.int64)])
    key = np.concatenate([along.key, np.zeros(len(side), dtype=np.int64)])
    target = np.concatenate([along.target, np.array([t for _, t, _ in side], dtype=np.int64)])
    carried = np.concatenate([carried, np.array([m for _, _, m in side])])
    where, slot = np.unique(target, return_inverse=True)
    total = np.bincount(slot, weights=carried, minlength=len(where))
    arrived = dict(zip(where.tolist(), total.tolist(), strict=True))
    return arrived, Edges(source, key, target, carried)


def gate(mass: Mapping[int, float], similarity: Mapping[int, float], strength: float) -> Mass:
    """Return mass × exp(strength × similarity to the question), rescaled to its old sum; no similarity counts as 0."""
    import math

    gated = {o: m * math.exp(strength * similarity.get(o, 0.0)) for o, m in mass.items()}
    before, after = math.fsum(mass.values()), math.fsum(gated.values())
    return {o: m * before / after for o, m in gated.items()} if after > 0 else gated


def strongest(mass: Mapping[int, float], n: int, names: Any = None) -> list[int]:
    """Return the ``n`` ords of largest mass above 0, ties in the order of ``names`` (a function from ords to sort keys).

    ``names`` is called only when a tie straddles the cut, with the ords that tie there.
    """
    ranked = sorted(((-float(f"{m:.{_DIGITS}g}"), o) for o, m in mass.items() if m > 0))
    if len(ranked) > n and names is not None and ranked[n - 1][0] == ranked[n][0]:
        cut = ranked[n][0]
        tied = [o for m, o in ranked if m == cut]
        keys = names(tied)
        ahead = [o for m, o in ranked if m < cut]
        return ahead + sorted(tied, key=lambda o: keys.get(o, (o,)))[: n - len(ahead)]
    return [o for _, o in ranked[:n]]


def personalised_pagerank(
    restart: Mapping[int, float], along: Edges, *, damping: float = 0.5, tolerance: float = 1e-10, rounds: int = 100
) -> Mass:
    """Return the stationary mass of a walk that restarts with probability 1 - ``damping`` (Haveliwala 2002).

    ``along`` are the edges of a bounded neighbourhood; out-weights are normalised a source, and a memory without
    edges gives its mass back to the restart, as networkx's ``pagerank`` does.
    """
    import numpy as np

    nodes = np.unique(np.concatenate([along.source, along.target, np.array(sorted(restart), dtype=np.int64)]))
    start = np.array([restart.get(o, 0.0) for o in nodes.tolist()])
    if start.sum() <= 0:
        return {}
    start = start / start.sum()
    source, target = np.searchsorted(nodes, along.source), np.searchsorted(nodes, along.target)
    out = np.bincount(source, weights=along.weight, minlength=len(nodes))
    share = along.weight / out[source] if len(source) else along.weight
    mass = start
    for _ in range(rounds):
        moved = np.bincount(target, weights=mass[source] * share, minlength=len(nodes)) if len(source) else 0 * start
        moved = damping * (moved + mass[out == 0].sum() * start) + (1 - damping) * start
        done = np.abs(moved - mass).sum() < tolerance
        mass = moved
        if done:
            break
    return dict(zip(nodes.tolist(), mass.tolist(), strict=True))
