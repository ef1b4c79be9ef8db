"""What the lexical leg reads from SQLite: postings, and who said what around a memory.

**Who scores.** FTS5 finds which memories have a term and how often: its inverted lists are read through fts5vocab. BM25
itself is ``semmem.legs.lexical``'s, the same function as over PostgreSQL, and not FTS5's bm25(): that one has k1 = 1.2
and b = .75 built in where a recipe chooses both (b is .5), takes the number of memories, document frequencies and the
average length from the whole file where a namespace is a wall, and holds the idf of a common word at a millionth where
Lucene's form stays positive. So quoted phrases, "auto" and "all", ties at the depth, the rules of conversation and the
score of a memory are one piece of code, and one order, in both stores.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from semmem.model.exchange import BEHIND, LAST, MOST_TURNS, Kinds, Postings, Turn
from semmem.stores.sql_files import statements
from semmem.stores.sqlite_pool import Filed
from semmem.stores.sqlite_write import at_microsecond, token

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LexicalReads"]

_SQL = statements("sqlite")
_DAY = 86_400_000_000
_LARGEST = 65_535


class LexicalReads(Filed):
    """The part of a store that the lexical leg asks, a few statements a question."""

    def postings(
        self, namespaces: Sequence[str], keys: Collection[int], *, max_df: int | None = None, shared: bool = False
    ) -> Mapping[str, Postings]:
        """Return the postings of ``keys`` in each namespace; of terms alone, with no weight as mention or subject."""
        wanted = sorted(set(keys))

        def read(connection: sqlite3.Connection) -> dict[str, tuple[int, int, list[tuple[int, str, str]]]]:
            tallies = connection.execute(_SQL["tally_of"], {"namespaces": json.dumps(list(namespaces))}).fetchall()
            found = {}
            for namespace, number, memories, length in tallies:
                matches = []
                for key in wanted:
                    ords, lengths = connection.execute(
                        _SQL["lexical_matches"], {"token": token(number, key)}
                    ).fetchone()
                    if ords is not None:
                        matches.append((key, ords, lengths))
                found[namespace] = (memories, length, matches)
            return found

        held = self._reading(read)
        return {n: _postings(*held.get(n, (0, 0, [])), max_df, shared) for n in namespaces}

    def texts(self, namespaces: Sequence[str], ords: Sequence[int]) -> Mapping[int, str]:
        """Return title and text, for phrase checks."""
        return dict(self._rows("memory_texts", _among(namespaces, ords)))

    def neighbours(self, namespaces: Sequence[str], ords: Sequence[int]) -> Sequence[tuple[int, int, bool]]:
        """Return (ord, its previous or next memory in the session, whether both have the same author)."""
        return [(o, near, bool(same)) for o, near, same in self._rows("memory_neighbours", _among(namespaces, ords))]

    def kinds(self, namespaces: Sequence[str], keys: Collection[str]) -> Mapping[str, Kinds]:
        """Return what each namespace has: sessions, authors, and those of them named in ``keys``."""
        asked = {"namespaces": list(namespaces), "keys": list(keys), "last": LAST, "behind": BEHIND}
        rows = self._rows("memory_kinds", asked)
        return Kinds.of(namespaces, [(n, what, a, None if b is None else json.loads(b)) for n, what, a, b in rows])

    def written_by(self, namespaces: Sequence[str], ords: Sequence[int], author: str) -> NDArray[np.int64]:
        """Return which of ``ords`` are by ``author``, ascending."""
        import numpy as np

        rows = self._rows("memory_written_by", {**_among(namespaces, ords), "author": author})
        return np.array([o for (o,) in rows], dtype=np.int64)

    def turns(self, namespaces: Sequence[str], ords: Sequence[int]) -> Sequence[Turn]:
        """Return the sessions that hold ``ords``, each in its order; more than MOST_TURNS when they are not whole."""
        rows = self._rows("memory_turns", {**_among(namespaces, ords), "limit": MOST_TURNS + 1})
        return [
            Turn(n, ord, session, author, bool(asks), _month(at // _DAY)) for n, ord, session, author, asks, at in rows
        ]


def _among(namespaces: Sequence[str], ords: Collection[int]) -> dict[str, Any]:
    return {"namespaces": list(namespaces), "ords": [int(o) for o in ords]}


@lru_cache(maxsize=4096)
def _month(day: int) -> int:
    at = at_microsecond(day * _DAY)
    return 12 * at.year + at.month - 1


def _postings(
    memories: int, length: int, matches: Sequence[tuple[int, str, str]], max_df: int | None, shared: bool
) -> Postings:
    """Return what FTS5 matched: of each key the ords, each as often as it has the term, and as many lengths."""
    import numpy as np

    from semmem.stores.postgres.encoding import POSTING

    keys: list[int] = []
    parts: list[NDArray[Any]] = []
    for key, raw, raw_lengths in matches:
        ords, first, counts = np.unique(
            np.fromstring(raw, dtype=np.int64, sep=","), return_index=True, return_counts=True
        )
        if (max_df is not None and len(ords) > max_df) or (shared and len(ords) == 1):
            continue
        entries = np.zeros(len(ords), dtype=POSTING)
        entries["ord"] = ords
        entries["count"] = np.minimum(counts, _LARGEST)
        entries["length"] = np.minimum(np.fromstring(raw_lengths, dtype=np.int64, sep=",")[first], _LARGEST)
        keys.append(key)
        parts.append(entries)
    sizes = np.array([len(entries) for entries in parts], dtype=np.int64)
    every = np.concatenate(parts) if parts else np.zeros(0, dtype=POSTING)
    return Postings(memories, length, np.array(keys, dtype=np.int64), sizes, every)
