"""Hold what is known of each memory besides its entries and its vector, in columns.

A turn is made when it is asked for. Kept as one object a memory they would take four times as much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semmem.model.exchange import Turn

__all__ = ["Turns"]

_WRITTEN = ("id", "session", "author", "title")
_FIXED = np.dtype(
    [
        ("asks", "?"),
        ("month", "<i4"),
        ("part", "<i4"),
        ("importance", "<f8"),
        ("content", "V16"),
        ("created_at", "<f8"),
        ("updated_at", "<f8"),
        ("position", "<i8"),
        ("microseconds", "<i8"),
    ]
)


class Turns:
    """The turns of one namespace, row ids ascending, with their titles and their places in their sessions.

    A place is (position, microseconds since 1970), which orders a session before the id does.
    """

    def __init__(
        self, namespace: str, row_ids: NDArray[np.int64], written: dict[str, NDArray[Any]], fixed: NDArray[Any]
    ) -> None:
        self.row_ids = row_ids
        self._namespace = namespace
        self._written = written
        self._fixed = fixed

    @classmethod
    def of(cls, rows: Sequence[tuple[Any, ...]]) -> Turns:
        """Return the turns of rows as the statement ``resident_memories`` has them.

        Raises ValueError for a content that is no hash of 16 bytes.
        """
        if any(len(row[9]) != 16 for row in rows):
            raise ValueError("A content is no hash.")
        pool: dict[Any, Any] = {}  # names that many memories have are one object
        written = {
            name: _objects([pool.setdefault(row[column], row[column]) if column != 6 else row[column] for row in rows])
            for name, column in zip(_WRITTEN, (6, 2, 3, 12), strict=True)
        }
        fixed = np.zeros(len(rows), dtype=_FIXED)
        for name, column in zip(_FIXED.names or (), (4, 5, 7, 8, 9, 10, 11, 13, 14), strict=True):
            if name == "content":
                fixed[name] = np.frombuffer(b"".join(row[column] for row in rows), dtype="V16")
            else:
                fixed[name] = [row[column] for row in rows]
        row_ids = np.array([row[1] for row in rows], dtype=np.int64)
        return cls(rows[0][0] if rows else "", row_ids, written, fixed)

    def __len__(self) -> int:
        return len(self.row_ids)

    def __getitem__(self, position: int) -> Turn:
        """Return the turn at a position."""
        asks, month, part, importance, content, created_at, updated_at, _, _ = self._fixed[position].item()
        of = self._written
        who = self._namespace, int(self.row_ids[position]), of["session"][position], of["author"][position]
        return Turn(*who, asks, month, of["id"][position], part, importance, bytes(content), created_at, updated_at)

    def __iter__(self) -> Iterator[Turn]:
        return map(self.__getitem__, range(len(self)))

    def title(self, position: int) -> str | None:
        """Return the title of the memory at a position."""
        title: str | None = self._written["title"][position]
        return title

    def session(self, position: int) -> str | None:
        """Return the session of the memory at a position."""
        session: str | None = self._written["session"][position]
        return session

    def place(self, position: int) -> tuple[int, int]:
        """Return the place of the memory at a position in its session."""
        return int(self._fixed["position"][position]), int(self._fixed["microseconds"][position])

    def each(self, name: str) -> list[str | None]:
        """Return the ids, sessions, authors or titles of all memories."""
        column: list[str | None] = self._written[name].tolist()
        return column

    def select(self, which: NDArray[Any]) -> Turns:
        """Return the turns at some positions, or those that a mask marks."""
        written = {name: column[which] for name, column in self._written.items()}
        return Turns(self._namespace, self.row_ids[which], written, self._fixed[which])

    @classmethod
    def merged(cls, one: Turns, other: Turns) -> Turns:
        """Return the turns of both arguments, which have no row id in common, with row ids ascending."""
        written = {name: np.concatenate([one._written[name], other._written[name]]) for name in _WRITTEN}
        row_ids, fixed = np.concatenate([one.row_ids, other.row_ids]), np.concatenate([one._fixed, other._fixed])
        return cls(one._namespace or other._namespace, row_ids, written, fixed).select(np.argsort(row_ids))


def _objects(values: list[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
