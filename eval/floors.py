"""Measure a floor of confidence: how many answers it keeps, and how many prompts that nothing answers it drops.

A hook recalls for every prompt, questions or not. Each set is asked its own questions, the prompts of
``eval/data/coding_sessions`` that no memory of any set answers, and some questions of the other sets. An answer counts
as kept where it is among the hits (the limit is a hook's) and the confidence is not below the floor: an answer that no
leg finds is not lost by a floor. Each set is also measured with a curve and a floor that it had no part in.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eval.confidence import ANSWERED, FOREIGN, KINDS, Row, ask, at, fit
from eval.datasets import Corpus, DatasetError, load
from semmem.legs.lexical import bm25
from semmem.model.recipe import recipe
from semmem.read.candidates import matches
from semmem.text.passages import term_key, terms

__all__ = [
    "DROPPED",
    "FLOORS",
    "KEPT",
    "RULES",
    "SETTINGS",
    "Asked",
    "Words",
    "by_rule",
    "chosen",
    "markdown",
    "measure",
    "report",
    "unanswered_prompts",
]

FLOORS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
KEPT = 0.95
"""A floor is chosen as the highest that keeps this share of the answers, averaged over sets."""
SETTINGS: Mapping[str, tuple[str, ...]] = {"all legs": ("dense", "lexical"), "without dense": ("lexical",)}
"""MCP and a hook beside a server ask all legs; a hook that opens the store by itself leaves the dense leg out."""
DROPPED = (KINDS[2], "unrelated", "chit-chat", "acknowledgement")
"""Kinds of prompts that should bring nothing; the unanswerable questions of a set itself are reported apart."""
PROMPTS = Path(__file__).resolve().parent / "data" / "coding_sessions"
_LIMIT = 12


@dataclass(frozen=True, slots=True)
class Words:
    """Which words of a prompt its best memory by BM25 holds.

    ``asked`` and ``held`` count distinct words that are no stop words, ``share`` is the held share of their idf, where
    a word that no memory has counts most; ``rarest`` is the share of memories with the rarest word that is held.
    """

    asked: int = 0
    held: int = 0
    share: float = 0.0
    rarest: float = 1.0


RULES: Mapping[str, Callable[[float, Words], bool]] = {
    "floor .3": lambda confidence, words: confidence >= 0.3,
    "floor .35": lambda confidence, words: confidence >= 0.35,
    "floor .4": lambda confidence, words: confidence >= 0.4,
    "floor .3, two words held": lambda confidence, words: confidence >= 0.3 and words.held >= min(2, words.asked),
    "floor .35, two words held": lambda confidence, words: confidence >= 0.35 and words.held >= min(2, words.asked),
    "floor .3, two words held of two or more": lambda confidence, words: confidence >= 0.3 and words.held >= 2,
    "floor .3, .2 of the idf held": lambda confidence, words: confidence >= 0.3 and words.share >= 0.2,
    "floor .3, .3 of the idf held": lambda confidence, words: confidence >= 0.3 and words.share >= 0.3,
    "floor .3, a word held by 1 % of memories": lambda confidence, words: confidence >= 0.3 and words.rarest <= 0.01,
    "floor .3, a word held by 5 % of memories": lambda confidence, words: confidence >= 0.3 and words.rarest <= 0.05,
    "floor .35, a word held by 5 % of memories": lambda confidence, words: confidence >= 0.35 and words.rarest <= 0.05,
}
"""Rules for a recall that only the lexical leg answers: whether its hits are shown. None but a floor is in use."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One prompt: its kind, and for each setting the matches, the confidence, and whether a hit answers it."""

    kind: str
    matches: Mapping[str, Mapping[str, float]]
    confidence: Mapping[str, float]
    found: Mapping[str, bool]
    words: Words = Words()


def unanswered_prompts() -> list[tuple[str, str]]:
    """Return (kind, text) of the prompts of coding sessions that no memory of any set answers."""
    return [(query.stratum, query.text) for query in load(str(PROMPTS)).queries if query.stratum in DROPPED]


