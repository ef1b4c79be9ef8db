"""Make the tables of decision records from committed results, so that a record prints what a result says.

A record describes its table in an HTML comment; the lines under it are made from the results, and a test makes them
again:

    <!-- table
    kind = "differences"
    results = { agentnotes_a = "agentnotes_a-ingredients", locomo3 = "locomo3-ingredients" }
    metrics = ["R@10", "nDCG@10"]
    -->

Differences that remain significant after Holm's correction over all tests of the table are bold. A difference without
an interval has no spread (no question differs) or fewer than six draws; a dash marks a row that changes no list there.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from eval.datasets import DatasetError
from eval.statistics.significance import ALPHA, FEWEST, holm

__all__ = ["made", "number", "rewritten", "stale"]

_TABLE = re.compile(r"(?m)^<!-- table\n(?P<spec>(?:.*\n)*?)-->\n(?:\|.*\n)*")
Result: TypeAlias = Mapping[str, Any]
Row: TypeAlias = Mapping[str, Any]


def rewritten(text: str, results: Path) -> str:
    """Return a record with the tables that are made from results made again. Raises DatasetError."""
    return _TABLE.sub(lambda at: f"<!-- table\n{at['spec']}-->\n" + "\n".join(made(at["spec"], results)) + "\n", text)


def stale(text: str, results: Path) -> bool:
    """Return whether a table of a record is not what its results say."""
    return rewritten(text, results) != text


def made(spec: str, results: Path) -> list[str]:
    """Return the lines of the table that ``spec`` (TOML) is of. Raises DatasetError for one that cannot be made."""
    try:
        told = tomllib.loads(spec)
        kind = _KINDS[told["kind"]]
        found = {column: _read(results, name) for column, name in told["results"].items()}
        return kind(told, found)
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise DatasetError(
            f"A table cannot be made: {error!r}; see eval/reports/tables.py for what it may say."
        ) from None


def number(value: float, *, signed: bool = True) -> str:
    """Return a number as records print it: three places, no zero before the point, a sign unless it is 0."""
    text = f"{abs(value):.3f}"
    short = text[1:] if text.startswith("0.") else text
    sign = "" if not signed or short == ".000" else "-" if value < 0 else "+"
    return f"{sign}{short}"


def _read(results: Path, name: str) -> Result:
    path = results / f"{name}.json"
    if not path.is_file():
        raise DatasetError(f"A table names the result {name}, which is not kept; measure it and keep it.")
    found: Result = json.loads(path.read_text(encoding="utf-8"))
    if 1 < found["corpus"]["namespaces"] < FEWEST and found["schema"] < 2:
        # measured before conversations were drawn as one: its intervals and p values are of questions, and not shown
        for c in found["comparisons"]:
            if "paired" in c:
                c["paired"] |= {"low": None, "high": None, "p": None, "p_holm": None}
                c["verdict"] = "described only"
    return found


def _differences(told: Mapping[str, Any], results: Mapping[str, Result]) -> list[str]:
    """A row a comparison, a column a set; the first metric with its interval, the others as ``intervals`` says.

    ``less`` turns the sign. With ``comparison`` there is a row a metric.
    """
    if "comparison" in told:
        return _by_metric(told, results)
    rows = _rows(told, results)
    metrics, sign = told["metrics"], -1.0 if told.get("less") else 1.0
    group = told.get("group", "headline")
    cells = {
        (label, column, metric): _find(results[column], name, group, metric)
        for label, name in rows
        for column in results
        for metric in metrics
    }
    bold = _significant(cells)
    every, joined = told.get("intervals", "first") == "all", str(told.get("join", "; "))

    def cell(label: str, column: str) -> str:
        found = [cells[label, column, metric] for metric in metrics]
        if found[0] is None or found[0]["verdict"] == "not evaluable":
            return "–"
        shown = []
        for at, metric in zip(found, metrics, strict=True):
            text = _difference(at, sign, interval=every or metric == metrics[0])
            shown.append(f"**{text}**" if (label, column, metric) in bold else text)
        return joined.join(shown)

    head = [told.get("head", ""), *results]
    return _lines(head, [[label, *(cell(label, column) for column in results)] for label, _ in rows])


def _by_metric(told: Mapping[str, Any], results: Mapping[str, Result]) -> list[str]:
    group = told.get("group", "headline")
    cells = {(m, c): _find(results[c], told["comparison"], group, m) for m in told["metrics"] for c in results}
    bold = _significant(cells)

    def cell(metric: str, column: str) -> str:
        text = _difference(cells[metric, column], 1.0, interval=True)
        return f"**{text}**" if (metric, column) in bold else text

    return _lines([told.get("head", ""), *results], [[m, *(cell(m, c) for c in results)] for m in told["metrics"]])


def _verdicts(told: Mapping[str, Any], results: Mapping[str, Result]) -> list[str]:
    """A row a comparison, a column a set: verdict, difference, leg-only memories and how many of them are gold."""
    metric = told["metrics"][0]
    rows = _rows(told, results)

    def cell(name: str, column: str) -> str:
        at = _find(results[column], name, told.get("group", "headline"), metric)
        if at is None:
            return "–"
        if at["verdict"] == "not evaluable":
            return str(at["verdict"])
        said = f"{at['verdict']} {_difference(at, 1.0, interval=True)}"
        moved = at["turnover"]
        gold = f" ({moved['leg-only gold']})" if "leg-only gold" in moved else ""
        return f"{said}, leg-only {moved['leg-only']}{gold}" if at["leg"] else said

    return _lines(
        [told.get("head", ""), *results], [[label, *(cell(name, c) for c in results)] for label, name in rows]
    )


def _measures(told: Mapping[str, Any], results: Mapping[str, Result]) -> list[str]:
    """A row a condition, a column a set: the means of the metrics over all questions of the headline."""
    rows = told.get("rows") or {name: name for name in next(iter(results.values()))["conditions"]}
    group = told.get("group", "headline")

    def cell(name: str, column: str) -> str:
        condition = results[column]["conditions"].get(name)
        if condition is None or group not in condition["measures"]:
            return "–"
        return " / ".join(number(condition["measures"][group][m], signed=False) for m in told["metrics"])

    return _lines(
        [told.get("head", ""), *results], [[label, *(cell(name, c) for c in results)] for label, name in rows.items()]
    )


def _grid(told: Mapping[str, Any], results: Mapping[str, Result]) -> list[str]:
    """Two settings of a sweep of one set: the mean of the metric, leg-only memories and how many of them are gold."""
    (result,) = results.values()
    (down, downs), (across, acrosses) = told["down"], told["across"]
    metric = told["metrics"][0]
    cells = {
        (a, b, metric): _find(result, f"{down}={a:g} {across}={b:g}", "headline", metric)
        for a in downs
        for b in acrosses
    }
    bold = _significant(
        {at: c for at, c in cells.items() if c is not None and c["verdict"] in ("helps", "hurts", "no difference")}
    )

    def cell(a: float, b: float) -> str:
        at = cells[a, b, metric]
        tested = (at or {}).get("paired") or (at or {}).get("reranking")
        if at is None or tested is None:
            return "–"
        moved = at["turnover"]
        text = f"{number(tested['mean'], signed=False)} ({moved['leg-only']}, {moved.get('leg-only gold', 0)})"
        if at["verdict"] == "re-ranking only":
            return f"*{text}*"
        return f"**{text}**" if (a, b, metric) in bold and tested["delta"] > 0 else text

    head = [down.rpartition(".")[2], *(f"{across.rpartition('.')[2]} {b:g}" for b in acrosses)]
    return _lines(head, [[f"{a:g}", *(cell(a, b) for b in acrosses)] for a in downs])


_KINDS: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Result]], list[str]]] = {
    "differences": _differences,
    "grid": _grid,
    "measures": _measures,
    "verdicts": _verdicts,
}


def _rows(told: Mapping[str, Any], results: Mapping[str, Result]) -> list[tuple[str, str]]:
    """Return label and comparison of every row: those named, or all that any of the results has, controls last."""
    if "rows" in told:
        return list(told["rows"].items())
    names: dict[str, bool] = {}
    for result in results.values():
        for c in result["comparisons"]:
            names.setdefault(c["name"], bool(c.get("control")))
    wanted = [name for name, control in names.items() if told.get("controls", True) or not control]
    return [(name, name) for name in wanted]


def _find(result: Result, name: str, group: str, metric: str) -> Row | None:
    wanted = (name, group, metric)
    return next((c for c in result["comparisons"] if (c["name"], c["group"], c["metric"]) == wanted), None)


def _significant(cells: Mapping[Any, Row | None]) -> set[Any]:
    """Return the cells that Holm's correction over all that was tested for the table leaves."""
    tested = {at: paired["p"] for at, paired in _tested(cells) if paired["p"] is not None}
    adjusted = holm(list(tested.values()))
    return {at for at, p in zip(tested, adjusted, strict=True) if p < ALPHA}


def _tested(cells: Mapping[Any, Row | None]) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    for at, c in cells.items():
        if c is not None and "paired" in c:
            yield at, c["paired"]


def _difference(c: Row | None, sign: float, *, interval: bool) -> str:
    at = (c or {}).get("paired") or (c or {}).get("reranking")
    if at is None:
        return "–"
    text = number(sign * at["delta"])
    if interval and at["low"] is not None and at["low"] != at["high"]:
        low, high = sorted((sign * at["low"], sign * at["high"]))
        text += f" [{number(low)}, {number(high)}]"
    return text


def _lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return (
        ["| " + " | ".join(row) + " |" for row in [head]]
        + ["|" + "---|" * len(head)]
        + ["| " + " | ".join(row) + " |" for row in rows]
    )
