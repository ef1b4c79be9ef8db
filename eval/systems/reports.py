"""Report the reach of a system: plain text for one, one Markdown table for all, or JSON."""

from __future__ import annotations

import json as as_json
import re
import textwrap
from collections.abc import Sequence
from typing import Any

from eval.systems.model import RULES, Fusion, System, load, names
from eval.systems.verdicts import FusionReach, LegVerdict, Lists, fusion_reach, with_weights
from semmem.model.errors import InvalidInput

__all__ = ["summary_table", "system_report"]

_WIDTH = 110
_CLASSES = (
    "boost-only: moves what another leg found, never brings in a document of its own. possible: some lists let its own "
    "in. guaranteed: none can keep its first out."
)


def system_report(name: str, k: int = 10, *, weights: str | None = None, json: bool = False) -> str:
    """Return the report on the system ``name``, or on every system for ``all``, as text or JSON.

    ``weights`` are the caller's, comma-separated, for the fusions of one system that read any.
    Raises InvalidInput for a name that is not modelled, and for weights that are not numbers or are read by none.
    """
    if name == "all":
        if weights is not None:
            raise InvalidInput("Weights go with one system, not with all of them.")
        systems = [(system, _reach_of(system, k)) for system in map(load, names())]
        if json:
            return as_json.dumps([_as_dict(*one, k) for one in systems], indent=1)
        return summary_table(systems, k)
    system = load(name)
    reached = _reach_of(system, k) if weights is None else _reach_with_weights(system, k, weights)
    return as_json.dumps(_as_dict(system, reached, k), indent=1) if json else _page(system, reached, k)


def summary_table(systems: Sequence[tuple[System, Sequence[FusionReach]]], k: int) -> str:
    """Return one Markdown row for every fusion of every system."""
    rows = ["| system, version | fusion | a document that only this leg found, first "
            f"{k} | what to know |", "|---|---|---|---|"]  # fmt: skip
    for system, reached in systems:
        for one in reached:
            legs = "; ".join(f"{leg.leg} **{leg.class_}**{_needs(leg)}" for leg in one.legs)
            if len({(leg.class_, leg.needs) for leg in one.legs}) == 1:
                legs = f"every leg **{one.legs[0].class_}**{_needs(one.legs[0])}"
            about = f"{system.title}, {system.version}"
            rows.append(f"| {about} | {one.fusion.name}: {one.fusion.when} | {legs} | {one.fusion.short} |")
    dates = sorted({f"{system.read}" for system, _ in systems})
    return "\n".join([*rows, "", f"{_CLASSES} Sources read {', '.join(dates)}; what a source did not say is not here."])


def _reach_of(system: System, k: int) -> list[FusionReach]:
    return [fusion_reach(fusion, k) for fusion in system.fusions]


def _reach_with_weights(system: System, k: int, weights: str) -> list[FusionReach]:
    try:
        numbers = [float(part) for part in weights.split(",")]
    except ValueError:
        raise InvalidInput(f"Weights are numbers with commas between them, such as .7,.3, not {weights!r}.") from None
    if all(fusion.weights != "yours" for fusion in system.fusions):
        with_weights(system.fusions[0], numbers)  # says why not
    return [
        fusion_reach(with_weights(fusion, numbers) if fusion.weights == "yours" else fusion, k)
        for fusion in system.fusions
        if fusion.weights != "fixed"
    ]


def _needs(leg: LegVerdict) -> str:
    if leg.needs is None:
        return ""
    return f" (boost-only below {float(leg.needs):.3f} of the largest other weight)"


def _formula(fusion: Fusion) -> str:
    text: str = RULES[fusion.rule]
    if fusion.rule in ("rrf", "rank-scaled"):
        text = text.replace("constant", f"{fusion.constant:g}")
    if fusion.rule == "rrf":
        text += f", ranks from {fusion.origin}"
    if fusion.rule in ("rrf", "rank-scaled", "min-max"):
        text += f"; w = {', '.join(f'{leg.weight:g} {leg.name}' for leg in fusion.legs)}"
        text += {"yours": " (yours to set)", "fixed": " (fixed)", "ignored": " (what you set is not read)"}[
            fusion.weights
        ]
    return text


def _depth(fusion: Fusion, k: int) -> str:
    lists = f"{fusion.depth.at(k)} documents of each leg" if fusion.depth else "as deep as the caller makes them"
    pool = f"; the first {fusion.shown(k)} of the fused list go to the {fusion.reranker}" if fusion.pool else ""
    return lists + pool


