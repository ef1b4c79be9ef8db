"""Measure how well the rules find names, against hand-annotated text in CoNLL form: ``python -m eval.ner PATH``.

PATH is a file, or a folder with ``*.conll*`` files, where each folder is one data set. Aggregates are printed, never
text. Spans are compared as runs of the marked-up tokens; sentences are read one by one, put together again with the
usual spaces. A span is *exact* when both ends agree, and *overlaps* when one token is shared; types are not compared.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from semmem.concepts.names import capitalised_spans, read
from semmem.text.tokens import fold, stop_words

__all__ = ["Marked", "Score", "main", "predicted", "read_conll", "score", "spans_of"]

Span: TypeAlias = tuple[int, int]
_NO_SPACE_BEFORE = frozenset(",.;:!?)]}%'\u2019\u201d") | {
    "'s",
    "\u2019s",
    "n't",
    "'re",
    "'ve",
    "'ll",
    "'m",
    "'d",
    "...",
    "''",
}
_NO_SPACE_AFTER = frozenset("([{$\u201c#@\u00a3") | {"``"}
_CALENDAR_LIST = """january february march april may june july august september october november december monday tuesday
wednesday thursday friday saturday sunday"""
_CALENDAR = frozenset(_CALENDAR_LIST.split())


@dataclass(frozen=True, slots=True)
class Marked:
    """One sentence: its tokens, and the (first, past) token positions of the names in it."""

    tokens: tuple[str, ...]
    names: tuple[Span, ...]


@dataclass(slots=True)
class Score:
    """Counts over sentences. ``found`` are names with an exact span, ``touched`` those with an overlapping one.

    ``right`` are predicted spans that are exactly a name, ``near`` those that overlap one. ``errors`` counts each
    name that is not found and each predicted span that touches no name, by kind.
    """

    sentences: int = 0
    names: int = 0
    predictions: int = 0
    found: int = 0
    touched: int = 0
    right: int = 0
    near: int = 0
    errors: Counter[str] = field(default_factory=Counter)

    def measures(self) -> dict[str, float]:
        """Return precision, recall and F1, exact and overlapping; 0 where there is nothing to count."""

        def share(part: int, whole: int) -> float:
            return part / whole if whole else 0.0

        out: dict[str, float] = {}
        for kind, right, hits in (("exact", self.right, self.found), ("overlap", self.near, self.touched)):
            precision, recall = share(right, self.predictions), share(hits, self.names)
            both = precision + recall
            out |= {
                f"P {kind}": precision,
                f"R {kind}": recall,
                f"F1 {kind}": 2 * precision * recall / both if both else 0.0,
            }
        return out


def read_conll(path: Path) -> Iterator[Marked]:
    """Yield the sentences of a file of "token tag" lines (tab or space), blank lines between; IO, IOB1 and IOB2.

    A name without a letter or digit is no name: btc marks the sign of ``@ user`` and the user as one each.
    """
    tokens: list[str] = []
    tags: list[str] = []
    for line in [*path.read_text(encoding="utf-8").splitlines(), ""]:
        parts = line.split("\t") if "\t" in line else line.split(" ")
        if line.strip() and parts[0] != "-DOCSTART-" and len(parts) > 1:
            tokens.append(parts[0])
            tags.append(parts[-1].strip())
        elif tokens:
            names = (s for s in spans_of(tags) if any(c.isalnum() for c in "".join(tokens[s[0] : s[1]])))
            yield Marked(tuple(tokens), tuple(names))
            tokens, tags = [], []


def spans_of(tags: Sequence[str]) -> tuple[Span, ...]:
    """Return the (first, past) of the runs of one type; B- begins a new run, so does another type."""
    out: list[Span] = []
    first, kind = 0, ""
    for index, tag in enumerate([*tags, "O"]):
        mark, _, type_ = tag.partition("-")
        if kind and (type_ != kind or mark in ("B", "O")):
            out.append((first, index))
            kind = ""
        if type_ and not kind:
            first, kind = index, type_
    return tuple(out)


def predicted(sentence: Sequence[str], *, maximal: bool = False) -> set[Span]:
    """Return the capitalised spans of a tokenised sentence, as runs of its tokens; ``maximal``: none within another."""
    text, starts = _text_and_starts(sentence)
    reading = read(text)
    out = set()
    for first, past in capitalised_spans(reading):
        start, end = reading.starts[first], reading.ends[past - 1]
        inside = [i for i, begin in enumerate(starts) if begin < end and begin + len(sentence[i]) > start]
        if inside:
            out.add((inside[0], inside[-1] + 1))
    if maximal:
        out = {s for s in out if not any(s != o and o[0] <= s[0] and s[1] <= o[1] for o in out)}
    return out


def _text_and_starts(sentence: Sequence[str]) -> tuple[str, list[int]]:
    """Return the sentence as text, and where each token begins in it."""
    text = ""
    starts = []
    for index, token in enumerate(sentence):
        if index and token not in _NO_SPACE_BEFORE and sentence[index - 1] not in _NO_SPACE_AFTER:
            text += " "
        starts.append(len(text))
        text += token
    return text, starts


def score(sentences: Sequence[Marked], *, maximal: bool = False) -> Score:
    """Return the counts over ``sentences``."""
    out = Score()
    for sentence in sentences:
        guesses = predicted(sentence.tokens, maximal=maximal)
        names = set(sentence.names)
        out.sentences += 1
        out.names += len(names)
        out.predictions += len(guesses)
        out.found += len(names & guesses)
        out.right += len(names & guesses)
        out.touched += sum(any(_touch(n, g) for g in guesses) for n in names)
        out.near += sum(any(_touch(g, n) for n in names) for g in guesses)
        for name in names - guesses:
            out.errors[_kind_of_miss(sentence.tokens, name, guesses, names)] += 1
        for guess in guesses:
            if not any(_touch(guess, n) for n in names):
                out.errors[_kind_of_false_span(sentence.tokens, guess)] += 1
    return out


def _touch(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _kind_of_miss(tokens: Sequence[str], name: Span, guesses: set[Span], names: set[Span]) -> str:
    """Return the kind of a name that no span matches exactly."""
    near = [g for g in guesses if _touch(name, g)]
    if not near:
        words = tokens[name[0] : name[1]]
        if not any(c.isupper() for word in words for c in word):
            return "missed: lower-case name"
        if all(fold(w) in stop_words("english") for w in words):
            return "missed: a stop word is the name"
        return "missed: sentence-initial name" if name[0] == 0 else "missed: other"
    if any(g[0] <= name[0] and name[1] <= g[1] for g in near):
        longest = [g for g in near if g[0] <= name[0] and name[1] <= g[1]]
        if any(sum(_touch(g, n) for n in names) > 1 for g in longest):
            return "boundary: two names in one span"
        return "boundary: too long"
    if any(name[0] <= g[0] and g[1] <= name[1] for g in near):
        return "boundary: too short"
    return "boundary: shifted"


def _kind_of_false_span(tokens: Sequence[str], guess: Span) -> str:
    """Return the kind of a span that touches no name."""
    words = tokens[guess[0] : guess[1]]
    if any("://" in w or w.startswith("www.") for w in words):
        return "no name: part of a web address"
    if words[0][0] in "@#" or (guess[0] and tokens[guess[0] - 1] in ("@", "#")):
        return "no name: user name or hashtag"
    if any(fold(w) in _CALENDAR for w in words):
        return "no name: month or weekday"
    if guess[0] == 0 or not any(c.isalnum() for c in "".join(tokens[: guess[0]])):
        return "no name: sentence-initial word" if len(words) == 1 else "no name: sentence-initial run"
    if tokens[guess[0] - 1] in (".", "!", "?", ":", '"', "''", "``", "..."):
        return "no name: after a full stop, colon or quote"
    if all(w.isupper() and len(w) > 1 for w in words):
        return "no name: all capitals"
    return "no name: one capitalised word" if len(words) == 1 else "no name: run of capitals"


def _sets(path: Path) -> dict[str, list[Path]]:
    files = [path] if path.is_file() else sorted(path.rglob("*.conll*"))
    out: dict[str, list[Path]] = {}
    for file in files:
        name = file.parent.name if path.is_dir() and file.parent != path else file.name.split(".")[0]
        out.setdefault(name, []).append(file)
    return out


def _table(scores: Mapping[str, Score]) -> Iterator[str]:
    heads = list(next(iter(scores.values())).measures())
    yield "| spans | sentences | names | predicted | " + " | ".join(heads) + " |"
    yield "|" + "---|" * (len(heads) + 4)
    for name, counts in scores.items():
        numbers = " | ".join(f"{value:.3f}" for value in counts.measures().values())
        yield f"| {name} | {counts.sentences:,} | {counts.names:,} | {counts.predictions:,} | {numbers} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables of every data set under PATH; return 0, or 2 with a sentence when there is none."""
    parser = argparse.ArgumentParser(prog="python -m eval.ner", description=__doc__)
    parser.add_argument("path", type=Path, help="a CoNLL file, or a folder of them")
    parser.add_argument("--kinds", type=int, default=10, help="how many kinds of error to list (default 10)")
    options = parser.parse_args(arguments)
    sets = _sets(options.path) if options.path.exists() else {}
    if not sets:
        print(
            f"There is no CoNLL file at {options.path}; give a file, or a folder with *.conll files.", file=sys.stderr
        )
        return 2
    for name, files in sets.items():
        sentences = [sentence for file in files for sentence in read_conll(file)]
        every, longest = score(sentences), score(sentences, maximal=True)
        print(f"\n## {name}\n")
        print("\n".join(_table({"all": every, "maximal only": longest})))
        total = every.errors.total()
        print(f"\n| kind of error (all spans) | count | share of {total:,} |\n|---|---|---|")
        for kind, count in sorted(every.errors.items(), key=lambda e: (-e[1], e[0]))[: options.kinds]:
            print(f"| {kind} | {count:,} | {count / total:.1%} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