def measure(
    mem: Any, corpus: Corpus, others: Mapping[str, Sequence[str]], say: Callable[[str], None]
) -> tuple[list[Asked], list[Row]]:
    """Ask a store that holds ``corpus``; return the prompts, and the rows to which a curve is fitted."""
    rows = ask(mem, corpus, others, say)
    without = recipe(mem.recipe, weights={"dense": 0.0})
    asked = []
    for kind, text, namespace, gold in _prompts(corpus, others):
        recalls = {
            name: mem.recall(text, namespace=namespace, limit=_LIMIT, recipe=None if "dense" in legs else without)
            for name, legs in SETTINGS.items()
        }
        asked.append(
            Asked(
                kind,
                {name: matches(one.candidates) for name, one in recalls.items()},
                {name: one.confidence for name, one in recalls.items()},
                {name: any(hit.id in gold for hit in one) for name, one in recalls.items()},
                _words(mem, text, namespace),
            )
        )
    say(f"{corpus.name}: {len(asked)} prompts asked in {len(SETTINGS)} settings")
    return asked, rows


def _words(mem: Any, text: str, namespace: str) -> Words:
    """Return which words of a prompt the best memory of the namespace by BM25 holds."""
    language = mem.settings.language
    keys = {term_key(term) for term in terms(text, language)}
    if not keys:
        return Words()
    postings = mem.store.postings([namespace], keys)[namespace]
    row_ids, scores, _ = bm25(postings, dict.fromkeys(keys, 1), 1.2, 0.75)
    if not len(row_ids):
        return Words(len(keys))
    best = row_ids[int(scores.argmax())]
    memories = max(postings.memories, 1)
    idfs, held = [], []
    for _, entries in postings.items():
        df = len(entries)
        idfs.append(float(np.log(1 + (memories - df + 0.5) / (df + 0.5))))
        if best in entries["ord"]:
            held.append((idfs[-1], df / memories))
    unseen = (len(keys) - len(idfs)) * float(np.log(1 + (memories + 0.5) / 0.5))
    share = sum(idf for idf, _ in held) / (sum(idfs) + unseen)
    return Words(len(keys), len(held), share, min((df for _, df in held), default=1.0))


def _prompts(corpus: Corpus, others: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str, str, frozenset[str]]]:
    """Yield (kind, text, namespace, ids that answer)."""
    draw = random.Random(corpus.name)
    own = {query.text for query in corpus.queries}
    for query in corpus.queries:
        answerable = bool(query.gold) and not query.apart
        kind = ANSWERED if answerable else query.stratum if query.stratum in DROPPED else KINDS[0]
        yield kind, query.text, query.namespace, frozenset(query.gold_memories if answerable else ())
    for kind, text in unanswered_prompts():
        if text not in own:
            yield kind, text, draw.choice(corpus.namespaces), frozenset()
    for name in sorted(others):
        for text in draw.sample(list(others[name]), min(FOREIGN, len(others[name]))):
            yield KINDS[2], text, draw.choice(corpus.namespaces), frozenset()


def chosen(sets: Mapping[str, Mapping[str, Sequence[float]]]) -> float:
    """Return the highest floor that keeps ``KEPT`` of the answers on average over ``sets``, else the lowest."""
    fit_ = [f for i, f in enumerate(FLOORS) if np.mean([one[ANSWERED][i] for one in sets.values()]) >= KEPT]
    return fit_[-1] if fit_ else FLOORS[0]


def report(sets: Mapping[str, tuple[Sequence[Asked], Sequence[Row]]]) -> dict[str, Any]:
    """Return, for each setting, the shares by floor of each set, and what a floor chosen without a set does to it."""
    out: dict[str, Any] = {"floors": list(FLOORS), "in sample": {}, "left out": {}}
    out["rules without dense"] = {name: by_rule(asked) for name, (asked, _) in sets.items()}
    for setting, legs in SETTINGS.items():
        shipped = {n: _shares(asked, setting, [a.confidence[setting] for a in asked]) for n, (asked, _) in sets.items()}
        out["in sample"][setting] = {"chosen": chosen(shipped), "sets": shipped}
        left = out["left out"][setting] = {}
        for name in sets:
            curve = fit({n: rows for n, (_, rows) in sets.items() if n != name}, legs)
            by_set = {n: _shares(those, setting, _by(curve, legs, setting, those)) for n, (those, _) in sets.items()}
            floor = chosen({n: one for n, one in by_set.items() if n != name})
            index = FLOORS.index(floor)
            left[name] = {"floor": floor, **{kind: shares[index] for kind, shares in by_set[name].items()}}
    return out


