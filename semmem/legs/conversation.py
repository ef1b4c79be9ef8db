"""Rules for memories with an author: the author asked about, the turns around a turn, the month that is meant.

Measured on conversations (adr/0010), these rules gain more than the graph does. Each rule is a setting, and all are off
in a namespace where no memory has an author. Pure: texts and arrays in, arrays out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from semmem.model.exchange import Turn
from semmem.model.question import ConversationalQuery
from semmem.model.recipe import ConversationSettings
from semmem.text.tokens import author_key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["CONVERSATIONAL_DEPTH", "ROLES", "Turns", "dense", "lexical", "takes_turns"]

CONVERSATIONAL_DEPTH = 200
"""The number of memories of a leg whose sessions are read for the turns around them."""

ROLES = frozenset(
    ["user", "assistant", "system", "developer", "tool", "function", "human", "ai", "model", "bot", "agent", "chatbot"]
)
"""Roles in a chat; they are not names of people, because questions use these words for other things."""


@dataclass(frozen=True, slots=True)
class Turns:
    """The memories of some sessions in order: parallel arrays; neighbours are positions in them, -1 for none.

    ``author`` is a code (-1: none), ``asks`` whether the text ends in a question mark, ``month`` is
    12 · year + month - 1.
    """

    row_ids: NDArray[np.int64]
    author: NDArray[np.int64]
    asks: NDArray[np.bool_]
    month: NDArray[np.int64]
    previous: NDArray[np.int64]
    before: NDArray[np.int64]
    next: NDArray[np.int64]
    authors: tuple[str, ...]

    @classmethod
    def of(cls, rows: Sequence[Turn]) -> Turns:
        """Build from turns in the order of each session; memories without a session have no neighbours.

        A session belongs to one namespace; sessions of the same name in two namespaces are two sessions.
        """
        import numpy as np

        authors = tuple(sorted({row.author for row in rows if row.author is not None}))
        code = {author: number for number, author in enumerate(authors)}
        n = len(rows)
        session = [(row.namespace, row.session) for row in rows]
        same = np.array(
            [i > 0 and rows[i].session is not None and session[i] == session[i - 1] for i in range(n)], dtype=bool
        )
        places = np.arange(n)
        previous = np.where(same, places - 1, -1)
        following = np.append(same[1:], False) if n else same
        return cls(
            np.array([row.row_id for row in rows], dtype=np.int64),
            np.array([-1 if row.author is None else code[row.author] for row in rows], dtype=np.int64),
            np.array([row.asks for row in rows], dtype=bool),
            np.array([row.month for row in rows], dtype=np.int64),
            previous,
            np.where(previous >= 0, previous[np.maximum(previous, 0)], -1) if n else previous,
            np.where(following, places + 1, -1),
            authors,
        )

    def by(self, author: str | None) -> NDArray[np.bool_]:
        """Return which turns are by ``author``."""
        import numpy as np

        if author is None or author not in self.authors:
            return np.zeros(len(self.row_ids), dtype=bool)
        mask: NDArray[np.bool_] = self.author == self.authors.index(author)
        return mask

    def within(self, months: Sequence[tuple[int, int | None]]) -> NDArray[np.bool_]:
        """Return which turns are of one of ``months`` or of the month after, because people talk about the past."""
        import numpy as np

        mask = np.zeros(len(self.row_ids), dtype=bool)
        for month, year in months:
            for later in (0, 1):
                if year is None:
                    mask |= self.month % 12 == (month - 1 + later) % 12
                else:
                    mask |= self.month == 12 * year + month - 1 + later
        return mask

    def windows(
        self, settings: ConversationSettings, collects: bool = False
    ) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Return (positions, weights) of the turns around each turn; a previous turn by the same author weighs less."""
        import numpy as np

        def at(values: NDArray[Any], where: NDArray[np.int64]) -> NDArray[Any]:
            elements: NDArray[Any] = values[np.maximum(where, 0)]
            return elements

        own = at(self.author, self.previous) == self.author
        answered = np.where(at(self.asks, self.previous), settings.asked, settings.previous)
        previous = np.where(own, np.minimum(settings.own, answered), answered)
        before = np.where(at(self.asks, self.previous) & ~own, settings.before_asked, settings.before)
        following = np.full(len(self.row_ids), settings.next)
        weights = ((self.previous, previous), (self.before, before), (self.next, following))
        factor = settings.collecting_window if collects else 1.0
        return [(where, np.where(where >= 0, factor * weight, 0.0)) for where, weight in weights]


def takes_turns(author: str, before: Sequence[Sequence[str | None]]) -> bool:
    """Return whether ``author`` speaks in dialogues: returns again and again after another author's turn.

    ``before`` holds, for each of the author's last memories, the authors of the memories before it in its session,
    nearest first. A memory is informative where it shows who spoke before the other author's turn: the author (an
    answer to an answer) or somebody else. At least half of the informative memories must be answers; without any the
    result is False.
    """
    own = author_key(author)
    answers = []
    for authors in before:
        keys = [author_key(name) if name is not None else None for name in authors]
        other = next((index for index, key in enumerate(keys) if key != own), None)
        if other is None:
            continue
        earlier = next((key for key in keys[other:] if key != keys[other]), "")
        if earlier != "":
            answers.append(earlier == own)
    return bool(answers) and 2 * sum(answers) >= len(answers)


def _collects(conversational: ConversationalQuery, settings: ConversationSettings) -> bool:
    return conversational.collects and settings.collecting


def lexical(
    turns: Turns,
    row_ids: NDArray[np.int64],
    scores: NDArray[np.float64],
    conversational: ConversationalQuery,
    settings: ConversationSettings,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Add the turns around each turn, its author and its month to BM25 scores; return row ids and scores.

    ``row_ids`` are sorted. Memories that are not in ``turns`` keep their scores; turns that match only by their window
    join.
    """
    import numpy as np

    joined = np.union1d(row_ids, turns.row_ids)
    raw = np.zeros(len(joined))
    raw[np.searchsorted(joined, row_ids)] = scores
    place = np.searchsorted(joined, turns.row_ids)
    own = raw[place]
    mixed = own.copy()
    for where, weight in turns.windows(settings, _collects(conversational, settings)):
        mixed += weight * own[np.maximum(where, 0)]
    mixed *= np.where(turns.by(conversational.author), settings.author_lexical, 1.0)
    mixed *= np.where(turns.within(conversational.months), settings.month_lexical, 1.0)
    raw[place] = mixed
    return joined[raw > 0], raw[raw > 0]


def dense(
    turns: Turns,
    vectors: NDArray[np.float32],
    question: NDArray[np.float32],
    conversational: ConversationalQuery,
    settings: ConversationSettings,
) -> NDArray[np.float64]:
    """Return the cosine of the question with each turn's vector, mixed with the turns around it, plus the bonuses.

    ``vectors`` has shape (turns, dimensions), a zero row where a turn has none; the score of such a turn is -2.
    """
    import numpy as np

    mixed = vectors.astype(np.float64)
    for where, weight in turns.windows(settings, _collects(conversational, settings)):
        mixed += weight[:, None] * vectors[np.maximum(where, 0)]
    norms = np.linalg.norm(mixed, axis=1)
    scores: NDArray[np.float64] = (mixed @ question.astype(np.float64)) / np.maximum(norms, 1e-12)
    near = settings.collecting_author_dense if _collects(conversational, settings) else settings.author_dense
    scores += near * turns.by(conversational.author)
    scores += settings.month_dense * turns.within(conversational.months)
    return np.where(vectors.any(axis=1), scores, -2.0)
