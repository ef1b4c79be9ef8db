"""Fit and measure the confidence of a recall: does it separate questions with an answer from those without one?

Each set is asked its own questions, answerable and unanswerable ones; its answerable ones again with the answers
excluded; and some questions of the other sets, which it cannot answer. The curve of semmem.read.candidates is
fitted to them all, each set and each kind of unanswerable question with the same weight, and once without each set,
which is then measured. Weights are held at 0 or above, so that more of a match is never less confidence.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eval.datasets import Corpus, DatasetError
from semmem.embedders.fitted import Curve, FittedCurve
from semmem.model.reports import counted
from semmem.read.candidates import CURVES, curve, embedder_of, matches

__all__ = [
    "CANNOT_TELL", "KINDS", "THRESHOLDS", "Row", "ask", "auc", "fit", "fitted_curve", "kept_by_floor", "markdown",
    "report",
]  # fmt: skip

KINDS = ("its own", "taken out", "of another set")
"""Unanswerable questions: those of the set itself, answered ones whose answers are left out, and those of others."""
CANNOT_TELL = (
    "Confidence tells a question about something else; it cannot tell that the answer to a question about these "
    "memories is not among them."
)
THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7)
ANSWERED = "answered"
FOREIGN = 20
"""Questions taken of each other set."""
_HOLD, _STEP, _STEPS = 0.025, 2.0, 3_000


@dataclass(frozen=True, slots=True)
class Row:
    """One question that was asked: of which kind, how well the first memory of each leg matched, by which embedder."""

    kind: str
    matches: Mapping[str, float]
    embedder: str = ""


def ask(mem: Any, corpus: Corpus, others: Mapping[str, Sequence[str]], say: Callable[[str], None]) -> list[Row]:
    """Ask a store that holds ``corpus`` all questions of the corpus and some of ``others``; return a row for each.

    Raises DatasetError where the lexical or the dense leg could not answer.
    """
    draw = random.Random(corpus.name)
    rows: list[Row] = []
    for kind, question, namespace, exclude in _questions(corpus, others, draw):
        recall = mem.recall(question, namespace=namespace, exclude=exclude)
        if set(recall.degraded) & {"lexical", "dense"}:
            raise DatasetError(f"A leg could not answer: {dict(recall.degraded)}; nothing was measured.")
        rows.append(Row(kind, matches(recall.candidates), embedder_of(recall.candidates)))
    say(f"{corpus.name}: {counted(len(rows), 'question')} asked")
    return rows


def _questions(
    corpus: Corpus, others: Mapping[str, Sequence[str]], draw: random.Random
) -> Iterator[tuple[str, str, str, list[str]]]:
    """Yield (kind, question, namespace, ids to leave out)."""
    for query in corpus.queries:
        answerable = bool(query.gold) and not query.apart
        yield (ANSWERED if answerable else KINDS[0]), query.text, query.namespace, []
        if answerable:
            yield KINDS[1], query.text, query.namespace, list(query.gold_memories)
    for name in sorted(others):
        for text in draw.sample(list(others[name]), min(FOREIGN, len(others[name]))):
            yield KINDS[2], text, draw.choice(corpus.namespaces), []


def fit(sets: Mapping[str, Sequence[Row]], legs: tuple[str, ...]) -> Curve:
    """Return the weights of ``legs`` and the constant that fit the rows of all sets, by gradient descent.

    Half of the weight is on answered questions, and each set and each kind in it has the same. A penalty of
    ``_HOLD`` times the squared weights keeps them finite. It counts a weight in units of the spread of its leg's
    matches, because the cosines of some embedders all lie within a tenth: adr/0106.
    """
    features: list[list[float]] = []
    labels: list[bool] = []
    weights: list[float] = []
    for rows in sets.values():
        groups = {kind: [r for r in rows if r.kind == kind] for kind in (ANSWERED, *KINDS)}
        kind_count = sum(1 for kind in KINDS if groups[kind])
        for kind, group in groups.items():
            if not group:
                continue
            share = 1.0 if kind == ANSWERED else 1.0 / max(1, kind_count)
            features += [[r.matches.get(leg, 0.0) for leg in legs] for r in group]
            labels += [kind == ANSWERED] * len(group)
            weights += [share / len(group)] * len(group)
    x, y, w = np.array(features), np.array(labels, dtype=float), np.array(weights)
    w /= w.sum()
    mean = w @ x
    spread = np.sqrt(w @ (x - mean) ** 2)
    spread[spread == 0] = 1.0
    x = (x - mean) / spread
    slope, constant = np.zeros(len(legs)), 0.0
    for _ in range(_STEPS):
        off = w * (1 / (1 + np.exp(-(x @ slope + constant))) - y)
        slope = np.maximum(0.0, slope - _STEP * (x.T @ off + _HOLD * slope))
        constant -= _STEP * float(off.sum())
    slope /= spread
    return tuple(slope.tolist()), constant - float(slope @ mean)


def fitted_curve(result: Mapping[str, Any], floor: float) -> FittedCurve:
    """Return the curves of a report, as the recalls of an embedder use them, with a floor."""
    return FittedCurve({legs: _curve_of(result, legs) for legs in CURVES}, floor)


def kept_by_floor(
    sets: Mapping[str, Sequence[Row]], result: Mapping[str, Any], floors: Sequence[float]
) -> dict[str, dict[str, list[float]]]:
    """Return the share of each set's answered questions that each floor keeps, by the curve of all legs of a report."""
    legs = max(CURVES, key=len)
    out = {}
    for name, rows in sets.items():
        values = at(_curve_of(result, legs), legs, [row for row in rows if row.kind == ANSWERED])
        out[name] = {ANSWERED: [float((values >= floor).mean()) for floor in floors]}
    return out


