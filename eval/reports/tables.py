"""Make the tables of decision records from committed results, so that a record prints what a result says.

A record describes its table in an HTML comment; the lines under it are made from the results, and a test makes them
again:

    <!-- table
    kind = "differences"
    results = { agentnotes_a = "agentnotes_a-ingredients", locomo3 = "locomo3-ingredients" }
    metrics = ["R@10", "nDCG@10"]
    -->

Differences that remain significant after Holm's correction over all tests of the table are bold. A difference without
an interval has no spread (no question differs) or fewer than eight draws; a dash marks a row that changes no list.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from eval.datasets import DatasetError
from eval.reports.verdicts import SUMMED, summed
from eval.statistics.significance import ALPHA, holm
from eval.statistics.verdict import kind_of

__all__ = ["number", "rewritten", "stale", "table_lines"]

_ONCE_FEWEST = 6
_TABLE = re.compile(r"(?m)^<!-- table\n(?P<spec>(?:.*\n)*?)-->\n(?:\|.*\n)*")
Result: TypeAlias = Mapping[str, Any]
Row: TypeAlias = Mapping[str, Any]


def rewritten(text: str, results: Path) -> str:
    """Return a record with the tables that are made from results made again. Raises DatasetError."""
    return _TABLE.sub(
        lambda match: f"<!-- table\n{match['spec']}-->\n" + "\n".join(table_lines(match["spec"], results)) + "\n", text
    )


def stale(text: str, results: Path) -> bool:
    """Return whether a table of a record is not what its results say."""
    return rewritten(text, results) != text


def table_lines(spec: str, results: Path) -> list[str]:
    """Return the lines of the table that ``spec`` (TOML) describes. Raises DatasetError where it cannot be made."""
    try:
        table = tomllib.loads(spec)
        kind = _KINDS[table["kind"]]
        by_column = {column: _read(results, name) for column, name in table["results"].items()}
        return kind(table, by_column)
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
    content = json.loads(path.read_text(encoding="utf-8"))
    result: Result = content.get("result", content)  # a look at a sealed set holds its result
    if 1 < result["corpus"]["namespaces"] < _ONCE_FEWEST and result["schema"] < 2:
        # measured before conversations were drawn as one: its intervals and p values are of questions, and not shown
        for c in result["comparisons"]:
            if "paired" in c:
                c["paired"] |= {"low": None, "high": None, "p": None, "p_holm": None}
                c["verdict"] = "described only"
    return result


def _differences(table: Mapping[str, Any], results: Mapping[str, Result]) -> list[str]:
    """Return a table with a row a comparison, a column a data set: the first metric with its interval.

    ``intervals = "all"`` gives the others theirs, ``less`` turns the sign, ``comparison`` has a row a metric.
    """
    if "comparison" in table:
        return _by_metric(table, results)
    rows = _rows(table, results)
    metrics, sign = table["metrics"], -1.0 if table.get("less") else 1.0
    group = table.get("group", "headline")
    cells = {
        (label, column, metric): _find(results[column], name, group, metric)
        for label, name in rows
        for column in results
        for metric in metrics
    }
    bold = _significant(cells)
    every, joined = table.get("intervals", "first") == "all", str(table.get("join", "; "))

    def cell(label: str, column: str) -> str:
        comparisons = [cells[label, column, metric] for metric in metrics]
        if comparisons[0] is None or comparisons[0]["verdict"] == "not evaluable":
            return "–"
        texts = []
        for comparison, metric in zip(comparisons, metrics, strict=True):
            text = _difference(comparison, sign, interval=every or metric == metrics[0])
            texts.append(f"**{text}**" if (label, column, metric) in bold else text)
        return joined.join(texts)

    head = [table.get("head", ""), *results]
    return _lines(head, [[label, *(cell(label, column) for column in results)] for label, _ in rows])


def _by_metric(table: Mapping[str, Any], results: Mapping[str, Result]) -> list[str]:
    group = table.get("group", "headline")
    cells = {(m, c): _find(results[c], table["comparison"], group, m) for m in table["metrics"] for c in results}
    bold = _significant(cells)

    def cell(metric: str, column: str) -> str:
        text = _difference(cells[metric, column], 1.0, interval=True)
        return f"**{text}**" if (metric, column) in bold else text

    return _lines([table.get("head", ""), *results], [[m, *(cell(m, c) for c in results)] for m in table["metrics"]])


def _verdicts(table: Mapping[str, Any], results: Mapping[str, Result]) -> list[str]:
    """Return a row a comparison, a column a set: verdict, difference, leg-only memories and the gold among them."""
    metric = table["metrics"][0]
    rows = _rows(table, results)

    def cell(name: str, column: str) -> str:
        found = _find(results[column], name, table.get("group", "headline"), metric)
        if found is None:
            return "–"
        if found["verdict"] == "not evaluable":
            return str(found["verdict"])
        text = f"{kind_of(found)} {_difference(found, 1.0, interval=True)}"
        turnover = found["turnover"]
        gold = f" ({turnover['leg-only gold']})" if "leg-only gold" in turnover else ""
        return f"{text}, leg-only {turnover['leg-only']}{gold}" if found["leg"] else text

    return _lines(
        [table.get("head", ""), *results], [[label, *(cell(name, c) for c in results)] for label, name in rows]
    )


def _measures(table: Mapping[str, Any], results: Mapping[str, Result]) -> list[str]:
    """Return a row a condition, a column a data set: the means of the metrics over all questions of the headline."""
    rows = table.get("rows") or {name: name for name in next(iter(results.values()))["conditions"]}
    group = table.get("group", "headline")

    def cell(name: str, column: str) -> str:
        condition = results[column]["conditions"].get(name)
        if condition is None or group not in condition["measures"]:
            return "–"
        return " / ".join(number(condition["measures"][group][m], signed=False) for m in table["metrics"])

    return _lines(
        [table.get("head", ""), *results], [[label, *(cell(name, c) for c in results)] for label, name in rows.items()]
    )


def _grid(table: Mapping[str, Any], results: Mapping[str, Result]) -> list[str]:
    """Return a row and a column a value of two swept settings: mean, leg-only memories and the gold among them."""
    (result,) = results.values()
    (down, downs), (across, acrosses) = table["down"], table["across"]
    metric = table["metrics"][0]
    cells = {
        (a, b, metric): _find(result, f"{down}={a:g} {across}={b:g}", "headline", metric)
        for a in downs
        for b in acrosses
    }
    bold = _significant(
        {cell: c for cell, c in cells.items() if c is not None and kind_of(c) in ("helps", "hurts", "not separated")}
    )

    def cell(a: float, b: float) -> str:
        compared = cells[a, b, metric]
        paired = (compared or {}).get("paired") or (compared or {}).get("reranking")
        if compared is None or paired is None:
            return "–"
        turnover = compared["turnover"]
        text = f"{number(paired['mean'], signed=False)} ({turnover['leg-only']}, {turnover.get('leg-only gold', 0)})"
        if kind_of(compared) == "ruled out":
            return f"*{text}*"
        return f"**{text}**" if (a, b, metric) in bold and paired["delta"] > 0 else text

    head = [down.rpartition(".")[2], *(f"{across.rpartition('.')[2]} {b:g}" for b in acrosses)]
    return _lines(head, [[f"{a:g}", *(cell(a, b) for b in acrosses)] for a in downs])


def _finds(table: Mapping[str, Any], results: Mapping[str, Result]) -> list[str]:
    """Return a row a set and a studied leg: what it found, how much of it may enter, and what did."""
    metric = table["metrics"][0]
    rows = [
        [column, c["leg"], *summed(c)]
        for column, result in results.items()
        for c in result["comparisons"]
        if (c["group"], c["metric"]) == ("headline", metric) and c.get("finds")
    ]
    return _lines(["set", "leg", *SUMMED], rows)


_KINDS: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Result]], list[str]]] = {
    "differences": _differences,
    "finds": _finds,
    "grid": _grid,
    "measures": _measures,
    "verdicts": _verdicts,
}


def _rows(table: Mapping[str, Any], results: Mapping[str, Result]) -> list[tuple[str, str]]:
    """Return label and comparison of every row: those named, or all that any of the results has, controls last."""
    if "rows" in table:
        return list(table["rows"].items())
    names: dict[str, bool] = {}
    for result in results.values():
        for c in result["comparisons"]:
            names.setdefault(c["name"], bool(c.get("control")))
    wanted = [name for name, control in names.items() if table.get("controls", True) or not control]
    return [(name, name) for name in wanted]


def _find(result: Result, name: str, group: str, metric: str) -> Row | None:
    key = (name, group, metric)
    return next((c for c in result["comparisons"] if (c["name"], c["group"], c["metric"]) == key), None)


def _significant(cells: Mapping[Any, Row | None]) -> set[Any]:
    """Return the cells that Holm's correction over all that was tested for the table leaves."""
    p_values = {cell: paired["p"] for cell, paired in _with_statistics(cells) if paired["p"] is not None}
    adjusted = holm(list(p_values.values()))
    return {cell for cell, p in zip(p_values, adjusted, strict=True) if p < ALPHA}


def _with_statistics(cells: Mapping[Any, Row | None]) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    for cell, c in cells.items():
        if c is not None and "paired" in c:
            yield cell, c["paired"]


def _difference(c: Row | None, sign: float, *, interval: bool) -> str:
    paired = (c or {}).get("paired") or (c or {}).get("reranking")
    if paired is None:
        return "–"
    text = number(sign * paired["delta"])
    if interval and paired["low"] is not None and paired["low"] != paired["high"]:
        low, high = sorted((sign * paired["low"], sign * paired["high"]))
        text += f" [{number(low)}, {number(high)}]"
    return text


def _lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return (
        ["| " + " | ".join(row) + " |" for row in [head]]
        + ["|" + "---|" * len(head)]
        + ["| " + " | ".join(row) + " |" for row in rows]
    )