def _page(system: System, reached: Sequence[FusionReach], k: int) -> str:
    lines = [f"{system.title}, {system.version}: read {system.read} in {system.repository} ({system.release})", ""]
    for one in reached:
        lines += [f"{one.fusion.name} ({one.fusion.when}), first {k}"]
        lines += _entry("score", _formula(one.fusion)) + _entry("lists", _depth(one.fusion, k))
        lines += _entry("floor", one.fusion.threshold)
        for leg in one.legs:
            lines += _entry(leg.leg, f"{leg.class_}{_needs(leg)}: {leg.why}")
            lines += _entry("", f"try {_lists(leg.witness)}: {_outcome(leg.witness, leg.cut)}")
            if leg.counter:
                lines += _entry("", f"and {_lists(leg.counter)}: {_outcome(leg.counter, leg.cut)}")
            if leg.copied:
                lines += _entry("", f"and with {leg.copies} copies of it in that list, {_outcome(leg.copied, leg.cut)}")
        lines += _entry("know", one.fusion.short)
        lines += _entry("mend", one.fusion.mend) if one.fusion.mend else []
        lines += [""]
    lines += [textwrap.fill(_CLASSES, _WIDTH), "", "Sources"]
    for source in system.sources:
        version, where = f" ({source.at})" if source.at else "", f":{source.lines}" if source.lines else ""
        lines += textwrap.wrap(f"{source.path}{where}{version}: {source.says}", _WIDTH, **_indents("  ", "      "))
    for what in system.not_modelled:
        lines += textwrap.wrap(f"not modelled: {what}", _WIDTH, **_indents("  ", "      "))
    return "\n".join(lines)


def _entry(label: str, text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, **_indents(f"  {label:<10} ", " " * 13))


def _indents(first: str, rest: str) -> dict[str, Any]:
    return {"initial_indent": first, "subsequent_indent": rest, "break_long_words": False, "break_on_hyphens": False}


def _outcome(lists: Lists, cut: int) -> str:
    worst, best = lists.place, lists.best_place
    if worst is None or best is None:
        return f"{lists.memory} does not come out at all"
    if best <= cut < worst:
        return f"{lists.memory} stands at place {best} to {worst} of the first {cut}, as ties are ordered"
    return f"{lists.memory} stands at place {worst}, {'within' if worst <= cut else 'beyond'} the first {cut}"


def _lists(lists: Lists) -> str:
    parts = []
    for leg, ids in lists.rankings.items():
        scores = lists.scores.get(leg, ())
        ends = dict.fromkeys(f"{float(score):g}" for score in (*scores[:2], *scores[-1:]))
        parts.append(f"{leg} [{_runs(ids)}]" + (f" with scores {', '.join(ends)}" if scores else ""))
    return "; ".join(parts)


def _runs(ids: Sequence[str]) -> str:
    """Return the ids with m1, m2, ... m9 as m1..m9."""
    out: list[str] = []
    for id in ids:
        number = re.fullmatch(r"m(\d+)", id)
        last = re.fullmatch(r"(?:m\d+\.\.)?m(\d+)", out[-1]) if out else None
        if number and last and int(number[1]) == int(last[1]) + 1:
            out[-1] = f"{out[-1].split('..')[0]}..{id}"
        else:
            out.append(id)
    return ", ".join(out)


def _as_dict(system: System, reached: Sequence[FusionReach], k: int) -> dict[str, Any]:
    fusions = []
    for one in reached:
        fusion = one.fusion
        fusions.append(
            {
                "name": fusion.name,
                "when": fusion.when,
                "rule": fusion.rule,
                "formula": _formula(fusion),
                "weights": {leg.name: leg.weight for leg in fusion.legs},
                "weights_are": fusion.weights,
                "depth": fusion.depth.at(k) if fusion.depth else None,
                "shown_to_reranker": fusion.shown(k) if fusion.pool else None,
                "threshold": fusion.threshold,
                "know": fusion.short,
                "mend": fusion.mend or None,
                "legs": {leg.leg: leg.as_dict() for leg in one.legs},
            }
        )
    about = {name: getattr(system, name) for name in ("name", "title", "repository", "version", "release")}
    sources = [{"path": s.path, "lines": s.lines, "at": s.at or system.version, "says": s.says} for s in system.sources]
    return {**about, "read": str(system.read), "k": k, "fusions": fusions, "sources": sources} | {
        "not_modelled": list(system.not_modelled)
    }