def _curve_of(result: Mapping[str, Any], legs: tuple[str, ...]) -> Curve:
    fitted = result["fitted"][" + ".join(legs)]
    return tuple(fitted[leg] for leg in legs), fitted["constant"]


def at(curve_: Curve, legs: tuple[str, ...], rows: Sequence[Row]) -> NDArray[np.float64]:
    """Return the confidence of each row by a curve; shape (len(rows),)."""
    x = np.array([[r.matches.get(leg, 0.0) for leg in legs] for r in rows]).reshape(len(rows), len(legs))
    values: NDArray[np.float64] = 1 / (1 + np.exp(-(x @ np.array(curve_[0]) + curve_[1])))
    return values


def auc(answered: NDArray[np.float64], unanswered: NDArray[np.float64]) -> float:
    """Return how often an answered question has more confidence than an unanswered one; a tie is half."""
    more = answered[:, None] > unanswered[None]
    return float((more + 0.5 * (answered[:, None] == unanswered[None])).mean())


def report(sets: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """Return the curves that fit all sets, and what each set says of the one that was fitted without it.

    ``misses`` are the answered questions below a threshold, ``false alarms`` the unanswerable ones that are not.
    ``shipped`` is the same of the constants in the code, for both legs.
    """
    out: dict[str, Any] = {"fitted": {}, "left out": {}, "shipped": {}}
    for legs in sorted(CURVES):
        weights, constant = fit(sets, legs)
        of_leg = {leg: round(one, 2) for leg, one in zip(legs, weights, strict=True)}
        out["fitted"][" + ".join(legs)] = {**of_leg, "constant": round(constant, 2)}
        out["left out"][" + ".join(legs)] = {
            name: _rates(at(fit({n: r for n, r in sets.items() if n != name}, legs), legs, rows), rows)
            for name, rows in sets.items()
        }
    for name, rows in sets.items():
        out["shipped"][name] = _rates(
            np.array([curve(r.matches, r.embedder) if r.matches else 0.0 for r in rows]), rows
        )
    return out


def _rates(values: NDArray[np.float64], rows: Sequence[Row]) -> dict[str, Any]:
    kinds = np.array([r.kind for r in rows])
    answered = values[kinds == ANSWERED]
    out: dict[str, Any] = {"answered": {"questions": len(answered), "misses": _shares(answered, below=True)}}
    for kind in KINDS:
        unanswered = values[kinds == kind]
        if len(unanswered):
            alarms = _shares(unanswered, below=False)
            out[kind] = {"questions": len(unanswered), "AUC": round(auc(answered, unanswered), 3), "alarms": alarms}
    return out


def _shares(values: NDArray[np.float64], *, below: bool) -> dict[str, float]:
    return {f"{t:g}": round(float((values < t if below else values >= t).mean()), 3) for t in THRESHOLDS}


def markdown(result: Mapping[str, Any]) -> str:
    """Return the tables, of each set by the curve that was fitted without it: AUC, then rates by threshold; the curves.

    The rates of the shipped curve, which was fitted on all sets, are in the result, and no table shows them.
    """
    lines = ["| set, left out of the fit | " + " | ".join(f"AUC, {kind}" for kind in KINDS) + " |", "|---" * 4 + "|"]
    both = max(result["left out"], key=len)
    for name, one in result["left out"][both].items():
        aucs = [f"{one[kind]['AUC']:.2f} ({one[kind]['questions']})" if kind in one else "–" for kind in KINDS]
        lines.append(f"| {name} | {' | '.join(aucs)} |")
    head = [f"{t:g}" for t in THRESHOLDS]
    lines += ["", f"| set, left out of the fit; threshold | {' | '.join(head)} |", "|---" * (len(head) + 1) + "|"]
    for name, one in result["left out"][both].items():
        lines.append(f"| {name}: misses | {' | '.join(f'{v:.2f}' for v in one['answered']['misses'].values())} |")
        for kind in KINDS:
            if kind in one:
                shares = " | ".join(f"{v:.2f}" for v in one[kind]["alarms"].values())
                lines.append(f"| {name}: false alarms, {kind} | {shares} |")
    lines += ["", "Fitted on all sets, for `CURVES` or `EMBEDDER_CURVES` of semmem/read/candidates.py:", ""]
    for legs, fitted in result["fitted"].items():
        terms = " + ".join(f"{fitted[leg]:g} {leg}" for leg in legs.split(" + "))
        lines.append(f"- {legs}: {terms} + ({fitted['constant']:g})")
    return "\n".join([*lines, "", CANNOT_TELL])
