"""Walk over memories and concepts in bounded work: pure arithmetic on the edges of a few memories.

A restart puts mass on memories that the question names or other legs found. Each hop carries the mass of the heaviest
memories along these channels, each normalised by itself:

- *about*: from a memory to the memories whose subject it mentions;
- *co-mention*: to the memories that mention the same rare concepts;
- *neighbour*: to the previous and next memory of the session;
- *link*: to linked memories, as to neighbours;
- *related* (off by default): over a relationship of a mentioned concept, to the memories that mention its other end.

It is like personalised PageRank (Haveliwala 2002), with restart and decay, but bounded. ``personalised_pagerank`` is
the pure form over the same edges. Nothing here does I/O; arrays in, arrays out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from semmem.model.arrays import chosen, held, new_runs, sums
from semmem.model.types import LINK_TYPES, LinkType

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from semmem.model.exchange import Forwards, Postings

__all__ = [
    "Edges",
    "Mass",
    "among",
    "combine",
    "edges",
    "gate",
    "gather",
    "hop",
    "idf",
    "link_edges",
    "link_of",
    "personalised_pagerank",
    "rarity",
    "related_edges",
    "starting_at",
    "strongest",
]

_DIGITS = 12
"""Masses are compared by this many significant digits, so that the order of summation decides nothing."""


@dataclass(frozen=True, slots=True)
class Mass:
    """The mass of each memory: ``row_ids`` ascending and distinct, ``values`` 0 or more."""

    row_ids: NDArray[np.int64]
    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.row_ids)

    def as_dict(self) -> dict[int, float]:
        """Return row id -> mass."""
        return dict(zip(self.row_ids.tolist(), self.values.tolist(), strict=True))

    def at(self, row_ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the mass of ``row_ids``, all of which must be in ``self.row_ids``."""
        import numpy as np

        masses: NDArray[np.float64] = self.values[np.searchsorted(self.row_ids, row_ids)]
        return masses

    def scaled(self, factor: float) -> Mass:
        """Return all masses multiplied by ``factor``."""
        return Mass(self.row_ids, self.values * factor)


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges from a few memories through concepts: parallel arrays, one element per edge source → key → target.

    ``weight`` is the share of the source's mass that the edge carries; the weights of one source sum at most to the sum
    of the channels. Neighbours in a session have key 0, links one of the keys of ``link_of``.
    """

    source: NDArray[np.int64]
    key: NDArray[np.int64]
    target: NDArray[np.int64]
    weight: NDArray[np.float64]


def gather(row_ids: Any, values: Any) -> Mass:
    """Sum ``values`` by row id."""
    import numpy as np

    where, summed, _ = sums(np.asarray(row_ids, dtype=np.int64), np.asarray(values, dtype=np.float64))
    return Mass(where, summed)


def idf(memories: int, df: NDArray[Any] | int) -> Any:
    """Return ln(1 + N/df) / ln(1 + N): 1 for a concept of one memory, near 0 for one that all mention; 0 for df 0."""
    import numpy as np

    counts = np.asarray(df, dtype=np.float64)
    if memories < 1:
        return np.zeros_like(counts)
    return np.where(counts > 0, np.log1p(memories / np.maximum(counts, 1)) / np.log1p(memories), 0.0)


@lru_cache(maxsize=4_096)
def rarity(memories: int, df: int) -> float:
    """Return ``idf`` for one concept; a question has a dozen of them, and one number takes as long as many."""
    return float(idf(memories, df))


def combine(parts: Sequence[tuple[Mass, float, float]]) -> tuple[Mass, Mass]:
    """Return the restart and its part of the score, from parts (mass, share, factor in the score).

    Each part is scaled to its share, parts without mass are left out, and the whole sums to 1.
    """
    import numpy as np

    present = [(m, share, factor) for m, share, factor in parts if share > 0 and len(m) and m.values.sum() > 0]
    if not present:
        nothing = Mass(np.zeros(0, dtype=np.int64), np.zeros(0))
        return nothing, nothing
    shares = sum(share for _, share, _ in present)
    row_ids = np.concatenate([m.row_ids for m, _, _ in present])
    pieces = [m.values / m.values.sum() * (share / shares) for m, share, _ in present]
    factors = np.repeat([factor for _, _, factor in present], [len(p) for p in pieces])
    values = np.concatenate(pieces)
    return gather(row_ids, values), gather(row_ids, values * factors)


def among(forwards: Forwards, postings: Postings) -> Forwards:
    """Return ``forwards`` with the keys of ``postings`` alone: a tenth of them, and no edge goes over another one."""
    import numpy as np

    keys, entry_keys = postings.keys, forwards.entries["key"]
    if not len(keys):
        return replace(forwards, sizes=np.zeros_like(forwards.sizes), entries=forwards.entries[:0])
    in_postings = held(keys, entry_keys)
    counted = np.concatenate([[0], np.cumsum(in_postings)])
    ends = np.cumsum(forwards.sizes)
    sizes = counted[ends] - counted[ends - forwards.sizes]
    return replace(forwards, sizes=sizes, entries=chosen(forwards.entries, in_postings))


def edges(forwards: Forwards, postings: Postings, *, about: float, co_mention: float, fan: int, max_df: int) -> Edges:
    """Return the about and co-mention edges of the memories in ``forwards``.

    ``postings`` are those of the keys they mention; a key with more than ``max_df`` mentions gets no edges.
    """
    import numpy as np

    keys, sizes, entries = postings.keys, postings.sizes, postings.entries
    if not len(keys) or not len(forwards.row_ids):
        none = np.zeros(0, dtype=np.int64)
        return Edges(none, none, none, np.zeros(0))
    at_key = np.arange(len(keys)).repeat(sizes)
    mention, subject = entries["mention"].astype(np.float64), entries["subject"].astype(np.float64)
    df = np.bincount(at_key, weights=mention > 0, minlength=len(keys))
    subjects = np.bincount(at_key, weights=subject > 0, minlength=len(keys))
    known_by = np.where(df > 0, df, subjects)  # a name that its memory bears without mentioning it
    weight = np.where(df <= max_df, idf(postings.memories, known_by), 0.0)
    starts = sizes.cumsum() - sizes

    entry_keys = forwards.entries["key"]
    owner = np.arange(len(forwards.row_ids)).repeat(forwards.sizes)
    slot = np.minimum(keys.searchsorted(entry_keys), len(keys) - 1)
    load = np.where(keys[slot] == entry_keys, forwards.entries["mention"] * weight[slot], 0.0)

    others = subjects[slot] - (forwards.entries["subject"] > 0) > 0
    shared = _heaviest(owner, load, entry_keys, (load > 0) & (df[slot] >= 2), fan)
    pieces = []
    for mask, strength, value in (((load > 0) & others, about, subject), (shared, co_mention, mention)):
        (which,) = mask.nonzero()
        if strength <= 0 or not len(which):
            continue
        out = (
            load[which] / np.bincount(owner[which], weights=load[which], minlength=len(forwards.row_ids))[owner[which]]
        )
        total = np.bincount(at_key, weights=value, minlength=len(keys))[slot[which]]
        counts = sizes[slot[which]]
        entry = np.arange(len(which)).repeat(counts)
        place = np.arange(len(entry)) + (starts[slot[which]] - (counts.cumsum() - counts))[entry]
        share = strength * (out / np.maximum(total, 1e-300))[entry] * value[place]
        alive = share > 0
        entry, place = entry[alive], place[alive]
        pieces.append(
            (forwards.row_ids[owner[which][entry]], keys[slot[which][entry]], entries["ord"][place], share[alive])
        )
    if not pieces:
        none = np.zeros(0, dtype=np.int64)
        return Edges(none, none, none, np.zeros(0))
    source, key, target, share = (np.concatenate(column) for column in zip(*pieces, strict=True))
    return Edges(source, key, target.astype(np.int64), share)


def related_edges(
    forwards: Forwards, postings: Postings, pairs: Sequence[tuple[int, int]], *, related: float, max_df: int
) -> Edges:
    """Return the edges from the memories in ``forwards`` over relationships to memories that mention the other concept.

    ``pairs`` are (concept, related concept), ``postings`` those of both. The mass of a memory is split among its
    related concepts by a·w, then evenly among the other ends of each, and there by a; each step sums to 1.
    """
    import numpy as np

    entries = dict(postings.items())
    mentioned = {key: rows[rows["mention"] > 0] for key, rows in entries.items()}
    usable = {key: rows for key, rows in mentioned.items() if 0 < len(rows) <= max_df}
    tied: dict[int, list[int]] = {}
    for one, other in pairs:
        if one in usable and other in usable and one != other:
            tied.setdefault(one, []).append(other)
    source, keys, target, weight = [], [], [], []
    ends = np.cumsum(forwards.sizes)
    for row_id, start, end in zip(
        forwards.row_ids.tolist(), (ends - forwards.sizes).tolist(), ends.tolist(), strict=True
    ):
        loads = {
            key: mention * rarity(postings.memories, len(usable[key]))
            for key, mention in forwards.entries[["key", "mention"]][start:end].tolist()
            if key in tied and mention > 0
        }
        whole = sum(loads.values())
        for one, load in loads.items():
            for other in tied[one] if whole > 0 else ():
                rows = usable[other]
                share = related * load / whole / len(tied[one]) / float(rows["mention"].sum())
                source += [row_id] * len(rows)
                keys += [other] * len(rows)
                target += rows["ord"].tolist()
                weight += (rows["mention"] * share).tolist()
    return Edges(
        np.array(source, dtype=np.int64),
        np.array(keys, dtype=np.int64),
        np.array(target, dtype=np.int64),
        np.array(weight, dtype=np.float64),
    )


_KEYS: Mapping[LinkType, int] = {type: number for number, type in enumerate(LINK_TYPES, 1)}
"""The keys of edges that are links; no hash of a concept is this small."""


def link_of(key: int) -> LinkType | None:
    """Return the type of link for the key of an edge; None for a concept or a neighbour."""
    return LINK_TYPES[key - 1] if 0 < key <= len(LINK_TYPES) else None


def link_edges(ties: Sequence[tuple[int, int, LinkType]], strength: float) -> Edges:
    """Return the edges over links, from the first memory of each tie to the other.

    Each link weighs ``strength``, like a neighbour; all links of a memory together weigh at most as much as two
    neighbours.
    """
    import numpy as np

    source = np.array([one for one, _, _ in ties], dtype=np.int64)
    _, slot, counts = np.unique(source, return_inverse=True, return_counts=True)
    return Edges(
        source,
        np.array([_KEYS[type] for *_, type in ties], dtype=np.int64),
        np.array([other for _, other, _ in ties], dtype=np.int64),
        strength * np.minimum(1.0, 2.0 / counts[slot]),
    )


def starting_at(row_ids: NDArray[np.int64], pieces: Sequence[Edges]) -> Edges:
    """Return the edges of ``pieces`` that start at one of ``row_ids``, which are ascending."""
    import numpy as np

    if len(pieces) == 1:
        (whole,) = pieces
    else:
        columns = ("source", "key", "target", "weight")
        whole = Edges(*(np.concatenate([getattr(p, name) for p in pieces]) for name in columns))
    mask = held(row_ids, whole.source)
    return whole if mask.all() else Edges(whole.source[mask], whole.key[mask], whole.target[mask], whole.weight[mask])


def _heaviest(
    owner: NDArray[Any], load: NDArray[Any], keys: NDArray[Any], allowed: NDArray[np.bool_], fan: int
) -> NDArray[np.bool_]:
    """Mark the ``fan`` allowed entries with the largest load of each owner; ties go to the smaller key."""
    import numpy as np

    (which,) = allowed.nonzero()
    order = which[np.lexsort((keys[which], -load[which], owner[which]))]
    mask = np.zeros(len(load), dtype=bool)
    if len(order):
        first = new_runs(owner[order])
        begin = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
        mask[order[np.arange(len(order)) - begin < fan]] = True
    return mask


def hop(mass: Mass, along: Edges, neighbours: Mapping[int, Sequence[tuple[int, float]]]) -> tuple[Mass, Edges]:
    """Move ``mass`` along one hop; return the new mass, and the edges with the mass that each carried.

    All sources of ``along`` have mass; ``neighbours`` maps a memory to (row id, weight) of its neighbours in the
    session.
    """
    import numpy as np

    carried = along.weight * mass.at(along.source) if len(along.source) else along.weight
    side = [
        (row_id, other, weight * value)
        for row_id, value in zip(mass.row_ids.tolist(), mass.values.tolist(), strict=True)
        for other, weight in neighbours.get(row_id, ())
    ]
    if not side:
        return gather(along.target, carried), replace(along, weight=carried)
    moved = Edges(
        np.concatenate([along.source, np.array([s for s, _, _ in side], dtype=np.int64)]),
        np.concatenate([along.key, np.zeros(len(side), dtype=np.int64)]),
        np.concatenate([along.target, np.array([t for _, t, _ in side], dtype=np.int64)]),
        np.concatenate([carried, np.array([m for _, _, m in side], dtype=np.float64)]),
    )
    return gather(moved.target, moved.weight), moved


def gate(mass: Mass, similarity: Mapping[int, float], strength: float) -> Mass:
    """Return mass × exp(strength × similarity to the question), rescaled to its old sum; no similarity counts as 0."""
    import numpy as np

    near = np.array([similarity.get(o, 0.0) for o in mass.row_ids.tolist()])
    gated = mass.values * np.exp(strength * near)
    total = gated.sum()
    return Mass(mass.row_ids, gated * (mass.values.sum() / total)) if total > 0 else mass


def strongest(
    mass: Mass, n: int, names: Callable[[list[int]], Mapping[int, tuple[Any, ...]]] | None = None
) -> NDArray[np.int64]:
    """Return the ``n`` row ids with the largest mass above 0, best first; ties by row id.

    With ``names`` (from row ids to sort keys) the order of insertion decides nothing: ties at the cut are all returned,
    up to half as many again; only of a larger tie the first by their sort keys are taken.
    """
    import numpy as np

    alive = mass.values > 0
    row_ids, values = mass.row_ids[alive], _rounded(mass.values[alive])
    order = np.lexsort((row_ids, -values))
    if len(order) <= n or names is None or values[order[n - 1]] != values[order[n]]:
        return row_ids[order[:n]]
    cut = values[order[n]]
    if (reached := int((values >= cut).sum())) <= n + n // 2:
        return row_ids[order[:reached]]
    ahead, tied = row_ids[order][values[order] > cut], row_ids[values == cut].tolist()
    keys = names(tied)
    tied.sort(key=lambda o: keys.get(o, ()))
    return np.concatenate([ahead, np.array(tied[: n - len(ahead)], dtype=np.int64)])


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    unit = 10.0 ** (_DIGITS - 1 - np.floor(np.log10(np.maximum(values, 1e-300))))
    return np.round(values * unit) / unit


def personalised_pagerank(
    restart: Mass, along: Edges, *, damping: float = 0.5, tolerance: float = 1e-10, rounds: int = 100
) -> Mass:
    """Return the stationary mass of a walk that restarts with probability 1 - ``damping`` (Haveliwala 2002).

    ``along`` are the edges of a bounded neighbourhood. Weights are normalised for each source. A memory without edges,
    or with edges of weight 0 only, gives its mass back to the restart, as in networkx's ``pagerank``.
    """
    import numpy as np

    nodes = np.unique(np.concatenate([along.source, along.target, restart.row_ids]))
    passes = along.weight > 0
    along = Edges(along.source[passes], along.key[passes], along.target[passes], along.weight[passes])
    start = np.zeros(len(nodes))
    start[np.searchsorted(nodes, restart.row_ids)] = restart.values
    if start.sum() <= 0:
        return restart
    start = start / start.sum()
    source, target = np.searchsorted(nodes, along.source), np.searchsorted(nodes, along.target)
    out = np.bincount(source, weights=along.weight, minlength=len(nodes))
    share = along.weight / out[source]
    mass = start
    for _ in range(rounds):
        arrived = np.bincount(target, weights=mass[source] * share, minlength=len(nodes))
        moved = damping * (arrived + mass[out == 0].sum() * start) + (1 - damping) * start
        is_stable = np.abs(moved - mass).sum() < tolerance
        mass = moved
        if is_stable:
            break
    return Mass(nodes, mass)
