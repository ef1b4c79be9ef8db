"""What the probe stores: a witness that one leg alone finds, and finds first, and competitors for the others.

The lists of the text legs are the kindest of the reach check (semmem.rank_cap.bounds): they agree on the first k - 1
memories, and then each names one of its own. The graph lists besides what it starts from, as it always does.
The witness goes through the extractor and the embedder like every memory. The competitors are written as if these had
found just what is wanted: one word of the question, a vector near to its, or nothing. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from semmem.model.exchange import Extraction, Kind, Row
from semmem.model.recipe import Recipe
from semmem.model.types import Memory
from semmem.text.passages import content_key, term_key, terms
from semmem.text.tokens import key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["WITNESS", "Competitor", "ProbeFixture", "fixture", "regimes", "rows", "witness_keys"]

WITNESS = "witness"
"""The id of the memory that is put through."""
_START = "u-start"
_NAMED, _ABOUT = ("Zorvandel", "Kesh"), ("Pellimore", "Drune")
_QUESTIONS = {
    "named": "Where does Zorvandel Kesh keep the brass lantern?",
    "unnamed": "where is the brass lantern kept at night?",
}
_BY_LISTS = ("anchored", "described")
"""The regimes of a question that names nothing that its lists decide."""
_WITHOUT_NAMES = (*_BY_LISTS, "unnamed")
_UNRELATED = "Its lid was repaired twice with grey wire after that winter."
_ABOUT_THE_QUESTION = "The brass lantern hangs in a cupboard of the old signal box, behind a row of coats."
_WHEN = datetime(2026, 1, 1, tzinfo=UTC)
_EVEN, _OFTEN = 1, 3
_WORDS = 12
_NEAREST, _NEAR, _TAIL, _FILLS = 0.3, 0.2, 0.19, 0.1
"""How near a competitor's vector is, on the way from the witness's own similarity to the question (0) to 1."""


@dataclass(frozen=True, slots=True)
class Competitor:
    """A memory besides the witness: how often it has a word of the question, how near its vector is, what it names.

    ``near`` is from 0, as similar to the question as the witness is, to 1, the same as the question; None: no vector.
    """

    id: str
    text: str
    words: int = 0
    near: float | None = None
    names: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class ProbeFixture:
    """One question, one witness for ``leg``, and its competitors, in one regime."""

    leg: str
    regime: str
    question: str
    text: str
    title: str | None = None
    competitors: tuple[Competitor, ...] = field(default=(), repr=False)

    @property
    def item(self) -> dict[str, Any]:
        """The witness as remember takes it."""
        return {"id": WITNESS, "text": self.text} | ({"title": self.title} if self.title else {})


def regimes(recipe: Recipe) -> list[str]:
    """Return the regimes of ``recipe`` that have a fixture of their own; the lists make others of an unnamed one."""
    return [name for name in recipe.regimes if name not in _BY_LISTS or "unnamed" not in recipe.regimes]


def fixture(recipe: Recipe, leg: str, regime: str, k: int, own: tuple[str, str] | None = None) -> ProbeFixture:
    """Return the fixture for ``leg`` in ``regime`` at cut-off ``k``; ``own`` is (question, text) of another witness."""
    question = _QUESTIONS["unnamed" if regime in _WITHOUT_NAMES else "named"]
    text, title = _UNRELATED, None
    if own is not None:
        question, text = own
    elif leg == "lexical":
        text = _ABOUT_THE_QUESTION
    elif leg == "graph":
        title = " ".join(_ABOUT)
    others = [name for name in (*recipe.legs, *recipe.graph.seeders) if name != leg]
    deep = max(recipe.depths.get("dense", 100), k)
    return ProbeFixture(leg, regime, question, text, title, tuple(_competitors(leg, regime, k, others, deep)))


def _competitors(leg: str, regime: str, k: int, others: Collection[str], deep: int) -> list[Competitor]:
    has = {"words": "lexical" in others, "near": "dense" in others}
    ties = (_ABOUT,) if leg == "graph" and regime in _WITHOUT_NAMES else ()
    out = []
    for n in range(1, k):
        first = n == 1
        near = (_NEAREST if first else _NEAR) if has["near"] else None
        often = (_OFTEN if first else _EVEN) if has["words"] else 0
        out.append(Competitor(f"r{n:05}", f"Competitor {n}.", often, near, ties if first else ()))
    for name, of_leg in (("words", "lexical"), ("near", "dense")):
        if has[name]:
            mine = {"words": _EVEN} if name == "words" else {"near": _TAIL}
            out.append(Competitor(f"s-{of_leg}", f"The tail of {of_leg}.", names=ties if k == 1 else (), **mine))
    if has["near"]:  # so that the witness, whose vector is its own, is not among the nearest
        out += [Competitor(f"t{n:05}", f"Filler {n}.", near=_FILLS) for n in range(deep)]
    if (
        regime not in _WITHOUT_NAMES
    ):  # makes the question a named one, and is where the graph starts; no other leg finds it
        out.append(Competitor(_START, "The start.", names=(_NAMED, *((_ABOUT,) if leg == "graph" else ()))))
    return out


def witness_keys(fixture: ProbeFixture, language: str) -> set[int]:
    """Return the keys of which the extractor must find one for the leg to find the witness; empty where none counts."""
    if fixture.leg == "lexical":
        return {term_key(term) for term in terms(fixture.question, language)}
    if fixture.leg == "graph" and fixture.title:
        return {_name(_ABOUT)}
    return set()


def rows(
    fixture: ProbeFixture, namespace: str, question: NDArray[np.float32] | None, similarity: float, language: str
) -> list[Row]:
    """Return the competitors as a store writes them.

    ``question`` is its unit vector, None where there are no vectors; ``similarity`` is the witness's cosine with it.
    """
    word = next(iter(terms(fixture.question, language)), None)
    out = []
    for competitor in fixture.competitors:
        title = " ".join(_NAMED) if competitor.id == _START else None  # what a memory is about is a name by its title
        memory = Memory(competitor.id, namespace, competitor.text, title, created_at=_WHEN, updated_at=_WHEN)
        content = content_key(competitor.text)
        vector = None
        if question is not None and competitor.near is not None:
            vector = _at(question, similarity + (1 - similarity) * competitor.near)
        out.append(Row(memory, 0, 0, _extraction(competitor, word), vector, content, content))
    return out


def _extraction(competitor: Competitor, word: str | None) -> Extraction:
    entries: list[tuple[int, int, str, float, float, int]] = []
    if competitor.words and word is not None:
        entries.append((term_key(word), int(Kind.TERM), word, 0.0, 0.0, competitor.words))
    about = competitor.id == _START
    for name in competitor.names:
        subject = 1.0 if about and name == _NAMED else 0.0
        entries.append((_name(name), int(Kind.NAME), " ".join(name), 1.0, subject, 0))
    entries.sort()
    keys, kinds, names, mentions, subjects, counts = zip(*entries, strict=True) if entries else [()] * 6
    return Extraction(keys, kinds, names, mentions, subjects, counts, _WORDS if competitor.words else 0)


def _name(words: Sequence[str]) -> int:
    return key(Kind.NAME, tuple(word.lower() for word in words))


def _at(question: NDArray[np.float32], cosine: float) -> NDArray[np.float32]:
    """Return a unit vector at this cosine from a unit vector."""
    import numpy as np

    whole = question.astype(np.float64)
    least = int(np.abs(whole).argmin())
    across = -whole[least] * whole
    across[least] += 1.0
    across /= np.linalg.norm(across)
    vector: NDArray[np.float32] = (cosine * whole + np.sqrt(1 - cosine**2) * across).astype(np.float32)
    return vector
