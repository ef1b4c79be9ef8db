"""Memories and questions from a seeded generator, with the statistics of real notes.

Word frequencies follow Zipf's law over 30,000 words, of which the most common are English function words; a text has
about 70 words (log-normal). Names of people, places and things are heavy-tailed too: few are in many memories, most in
one or two. A memory has a topic, which prefers words and names of its own, and a vector near the topic's centre. Each
memory depends on the seed and its number alone, so an interrupted run resumes where it stopped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from eval.titled import corpus

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from eval.datasets import Corpus

__all__ = ["SHAPES", "SHARES", "Generator", "Question", "TitledGenerator", "made_vector"]

SHAPES = ("notes", "titled")
"""What is generated: notes, or titled passages that mention each other, of some forty concepts each."""

SHARES = {"half": 0.5, "hundredth": 0.01, "ten-thousandth": 0.0001}
"""Tags, and the share of the memories that has each."""

_WORDS, _NAMES, _TOPICS, _DIMENSIONS = 30_000, 20_000, 256, 384
_COMMON = re.findall(
    r"\w+",
    "the of and to a in for is on that by this with i you it not or be are from at as your all have new more an was we "
    "will can us about if my has but our one other do no they he up may what which their out use any there see only so "
    "his when here who also now get am been would how were me some these its than had into them she could time",
)
_ONSETS = re.findall(r"\w+", "b br c ch d dr f fl g gr h j k l m n p pl pr qu r s sh sl st t th tr v w z")
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ea", "ou")
_CODAS = ("l", "m", "n", "nd", "r", "rk", "s", "st", "t", "x")


def made_vector(text: str) -> Any:
    """Return a unit vector drawn from a generator seeded by the text: the same text, the same vector."""
    seed = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")
    vector = np.random.default_rng(seed).normal(size=_DIMENSIONS).astype(np.float32)
    return vector / np.linalg.norm(vector)


@dataclass(frozen=True, slots=True)
class Question:
    """A question about the memory ``about``, and a vector near that memory's."""

    text: str
    about: str
    vector: NDArray[np.float32]


class Generator:
    """Generates memory ``n`` and question ``n``; the sizes of the ``namespaces`` follow Zipf's law."""

    def __init__(self, seed: int = 0, *, namespaces: int = 1) -> None:
        self.seed = seed
        self.namespaces = namespaces

    @cached_property
    def _words(self) -> list[str]:
        draw = np.random.default_rng([self.seed, 1])
        words = dict.fromkeys(_COMMON)
        while len(words) < _WORDS:
            words.setdefault(_word(draw, int(draw.integers(1, 4))))
        return list(words)

    @cached_property
    def _names(self) -> list[str]:
        draw = np.random.default_rng([self.seed, 2])
        names: dict[str, None] = {}
        while len(names) < _NAMES:
            names.setdefault(" ".join(_word(draw, 2).capitalize() for _ in range(int(draw.integers(1, 3)))))
        return list(names)

    @cached_property
    def _centres(self) -> NDArray[np.float32]:
        return _unit(np.random.default_rng([self.seed, 3]).normal(size=(_TOPICS, _DIMENSIONS)))

    @cached_property
    def _edges(self) -> dict[int, NDArray[np.float64]]:
        return {size: _zipf(size) for size in {_WORDS, _NAMES, _TOPICS, self.namespaces}}

    def _ranks(self, draw: np.random.Generator, size: int, count: int) -> list[int]:
        ranks: list[int] = np.searchsorted(self._edges[size], draw.random(count)).tolist()
        return ranks

    def namespace(self, number: int) -> str:
        """Return the namespace of memory ``number``, which costs less than to make the memory."""
        draw = np.random.default_rng([self.seed, 9, number])
        return f"n{self._ranks(draw, self.namespaces, 1)[0]}"

    def memory(self, number: int) -> dict[str, Any]:
        """Return memory ``number`` as the keywords of ``remember``, without its vector."""
        draw = np.random.default_rng([self.seed, 4, number])
        topic = self._ranks(draw, _TOPICS, 1)[0]
        count = int(np.clip(draw.lognormal(4.2, 0.35), 8, 200))
        places = self._ranks(draw, _WORDS, count)
        own = draw.random(count) < 0.25  # a topic has words of its own
        words = [
            self._words[len(_COMMON) + (place * 31 + topic * 97) % (_WORDS - len(_COMMON)) if mine else place]
            for place, mine in zip(places, own, strict=True)
        ]
        names = [self._names[(rank * 7 + topic * 13) % _NAMES] for rank in self._ranks(draw, _NAMES, 4)]
        for name in names[: int(draw.integers(0, 4))]:
            words.insert(int(draw.integers(1, len(words))), name)
        sentences = [" ".join(words[i : i + 14]) for i in range(0, len(words), 14)]
        chance = draw.random(len(SHARES))
        return {
            "id": f"m{number}",
            "text": ". ".join(sentence[:1].upper() + sentence[1:] for sentence in sentences) + ".",
            "title": names[3] if number % 5 == 0 else None,
            "namespace": self.namespace(number),
            "session": f"s{number // 40}",
            "position": number % 40,
            "tags": [
                tag for (tag, share), drawn in zip(SHARES.items(), chance, strict=True) if drawn < share or not number
            ],
        }

    def vector(self, number: int) -> NDArray[np.float32]:
        """Return the unit vector of memory ``number``: near the centre of its topic."""
        topic = self._ranks(np.random.default_rng([self.seed, 4, number]), _TOPICS, 1)[0]
        noise = np.random.default_rng([self.seed, 5, number]).normal(size=_DIMENSIONS)
        return _unit(self._centres[topic] + 0.05 * noise)

    def question(self, number: int, size: int) -> Question:
        """Return question ``number`` about one of the first ``size`` memories: a name of it and three of its words."""
        draw = np.random.default_rng([self.seed, 6, number])
        about = int(draw.integers(size))
        words = [word for word in self.memory(about)["text"].replace(".", "").split() if word.lower() not in _COMMON]
        sample = [words[i] for i in sorted(draw.choice(len(words), size=min(3, len(words)), replace=False).tolist())]
        names = [word for word in words[1:] if word[0].isupper()][:1]
        near = _unit(self.vector(about) + 0.02 * draw.normal(size=_DIMENSIONS))
        return Question(f"What do we know about {' and '.join([*names, *sample])}?", f"m{about}", near)

    def items(self, first: int, last: int) -> Iterator[tuple[dict[str, Any], NDArray[np.float32]]]:
        """Yield memories ``first`` to ``last`` - 1, each with its vector."""
        for number in range(first, last):
            yield self.memory(number), self.vector(number)


