"""What the legs read from PostgreSQL: postings, forwards, vectors, neighbours, authors; never a text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semmem.model.encoded import maker
from semmem.model.exchange import BEHIND, LAST, MOST_TURNS, Forwards, Kind, Kinds, Postings, Ranking, Scope, Turn
from semmem.stores.packed_postings import FORWARD, join_groups, pending_keys, unpack_forwards, unpack_postings
from semmem.stores.postgres import vectors
from semmem.stores.postgres.connection import Pooled, agree, among
from semmem.stores.postgres.encoding import Vector

__all__ = ["LegReads", "kinds_asked", "known_of"]

_NO_LIMIT = 2**62


def kinds_asked(namespaces: Sequence[str], keys: Collection[str]) -> dict[str, Any]:
    """Return the parameters of the statement ``memory_kinds``."""
    return {"namespaces": list(namespaces), "keys": list(keys), "last": LAST, "behind": BEHIND}


def _asked(namespaces: Sequence[str], keys: Collection[int], max_df: int | None) -> dict[str, Any]:
    """Return the parameters of the statement ``postings``."""
    wanted = np.unique(np.fromiter(keys, np.int64, len(keys)))
    return {"namespaces": list(namespaces), "keys": wanted, "max_df": _NO_LIMIT if max_df is None else max_df}


def _sorted(
    rows: Sequence[Any],
) -> tuple[dict[str, tuple[int, int]], dict[str, list[tuple[int, int, bytes]]], dict[str, tuple[bytes, bytes]]]:
    """Return by namespace the totals, the pending memories and the packed postings of the statement ``postings``."""
    totals: dict[str, tuple[int, int]] = {}
    pending: dict[str, list[tuple[int, int, bytes]]] = defaultdict(list)
    folded: dict[str, tuple[bytes, bytes]] = {}
    for what, namespace, n, length, heads, raw in rows:
        if what == 0:
            totals[namespace] = (n, length)
        elif what == 1:
            pending[namespace].append((n, length, raw))
        else:
            folded[namespace] = (heads, raw)
    for waiting in pending.values():
        waiting.sort()
    return totals, pending, folded


def known_of(rows: Sequence[tuple[int | None, bytes | None]]) -> set[int]:
    """Return the keys of the subjects, from the rows of the statement ``known_subjects``."""
    known = {key for key, _ in rows if key is not None}
    for key, raw in rows:
        if key is None and raw is not None:
            entries = np.frombuffer(raw, dtype=FORWARD)
            known.update(entries["key"][entries["subject"] > 0].tolist())
    return known


def _labels(rows: Sequence[tuple[bytes, Sequence[str]]], keys: Collection[int]) -> dict[int, str]:
    """Return what people read for ``keys``, from the rows of the statement ``names_pending``."""
    found: dict[int, str] = {}
    for raw, names in rows:
        pairs = zip(np.frombuffer(raw, dtype=FORWARD)["key"].tolist(), names, strict=True)
        found |= {key: name for key, name in pairs if key in keys}
    return found


def _turns(rows: Sequence[Any], dimensions: int) -> tuple[Sequence[Turn], NDArray[np.int64], NDArray[np.float32]]:
    """Return the turns of rows that end in a vector or NULL, the ords that have one, ascending, and the vectors."""
    held = sorted((row[1], row[-1]) for row in rows if row[-1] is not None)
    packed = b"".join(raw[4:] for _, raw in held)  # each begins with its length
    found = np.frombuffer(packed, dtype=">f4").reshape(len(held), dimensions).astype(np.float32)
    return [Turn(*row[:-1]) for row in rows], np.array([ord for ord, _ in held], dtype=np.int64), found


class LegReads(Pooled):
    """The part of a store that the legs ask, a few round trips a question."""

    def postings(
        self,
        namespaces: Sequence[str],
        keys: Collection[int],
        *,
        max_df: int | None = None,
        shared: bool = False,
        pending: Collection[int] = (),
    ) -> Mapping[str, Postings]:
        """Return the postings of ``keys`` in each namespace, pending memories included.

        ``shared`` leaves out keys that a single memory has; where they are many, that is most of the work. ``pending``
        are the keys of pending memories, as ``surroundings`` has them: without them those are asked for again.
        """
        if not shared:
            return self.postings_of(namespaces, (keys, max_df))[0]
        asked = _asked(namespaces, keys, max_df)
        given = np.intersect1d(np.fromiter(pending, np.int64, len(pending)), asked["keys"])
        totals, waiting, folded = _sorted(self._rows("postings_shared", {**asked, "pending": given}))
        found = {}
        for namespace in namespaces:
            met = pending_keys(waiting[namespace], asked["keys"])
            packed = folded.get(namespace, (b"", b""))
            if np.array_equal(met, given):
                groups = unpack_postings(*packed, waiting[namespace], met, asked["max_df"])
            elif len(given):  # somebody has written, or folded, since they were read
                return self.postings(namespaces, keys, max_df=max_df, shared=True)
            else:  # a key of one folded memory and one pending one is shared after all
                groups = unpack_postings(*packed, [], met, asked["max_df"])
                whole = self.postings([namespace], met, max_df=max_df)[namespace]
                groups = join_groups(groups, (whole.keys, whole.sizes, whole.entries), met)
            found[namespace] = Postings(*totals.get(namespace, (0, 0)), *groups)
        return found

    def postings_of(
        self, namespaces: Sequence[str], *asked: tuple[Collection[int], int | None]
    ) -> Sequence[Mapping[str, Postings]]:
        """Return what ``postings`` does for each (keys, max_df), in one round trip."""
        each = [_asked(namespaces, keys, max_df) for keys, max_df in asked]
        found = []
        for rows, parameters in zip(self._together(*(("postings", one) for one in each)), each, strict=True):
            totals, waiting, folded = _sorted(rows)
            of = {
                n: unpack_postings(*folded.get(n, (b"", b"")), waiting[n], parameters["keys"], parameters["max_df"])
                for n in namespaces
            }
            found.append({n: Postings(*totals.get(n, (0, 0)), *groups) for n, groups in of.items()})
        return found

    def surroundings(
        self, namespace: str, ords: Sequence[int], *, neighbours: bool
    ) -> tuple[Forwards, Sequence[tuple[int, int, bool]], NDArray[np.int64]]:
        """Return what each memory holds, its neighbours if asked for, and the keys of pending memories."""
        which = among([namespace], ords)
        asked: dict[str, Any] = {"forwards": which, "pending_entries": {"namespaces": [namespace]}}
        if neighbours:
            asked["memory_neighbours"] = which
        rows = dict(zip(asked, self._together(*asked.items()), strict=True))
        heads, raw = rows["forwards"][0]
        held = np.frombuffer(b"".join(raw for (raw,) in rows["pending_entries"]), dtype=FORWARD)
        forwards = Forwards(*unpack_forwards(heads or b"", raw or b""))
        return forwards, rows.get("memory_neighbours", ()), np.unique(held["key"])

    def known_subjects(self, keys: Mapping[str, Collection[int]]) -> Mapping[str, set[int]]:
        """Return, for each namespace, which of the name keys some memory has as its subject."""
        known: dict[str, set[int]] = {}
        for namespace, wanted in keys.items():
            rows = self._rows("known_subjects", {"namespace": namespace, "keys": list(wanted)}) if wanted else []
            known[namespace] = known_of(rows) & set(wanted)
        return known

    def forwards(self, namespaces: Sequence[str], ords: Sequence[int]) -> Forwards:
        """Return what each memory holds."""
        heads, raw = self._rows("forwards", among(namespaces, ords))[0]
        return Forwards(*unpack_forwards(heads or b"", raw or b""))

    def subject_names(self, namespace: str, ords: Sequence[int]) -> Sequence[tuple[int, int, int, str]]:
        """Return (ord, key, weight in hundredths, what people read for it) of the names that memories are about."""
        which = {"namespace": namespace, "ords": among((), ords)["ords"], "kind": int(Kind.NAME)}
        rows, pending = self._together(("subject_names", which), ("names_pending", {"namespaces": [namespace]}))
        missing = {key for _, key, _, name in rows if name is None}
        labels = _labels(pending, missing) if missing else {}
        return [(ord, key, weight, labels.get(key, "") if name is None else name) for ord, key, weight, name in rows]

    def names(self, namespaces: Sequence[str], keys: Collection[int]) -> Mapping[int, str]:
        """Return what people read for each key."""
        found = dict(self._rows("names", {"namespaces": list(namespaces), "keys": list(keys)}))
        missing = set(keys) - set(found)
        if missing:
            found |= _labels(self._rows("names_pending", {"namespaces": list(namespaces)}), missing)
        return found

    def nearest(self, scope: Scope, vector: NDArray[np.float32], depth: int) -> Ranking:
        """Return the ``depth`` memories of highest cosine within scope; see semmem.stores.postgres.vectors.

        Raises EmbedderReplaced when the vector's maker does not fill the store any more.
        """
        rows = self._run(lambda c: vectors.nearest(c, scope, vector, depth))
        self._compare(vector, bool(rows))
        return Ranking(tuple(o for o, _ in rows), tuple(s for _, s in rows), len(rows))

    def similarities(
        self, namespaces: Sequence[str], ords: Sequence[int], vector: NDArray[np.float32]
    ) -> Mapping[int, float]:
        """Return the inner product of each memory's vector with ``vector``; memories without one are left out."""
        asked = {**among(namespaces, ords), "vector": Vector(vector), "embedder": vectors.made_by(vector)}
        found = dict(self._rows("similarities", asked))
        self._compare(vector, bool(found))
        return found

    def _compare(self, vector: NDArray[np.float32] | None, found: bool) -> None:
        """Raise EmbedderReplaced where nothing was found because the vector is of another embedder than the store's."""
        if not found and (by := maker(vector)) is not None:
            rows = self._rows("meta_get", {"key": "embedder"})
            agree(rows[0][0] if rows else by, by)

    def neighbours(self, namespaces: Sequence[str], ords: Sequence[int]) -> Sequence[tuple[int, int, bool]]:
        """Return (ord, its previous or next memory in the session, whether both have the same author)."""
        return self._rows("memory_neighbours", among(namespaces, ords))

    def kinds(self, namespaces: Sequence[str], keys: Collection[str]) -> Mapping[str, Kinds]:
        """Return what each namespace has: sessions, authors, and those of them named in ``keys``."""
        return Kinds.of(namespaces, self._rows("memory_kinds", kinds_asked(namespaces, keys)))

    def written_by(self, namespaces: Sequence[str], ords: Sequence[int], author: str) -> NDArray[np.int64]:
        """Return which of ``ords`` are by ``author``, ascending."""
        rows = self._rows("memory_written_by", {**among(namespaces, ords), "author": author})
        return np.array([o for (o,) in rows], dtype=np.int64)

    def turns(self, namespaces: Sequence[str], ords: Sequence[int]) -> Sequence[Turn]:
        """Return the sessions that hold ``ords``, each in its order; more than MOST_TURNS when they are not whole."""
        return [Turn(*row) for row in self._rows("memory_turns", {**among(namespaces, ords), "limit": MOST_TURNS + 1})]

    def turns_with_vectors(
        self, namespaces: Sequence[str], ords: Sequence[int], like: NDArray[np.float32]
    ) -> tuple[Sequence[Turn], NDArray[np.int64], NDArray[np.float32]]:
        """Return what ``turns`` does, and their ``vectors``; none of these where the sessions are not whole."""
        asked = {**among(namespaces, ords), "limit": MOST_TURNS + 1, "embedder": vectors.made_by(like)}
        turns, held, found = _turns(self._rows("memory_turns_vectors", asked), len(like))
        if 0 < len(turns) <= MOST_TURNS:
            self._compare(like, bool(len(held)))
        return turns, held, found

    def nearest_with_turns(
        self, scope: Scope, vector: NDArray[np.float32], depth: int
    ) -> tuple[Ranking, Sequence[Turn], NDArray[np.int64], NDArray[np.float32]]:
        """Return what ``nearest`` does, and ``turns_with_vectors`` of these; together where no index is asked."""
        if scope.allowed is not None or scope.excluded is not None or scope.size >= vectors.INDEX_FROM:
            ranking = self.nearest(scope, vector, depth)
            return ranking, *self.turns_with_vectors(scope.namespaces, ranking.ords, vector)
        asked = {
            "namespaces": list(scope.namespaces),
            "vector": Vector(vector),
            "depth": depth,
            "embedder": vectors.made_by(vector),
            "limit": MOST_TURNS + 1,
        }
        rows = self._rows("nearest_turns", asked)
        near = [(row[1], row[8]) for row in rows if row[0] is None]
        self._compare(vector, bool(near))
        ranking = Ranking(tuple(ord for ord, _ in near), tuple(cosine for _, cosine in near), len(near))
        return ranking, *_turns([row[:-1] for row in rows if row[0] is not None], len(vector))

    def vectors(
        self, namespaces: Sequence[str], ords: Sequence[int], like: NDArray[np.float32] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the ords that have a vector, ascending, and their vectors, one a row, to be compared with ``like``."""
        asked = {**among(namespaces, ords), "embedder": None if like is None else vectors.made_by(like)}
        heads, raw = self._rows("embedding_vectors", asked)[0]
        if heads is None:
            self._compare(like, False)
            return np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32)
        found = np.frombuffer(heads, dtype=">i8").astype(np.int64)
        rows = np.frombuffer(raw, dtype=np.uint8).reshape(len(found), -1)[:, 4:]  # each begins with its length
        return found, np.frombuffer(rows.tobytes(), dtype=">f4").reshape(len(found), -1).astype(np.float32)