def by_rule(asked: Sequence[Asked]) -> dict[str, dict[str, float]]:
    """Return, for each rule of the lexical leg alone, the share of answers kept and of other prompts dropped."""
    setting = "without dense"
    out: dict[str, dict[str, float]] = {}
    for name, shows in RULES.items():
        shown = np.array([shows(one.confidence[setting], one.words) for one in asked])
        answered = np.array([one.kind == ANSWERED and one.found[setting] for one in asked])
        out[name] = {ANSWERED: round(float(shown[answered].mean()), 3)} if answered.any() else {}
        for kind in DROPPED:
            of_kind = np.array([one.kind == kind for one in asked])
            if of_kind.any():
                out[name][kind] = round(1 - float(shown[of_kind].mean()), 3)
    return out


def _by(curve: Any, legs: tuple[str, ...], setting: str, asked: Sequence[Asked]) -> NDArray[np.float64]:
    values = at(curve, legs, [Row(one.kind, one.matches[setting]) for one in asked])
    return np.where([one.confidence[setting] > 0 for one in asked], values, 0.0)


def _shares(asked: Sequence[Asked], setting: str, confidence: Sequence[float] | NDArray[np.float64]) -> dict[str, Any]:
    """Return the share of answers kept at each floor, and of the prompts of each other kind the share dropped."""
    values = np.array(confidence)
    kinds = np.array([one.kind for one in asked])
    found = np.array([one.found[setting] for one in asked])
    out: dict[str, Any] = {ANSWERED: _at_each(values[(kinds == ANSWERED) & found], below=False)}
    for kind in (*DROPPED, KINDS[0]):
        if (kinds == kind).any():
            out[kind] = _at_each(values[kinds == kind], below=True)
    return out


def _at_each(values: NDArray[np.float64], *, below: bool) -> list[float]:
    if not len(values):
        raise DatasetError("A set has no question whose answer is found; give sets with answers.")
    return [round(float((values < floor if below else values >= floor).mean()), 3) for floor in FLOORS]


def markdown(result: Mapping[str, Any]) -> str:
    """Return a table for each setting: by floor the answers kept and the prompts dropped, then the left-out sets."""
    lines: list[str] = []
    for setting, one in result["in sample"].items():
        head = [f"{floor:g}" for floor in result["floors"]]
        lines += [f"| {setting}, floor | {' | '.join(head)} |", "|---" * (len(head) + 1) + "|"]
        for name, shares in one["sets"].items():
            for kind, values in shares.items():
                what = "answers kept" if kind == ANSWERED else f"dropped, {kind}"
                lines.append(f"| {name}: {what} | {' | '.join(f'{value:.2f}' for value in values)} |")
        for kind in (ANSWERED, *DROPPED):
            means = np.mean([shares[kind] for shares in one["sets"].values() if kind in shares], axis=0)
            what = "answers kept" if kind == ANSWERED else f"dropped, {kind}"
            lines.append(f"| mean of sets: {what} | {' | '.join(f'{value:.2f}' for value in means)} |")
        lines += ["", f"In sample the floor is {one['chosen']:g}.", ""]
        lines += [f"| {setting}, set left out | floor | answers kept | " + " | ".join(DROPPED) + " |", "|---" * 7 + "|"]
        for name, row in result["left out"][setting].items():
            cells = [f"{row[kind]:.2f}" if kind in row else "–" for kind in (ANSWERED, *DROPPED)]
            lines.append(f"| {name} | {row['floor']:g} | {' | '.join(cells)} |")
        lines.append("")
    lines += ["| without dense, mean of sets | answers kept, worst set | answers kept | " + " | ".join(DROPPED) + " |"]
    lines.append("|---" * 7 + "|")
    tried = result["rules without dense"].values()
    for rule in RULES:
        rows = [one[rule] for one in tried]
        means = [np.mean([row[kind] for row in rows if kind in row]) for kind in (ANSWERED, *DROPPED)]
        worst = min(row[ANSWERED] for row in rows if ANSWERED in row)
        lines.append(f"| {rule} | {' | '.join(f'{value:.2f}' for value in (worst, *means))} |")
    return "\n".join([*lines, ""])
