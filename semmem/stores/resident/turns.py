"""Hold what is known of each memory besides its entries and its vector, in columns.

A turn is made when it is asked for. Kept as one object a memory they would take four times as much.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semmem.model.exchange import Turn

__all__ = ["Strings", "Turns"]

_WRITTEN = ("id", "session", "author", "title")
_PARTS = ("which", "starts", "raw")
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


class Strings:
    """A string or None of each of many memories, made when it is asked for.

    ``raw`` holds the strings as UTF-8, one after the other, ``starts`` where each begins, with the end of the last one.
    ``which`` is the number of each memory's string, -1 for None. A string may stand there several times.
    """

    def __init__(self, which: NDArray[np.int32], starts: NDArray[np.int64], raw: NDArray[np.uint8]) -> None:
        self.which, self.starts, self.raw = which, starts, raw

    @classmethod
    def of(cls, values: Iterable[str | None]) -> Strings:
        """Return ``values``; a string that many memories have is kept once."""
        numbers: dict[str, int] = {}
        which = [-1 if value is None else numbers.setdefault(value, len(numbers)) for value in values]
        packed = [text.encode() for text in numbers]
        starts = np.cumsum([0, *map(len, packed)], dtype=np.int64)
        return cls(np.array(which, dtype=np.int32), starts, np.frombuffer(b"".join(packed), dtype=np.uint8))

    def __getitem__(self, place: int) -> str | None:
        """Return the string of the memory at a place."""
        number = int(self.which[place])
        return None if number < 0 else self.raw[self.starts[number] : self.starts[number + 1]].tobytes().decode()

    def _texts(self) -> list[str]:
        raw = self.raw.tobytes()
        return [raw[start:end].decode() for start, end in pairwise(self.starts.tolist())]

    def each(self) -> list[str | None]:
        """Return the strings of all memories."""
        texts = [*self._texts(), None]
        return [texts[number] for number in self.which.tolist()]

    def places(self) -> dict[str, list[int]]:
        """Return the places of the memories that have each string, ascending; None is left out."""
        if len(self.starts) == 1:  # as the sessions and authors of documents
            return {}
        order = np.argsort(self.which, kind="stable")
        bounds = np.searchsorted(self.which[order], np.arange(len(self.starts))).tolist()
        places: dict[str, list[int]] = {}
        for text, (first, end) in zip(self._texts(), pairwise(bounds), strict=True):
            places.setdefault(text, []).extend(order[first:end].tolist())
        return {text: sorted(own) for text, own in places.items()}

    def select(self, which: NDArray[Any]) -> Strings:
        """Return the strings of some memories; nothing is kept of the others."""
        chosen = self.which[which]
        used = np.zeros(len(self.starts) - 1, dtype=bool)
        used[chosen[chosen >= 0]] = True
        lengths = np.diff(self.starts)
        numbers = np.append(np.cumsum(used, dtype=np.int32) - 1, np.int32(-1))
        starts = np.concatenate([[0], np.cumsum(lengths[used])])
        return Strings(numbers[chosen], starts, self.raw[np.repeat(used, lengths)])

    @classmethod
    def joined(cls, pieces: Sequence[Strings]) -> Strings:
        """Return the strings of the memories of at least one piece, piece after piece; each keeps its own bytes."""
        numbers = np.cumsum([0, *(len(one.starts) - 1 for one in pieces[:-1])], dtype=np.int32)
        ends = np.cumsum([0, *(one.starts[-1] for one in pieces[:-1])])
        which = [np.where(one.which < 0, one.which, one.which + at) for one, at in zip(pieces, numbers, strict=True)]
        starts = [one.starts[1:] + at for one, at in zip(pieces, ends, strict=True)]
        return cls(np.concatenate(which), np.concatenate([[0], *starts]), np.concatenate([one.raw for one in pieces]))


class Turns:
    """The turns of one namespace, row ids ascending, with their titles and their places in their sessions.

    A place is (position, microseconds since 1970), which orders a session before the id does.
    """

    def __init__(
        self, namespace: str, row_ids: NDArray[np.int64], written: Mapping[str, Strings], fixed: NDArray[Any]
    ) -> None:
        self.row_ids = row_ids
        self.namespace = namespace
        self._written = written
        self._fixed = fixed

    @classmethod
    def of(cls, rows: Sequence[tuple[Any, ...]]) -> Turns:
        """Return the turns of rows as the statement ``resident_memories`` has them.

        Raises ValueError for a content that is no hash of 16 bytes.
        """
        if any(len(row[9]) != 16 for row in rows):
            raise ValueError("A content is no hash.")
        columns = zip(_WRITTEN, (6, 2, 3, 12), strict=True)
        written = {name: Strings.of(row[column] for row in rows) for name, column in columns}
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
        who = self.namespace, int(self.row_ids[position]), of["session"][position], of["author"][position]
        id = str(of["id"][position])
        return Turn(*who, asks, month, id, part, importance, bytes(content), created_at, updated_at)

    def __iter__(self) -> Iterator[Turn]:
        return map(self.__getitem__, range(len(self)))

    def title(self, position: int) -> str | None:
        """Return the title of the memory at a position."""
        return self._written["title"][position]

    def session(self, position: int) -> str | None:
        """Return the session of the memory at a position."""
        return self._written["session"][position]

    def place(self, position: int) -> tuple[int, int]:
        """Return the place of the memory at a position in its session."""
        return int(self._fixed["position"][position]), int(self._fixed["microseconds"][position])

    def has_parts(self, positions: NDArray[np.int64]) -> bool:
        """Return whether one of the memories at some positions is a part."""
        return bool(self._fixed["part"][positions].any())

    def newest(self, positions: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """Return those of ``positions`` that may be of the ``count`` memories created last; no turn is made.

        More than ``count`` are returned where the last of them was created at the same moment as others.
        """
        if len(positions) <= count:
            return positions
        created = self._fixed["microseconds"][positions]
        last = np.partition(created, len(created) - count)[len(created) - count]
        newest: NDArray[np.int64] = positions[created >= last]
        return newest

    def given(self, name: str) -> NDArray[np.bool_]:
        """Return which memories have a session, an author or a title."""
        return self._written[name].which >= 0

    def each(self, name: str) -> list[str | None]:
        """Return the ids, sessions, authors or titles of all memories."""
        return self._written[name].each()

    def places(self, name: str) -> dict[str, list[int]]:
        """Return the positions of the memories with each id, session, author or title."""
        return self._written[name].places()

    def select(self, which: NDArray[Any]) -> Turns:
        """Return the turns at some positions, or those that a mask marks."""
        written = {name: strings.select(which) for name, strings in self._written.items()}
        return Turns(self.namespace, self.row_ids[which], written, self._fixed[which])

    @classmethod
    def joined(cls, pieces: Sequence[Turns]) -> Turns:
        """Return the turns of at least one piece of one namespace, piece after piece."""
        namespace = next((piece.namespace for piece in pieces if piece.namespace), "")
        row_ids = np.concatenate([piece.row_ids for piece in pieces])
        fixed = np.concatenate([piece._fixed for piece in pieces])
        written = {name: Strings.joined([piece._written[name] for piece in pieces]) for name in _WRITTEN}
        return cls(namespace, row_ids, written, fixed)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that is kept but the namespace, by name, for ``from_arrays``."""
        strings = {f"{name}.{part}": getattr(self._written[name], part) for name in _WRITTEN for part in _PARTS}
        return {"row_ids": self.row_ids, "fixed": self._fixed, **strings}

    @classmethod
    def from_arrays(cls, namespace: str, arrays: Mapping[str, NDArray[Any]]) -> Turns:
        """Return the turns that gave these ``arrays``."""
        written = {name: Strings(*(arrays[f"{name}.{part}"] for part in _PARTS)) for name in _WRITTEN}
        return cls(namespace, arrays["row_ids"], written, arrays["fixed"])