class TitledGenerator(Generator):
    """Generates the passages of ``eval.titled``, with the vectors and tags of notes; ``count`` is the largest size.

    A passage mentions others of the whole ``count``, and a smaller size has its passages alone. After the last passage
    the same texts come again.
    """

    def __init__(self, seed: int = 0, *, count: int) -> None:
        super().__init__(seed)
        self._count = count

    @cached_property
    def _corpus(self) -> Corpus:
        return corpus(self._count, self._count, self.seed)

    def memory(self, number: int) -> dict[str, Any]:
        """Return passage ``number`` as the keywords of ``remember``, without its vector; it has no session."""
        note, passage = super().memory(number), self._corpus.memories[number % self._count]
        return {name: note[name] for name in ("id", "namespace", "tags")} | {n: passage[n] for n in ("title", "text")}

    def question(self, number: int, size: int) -> Question:
        """Return the question ``number`` of those about the first ``size`` passages, each near its passage's vector."""
        within = self._within(size)
        one = self._corpus.queries[within[number % len(within)]]
        about, draw = int(one.gold[0]), np.random.default_rng([self.seed, 6, number])
        near = _unit(self.vector(about) + 0.02 * draw.normal(size=_DIMENSIONS))
        return Question(one.text, f"m{about}", near)

    @cache  # noqa: B019  # a run has one generator
    def _within(self, size: int) -> list[int]:
        queries = enumerate(self._corpus.queries)
        return [number for number, one in queries if all(int(id) < size for id in one.gold)]


def _word(draw: np.random.Generator, syllables: int) -> str:
    parts = [_ONSETS[draw.integers(len(_ONSETS))] + _VOWELS[draw.integers(len(_VOWELS))] for _ in range(syllables)]
    return "".join(parts) + _CODAS[draw.integers(len(_CODAS))]


def _zipf(size: int) -> NDArray[np.float64]:
    weights = 1.0 / np.arange(1, size + 1)
    edges: NDArray[np.float64] = np.cumsum(weights / weights.sum())
    edges[-1] = 1.0
    return edges


def _unit(rows: Any) -> NDArray[np.float32]:
    units: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)
    return units
