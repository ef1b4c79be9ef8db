"""Write a result as one HTML page that needs no network: inline SVG, no script, no link."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from eval.reports import charts
from eval.reports.summary import headline, markdown
from eval.statistics.verdict import REFUSED, kind_of

__all__ = ["page", "write_reports"]

_STYLE = """
:root{color-scheme:light}
body{font:16px/1.5 system-ui,sans-serif;color:#202124;background:#fff;max-width:64rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.4rem;margin:0 0 .6rem}h2{font-size:1.15rem;margin:2.2rem 0 .5rem;border-bottom:1px solid #dadce0}
.verdict{font-size:1.25rem;line-height:1.4;padding:1rem 1.2rem;border-left:6px solid #5f6368;background:#f4f5f6}
.helps{border-color:#1a7f4b;background:#e8f5ee}.hurts{border-color:#b3261e;background:#fbeae9}
.refused{border-color:#b58900;background:#fdf6e3}
.how{font-size:.92rem;border:1px solid #dadce0;border-radius:6px;padding:.2rem 1.2rem .8rem;margin:1.2rem 0}
.how h2{border:0;margin:.7rem 0 .3rem;font-size:1rem}.how dl{margin:0}.how dt{font-weight:600;margin-top:.45rem}
.how dd{margin:0 0 0 1.2rem}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem;margin:.6rem 0}
th,td{padding:.25rem .6rem;border-bottom:1px solid #e8eaed;text-align:left;vertical-align:top}
td{font-variant-numeric:tabular-nums}th{background:#f8f9fa}svg{max-width:100%;height:auto}
.row{display:flex;flex-wrap:wrap;gap:1rem}code{background:#f1f3f4;padding:0 .25rem;overflow-wrap:anywhere}
"""


_HOW = (
    (
        "The sentence above",
        "The answer for the first metric over all questions, to what was asked first. Green: helps; red: hurts; grey: "
        "not separated from no difference; yellow: the question could not be asked.",
    ),
    (
        "R@10",
        "Of the memories that answer a question, the share that is among the first ten. 1 is all of them. AllGold@10 "
        "asks for every one of them; nDCG@10 also counts how far up they stand.",
    ),
    (
        "A difference and its interval",
        "The mean over the same questions, asked twice. The interval holds the true difference 95 times in 100, for "
        "questions like these. Where it has 0 in it, chance alone would do. Questions about one conversation are drawn "
        "together; below eight conversations there is no interval, below "
        "twenty a ~ says that it is approximate, and where no question differs there is none.",
    ),
    (
        "Over no edges, seeds only, convex, a random graph",
        "Other explanations of what a graph brings. The walk goes nowhere; or it only votes again for what the other "
        "legs put first; or two legs are fused better; or the edges tie what chance says. What is left over each "
        "of them is the edges' own.",
    ),
    (
        "Not separated, so many questions needed for .05",
        "Chance alone would do, which is no proof that there is no difference. With the spread of these questions, so "
        "many would show one of .05 four times in five. More questions are the remedy.",
    ),
    (
        "Found: boost-only, possible, guaranteed",
        "A leg found what stands in no list without it. At its ranks, arithmetic lets a find into the first k never, "
        "with some lists, or always. Ruled out: all finds are of the first kind, so whether the leg finds anything "
        "cannot be judged. A leg that gives the graph its seeds also finds by the graph.",
    ),
    (
        "What to do with it",
        "Read the strata: a leg may win one kind of question and lose another. Then look at private/moved.md, which "
        "shows the questions that moved most. What holds on this corpus need not hold on yours: ask it of your own "
        "notes with python -m eval make.",
    ),
)


def write_reports(out: Path) -> tuple[Path, Path]:
    """Write ``summary.md`` and ``report.html`` from ``result.json`` and, where it is, the per-question file."""
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    (out / "summary.md").write_text(markdown(result), encoding="utf-8")
    (out / "report.html").write_text(
        page(result, _values(out / "private" / "per-question.jsonl", result)), encoding="utf-8"
    )
    return out / "summary.md", out / "report.html"


def page(result: Mapping[str, Any], values: Mapping[tuple[str, str], Sequence[float]] | None = None) -> str:
    """Return the page. ``values`` maps (condition, metric) to per-question values, for the scatter plots."""
    title = f"{result['corpus']['name']}: {result['command'] or 'experiment'}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f'<h1>{escape(title)}</h1><p class="verdict {_tone(result)}">{escape(headline(result))}</p>'
        + _how_to_read()
        + "".join(_drawings(result, values or {}))
        + _html(markdown(result))
        + "</body></html>\n"
    )


def _how_to_read() -> str:
    """Return the box that explains a report to a first-time reader."""
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in _HOW)
    return f'<aside class="how"><h2>How to read this</h2><dl>{rows}</dl></aside>'


def _tone(result: Mapping[str, Any]) -> str:
    first = [c for c in result["comparisons"] if c["group"] == "headline" and c["metric"] == result["metrics"][0]]
    kinds = {kind_of(c) for c in first if not c.get("control")}
    if kinds and kinds <= set(REFUSED):
        return "refused"
    if "helps" in kinds and "hurts" not in kinds:
        return "helps"
    return "hurts" if "hurts" in kinds and "helps" not in kinds else ""


def _drawings(result: Mapping[str, Any], values: Mapping[tuple[str, str], Sequence[float]]) -> list[str]:
    out = []
    for metric in result["metrics"]:
        own = [c for c in result["comparisons"] if c["metric"] == metric]
        whole = [c for c in own if c["group"] == "headline"]
        # a setting of one value is no axis: graph.walk=pagerank beside a range of graph.alpha
        points = [c for c in whole if c["values"]]
        every = dict.fromkeys(s for c in points for s in c["values"])
        settings = [s for s in every if len({c["values"].get(s) for c in points}) > 1]
        if len(settings) == 1 and drawable(settings, points):
            out += _section(f"{metric} over {settings[0]}", charts.sweep(points, settings[0], metric))
        elif len(settings) == 2 and drawable(settings, points):
            out += _section(
                f"{metric} over {settings[0]} and {settings[1]}; r: refused", charts.heat_map(points, settings, metric)
            )
        rows = own if len(own) <= 40 else whole
        if len(points) < len(whole) or not drawable(settings, points):
            out += _section(f"Differences in {metric}", charts.forest(rows, metric))
    shown = [(n, c["components"]) for n, c in result["conditions"].items() if c["components"]]
    out += _section("What the score of the first places is made of", *(charts.components(n, c) for n, c in shown[:6]))
    metric = result["metrics"][0]
    judged = [
        c
        for c in result["comparisons"]
        if c["group"] == "headline" and c["metric"] == metric and kind_of(c) not in REFUSED and not c["values"]
    ]
    dots = [
        charts.scatter(c, values[c["base"], metric], values[c["other"], metric])
        for c in judged[:6]
        if (c["base"], metric) in values and (c["other"], metric) in values
    ]
    return out + _section("Question by question: above the line is better, a larger dot is more questions", *dots)


def drawable(settings: Sequence[str], comparisons: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the settings that a sweep turned are its axes: one or two, of numbers."""
    numbers = all(not isinstance(c["values"].get(s), str) for c in comparisons for s in settings)
    return len(settings) in (1, 2) and numbers


def _section(title: str, *drawings: str) -> list[str]:
    parts = [d for d in drawings if d]
    return [f'<h2>{escape(title)}</h2><div class="row">{"".join(parts)}</div>'] if parts else []


def _values(path: Path, result: Mapping[str, Any]) -> dict[tuple[str, str], list[float]]:
    """Return headline values by condition and metric; the file is absent where only the aggregates were kept."""
    out: dict[tuple[str, str], list[float]] = defaultdict(list)
    if not path.is_file():
        return out
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if not row["apart"]:
            for metric in result["metrics"]:
                out[row["condition"], metric].append(row[metric])
    return out


def _html(text: str) -> str:
    """Turn the few forms of the summary (headings, tables, paragraphs, code) into HTML; its title is left out."""
    out, rows = [], list[list[str]]()
    for line in [*text.split("\n"), ""]:
        if line.startswith("|"):
            cells = [c.strip().replace("\\|", "|") for c in line.strip("|").split(" | ")]
            if not set(line) <= set("|-"):
                rows.append(cells)
            continue
        if rows:
            head, *body = rows
            table = "<tr>" + "".join(f"<th>{escape(c.strip('| '))}</th>" for c in head) + "</tr>"
            table += "".join("<tr>" + "".join(f"<td>{escape(c.strip('| '))}</td>" for c in r) + "</tr>" for r in body)
            out.append(f'<div class="wide"><table>{table}</table></div>')
            rows = []
        if line.startswith("## "):
            out.append(f"<h2>{escape(line[3:])}</h2>")
        elif line and not line.startswith(("# ", "**")):
            pieces = escape(line).split("`")
            out.append("<p>" + "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces)) + "</p>")
    return "".join(out)
