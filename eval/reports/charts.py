"""Draw charts as inline SVG with matplotlib: no network, the reader's own fonts."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from eval.statistics.verdict import REFUSED, kind_of

__all__ = ["components", "forest", "heat_map", "panels", "scatter", "svg", "sweep"]

_COLOURS = {"helps": "#1a7f4b", "hurts": "#b3261e", "not separated": "#5f6368", "described only": "#5f6368"}
_LEGS = {"lexical": "#4c78a8", "dense": "#f58518", "graph": "#54a24b", "exact": "#b279a2", "reserve": "#9d755d"}
_REACH = "what the leg can do (a cross: no verdict there)"
_ZONES = {"unreachable": "#e0e0e0", "boost-only": "#fbe3e1", "possible": "#fdf3d8", "guaranteed": "#dff2e5"}


def panels(rows: int, columns: int, *, width: float, height: float) -> tuple[Any, list[Any]]:
    """Return a figure and its axes, row by row."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib.figure import Figure

    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "semmem", "font.size": 10})
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def _figure(width: float, height: float) -> tuple[Any, Any]:
    figure, (axes,) = panels(1, 1, width=width, height=height)
    return figure, axes


def svg(figure: Any, title: str) -> str:
    """Return a figure as SVG without a heading of XML."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Title": title})
    text = out.getvalue()
    # matplotlib's metadata is a page of links to vocabularies; a report names no address at all
    return re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)


def forest(comparisons: Sequence[Mapping[str, Any]], metric: str) -> str:
    """Return deltas with their intervals, one row a comparison; refused ones are named and have no mark."""
    rows = [c for c in comparisons if c["metric"] == metric]
    if not rows:
        return ""
    figure, axes = _figure(9, 1.2 + 0.34 * len(rows))
    for y, c in enumerate(reversed(rows)):
        if kind_of(c) in REFUSED:
            words = {"va": "center", "ha": "left", "color": "#8a6d00", "style": "italic", "fontsize": 9}
            axes.text(0.01, y, kind_of(c), transform=axes.get_yaxis_transform(), **words)
            continue
        paired, colour = c["paired"], _COLOURS[kind_of(c)]
        if paired["low"] is not None:
            axes.plot([paired["low"], paired["high"]], [y, y], color=colour, lw=2.2, solid_capstyle="round")
        axes.plot([paired["delta"]], [y], "o", color=colour, ms=6)
    axes.axvline(0, color="#202124", lw=0.8)
    several = len({c["name"] for c in rows}) > 1
    grouped = len({c["group"] for c in rows}) > 1
    groups = ["all questions" if c["group"] == "headline" else c["group"] for c in rows]
    labels_with_group = [f"{c['name']}: {g}" if grouped else c["name"] for c, g in zip(rows, groups, strict=True)]
    labels = (labels_with_group if several else groups)[::-1]
    axes.set_yticks(range(len(rows)), labels)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlabel(f"difference in {metric}, interval at 95 %")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return svg(figure, f"Differences in {metric}")


def _end(paired: Mapping[str, Any], end: str) -> float:
    return float(paired["delta"] if paired[end] is None else paired[end])


def sweep(comparisons: Sequence[Mapping[str, Any]], setting: str, metric: str) -> str:
    """Return the curve of a one-setting sweep over its zones of reach, with the leg-only memories under it."""
    rows = sorted((c for c in comparisons if setting in c["values"]), key=lambda c: c["values"][setting])
    if len(rows) < 2:
        return ""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib.figure import Figure

    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "semmem", "font.size": 10})
    studied = any(c["leg"] for c in rows)  # where no leg is, none can be the only one that found something
    figure = Figure(figsize=(9, 5 if studied else 3.8), layout="constrained")
    panels = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1]) if studied else (figure.subplots(),)
    top, below = panels[0], panels[-1]
    xs = [c["values"][setting] for c in rows]
    edges = [xs[0], *[(a + b) / 2 for a, b in itertools.pairwise(xs)], xs[-1]]
    labels_used: set[str] = set()
    for i, c in enumerate(rows):
        zone = _strongest(c["reach"])
        if zone is None:
            continue
        for axes in panels:
            axes.axvspan(edges[i], edges[i + 1], color=_ZONES[zone], lw=0, label=None if zone in labels_used else zone)
        labels_used.add(zone)
    judged = [c for c in rows if kind_of(c) not in REFUSED]
    if judged:
        x = [c["values"][setting] for c in judged]
        top.fill_between(
            x,
            [_end(c["paired"], "low") for c in judged],
            [_end(c["paired"], "high") for c in judged],
            color="#4c78a8",
            alpha=0.25,
            lw=0,
        )
        top.plot(x, [c["paired"]["delta"] for c in judged], "o-", color="#2b5d8a", ms=4)
    for c in rows:
        if kind_of(c) in REFUSED:
            # at the foot of the chart, not at 0: a refusal has no place on the scale
            top.plot([c["values"][setting]], [0.03], "x", color="#8a6d00", ms=5, transform=top.get_xaxis_transform())
    top.axhline(0, color="#202124", lw=0.8)
    top.set_ylabel(f"difference in {metric}")
    handles, labels = top.get_legend_handles_labels()
    zones = [(h, n) for h, n in zip(handles, labels, strict=True) if n in _ZONES]
    if zones:
        handles, labels = zip(*zones, strict=True)
        # above the axes: wherever it stood inside, it would hide some curve
        figure.legend(handles, labels, fontsize=8, loc="outside upper right", ncols=4, frameon=False, title=_REACH)
    if studied:
        width = min(b - a for a, b in itertools.pairwise(xs)) * 0.8
        below.bar(xs, [c["turnover"]["leg-only"] for c in rows], width=width, color="#54a24b")
        below.set_ylabel("finds\nin the top")
        below.set_ylim(0, max(1, *(c["turnover"]["leg-only"] for c in rows)) * 1.08)
        below.locator_params(axis="y", integer=True)
    below.set_xlabel(setting)
    return svg(figure, f"{metric} over {setting}")


def _strongest(reach: Mapping[str, str]) -> str | None:
    order = list(_ZONES)
    return max(reach.values(), key=order.index, default=None)


def heat_map(comparisons: Sequence[Mapping[str, Any]], settings: Sequence[str], metric: str) -> str:
    """Return a map of two settings: the difference in each cell, ``r`` where it was refused."""
    rows = [c for c in comparisons if all(s in c["values"] for s in settings)]
    if len(settings) != 2 or len(rows) < 4:
        return ""
    import numpy as np

    xs, ys = (sorted({c["values"][s] for c in rows}) for s in settings)
    grid = np.full((len(ys), len(xs)), np.nan)
    for c in rows:
        if kind_of(c) not in REFUSED:
            grid[ys.index(c["values"][settings[1]]), xs.index(c["values"][settings[0]])] = c["paired"]["delta"]
    figure, axes = _figure(min(2.5 + 0.75 * len(xs), 10), 1.8 + 0.4 * len(ys))
    most = float(np.nanmax(np.abs(grid))) if np.isfinite(grid).any() else 0.0
    most = most or 1.0  # no difference anywhere: all one colour
    image = axes.imshow(grid, cmap="RdBu", vmin=-most, vmax=most, aspect="auto", origin="lower")
    for j in range(len(ys)):
        for i in range(len(xs)):
            value = grid[j, i]
            text = "r" if np.isnan(value) else f"{value:+.3f}"
            dark = not np.isnan(value) and abs(value) > 0.6 * most
            axes.text(i, j, text, ha="center", va="center", fontsize=8, color="white" if dark else "#202124")
    axes.set_xticks(range(len(xs)), [f"{x:g}" for x in xs])
    axes.set_yticks(range(len(ys)), [f"{y:g}" for y in ys])
    axes.set_xlabel(settings[0])
    axes.set_ylabel(settings[1])
    figure.colorbar(image, label=f"difference in {metric}")
    return svg(figure, f"{metric} over {settings[0]} and {settings[1]}")


def components(name: str, places: Sequence[Mapping[str, float]]) -> str:
    """Return the mean share of each leg in the score at each of the first places, stacked."""
    if not places:
        return ""
    figure, axes = _figure(5, 3)
    bottom = [0.0] * len(places)
    ranks = range(1, len(places) + 1)
    for leg in sorted(
        {leg for shares_of in places for leg in shares_of},
        key=lambda leg: list(_LEGS).index(leg) if leg in _LEGS else 99,
    ):
        shares = [one.get(leg, 0.0) for one in places]
        axes.bar(ranks, shares, bottom=bottom, label=leg, color=_LEGS.get(leg))
        bottom = [b + s for b, s in zip(bottom, shares, strict=True)]
    axes.set_xticks(list(ranks))
    axes.set_xlabel("place")
    axes.set_ylabel("score, mean")
    axes.set_title(name, fontsize=10)
    axes.legend(fontsize=8, loc="upper right")  # the best place takes long to find where the machine is busy
    axes.spines[["top", "right"]].set_visible(False)
    return svg(figure, f"Components of {name}")


def scatter(comparison: Mapping[str, Any], base: Sequence[float], other: Sequence[float]) -> str:
    """Return one dot a question: base across, other up; a dot's size is how many questions lie there."""
    from collections import Counter

    spots = Counter(zip((round(v, 4) for v in base), (round(v, 4) for v in other), strict=True))
    figure, axes = _figure(4.2, 4)
    for (x, y), n in spots.items():
        colour = _COLOURS["helps"] if y > x else _COLOURS["hurts"] if y < x else "#9aa0a6"
        axes.plot([x], [y], "o", color=colour, ms=3 + 2.2 * n**0.5, alpha=0.7)
    axes.plot([0, 1], [0, 1], color="#202124", lw=0.6)
    axes.set_xlabel(f"{comparison['metric']} of a question: {comparison['base']}", fontsize=9)
    axes.set_ylabel(comparison["other"], fontsize=9)
    axes.set_title(comparison["name"], fontsize=9)
    return svg(figure, comparison["name"])
