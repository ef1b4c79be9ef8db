"""Write the result of a run as Markdown with two plots."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

__all__ = ["head", "markdown", "plot", "row"]

_COUNTS = {"files": "files", "functions": "functions", "calls": "calls", "round_trips": "round trips"}
"""What the report says of a verb's path, of all that is counted; bench.json has the rest."""
_INGEST = {
    "memories_per_s": "memories per second",
    "remember_s": "seconds in all",
    "grown_mb": "MiB that this process grew by, where they came as one stream",
    "database_s": "seconds in the database",
    "maintain_s": "seconds of maintain",
    "index_s": "of these, seconds of the index of vectors",
    "extraction_per_s": "texts extracted per second",
    "embedding_per_s": "texts embedded per second",
    "sentence_transformers_per_s": "the same by sentence-transformers",
    "text_in_per_s": "memories per second, text in: extracted, embedded and stored",
}


def markdown(result: Mapping[str, Any]) -> str:
    """Return the tables of a run: recalls, other systems with ratios, ingest, space, growth."""
    sizes = sorted(result["sizes"], key=int)
    rows = result["sizes"]
    titles = [f"{int(size):,}{'' if rows[size].get('in_memory', True) else ' (not in memory)'}" for size in sizes]
    out = [
        "# What a recall and an ingest take",
        "",
        f"semmem {result['version']}, {result['machine']}, {result['at']}; seed {result['seed']}, "
        f"{result['questions']} questions in {result['rounds']} rounds, {result['namespaces']} namespaces. Absolute "
        "times are those of this machine in this run; compare ratios.",
        "",
        "## Recall, p50 / p95 in milliseconds, and the growth exponent x of time ~ n^x; of a recall from memory over "
        "the sizes in memory",
        "",
        *head(["", *titles, "x"]),
    ]
    names = [name for name in dict.fromkeys(n for size in sizes for n in rows[size]["recall"]) if name != "found"]
    for name in names:
        if name == "legs":
            legs = dict.fromkeys(leg for size in sizes for leg in rows[size]["recall"]["legs"])
            for leg in legs:
                cells = [_times(rows[size]["recall"]["legs"].get(leg)) for size in sizes]
                out.append(row([f"leg: {leg}", *cells, _number(result["growth"].get(f"leg: {leg}"))]))
            continue
        cells = [_times(rows[size]["recall"].get(name)) for size in sizes]
        out.append(row([name, *cells, _number(result["growth"].get(name))]))
    out += ["", "## Beside others: p50 in milliseconds, text in / vectors given; in brackets semmem's over theirs", ""]
    out += head(["", *titles])
    out.append(row(["semmem", *(_pair(rows[size]["recall"]) for size in sizes)]))
    reasons = []
    for name in dict.fromkeys(n for size in sizes for n in rows[size]["others"]):
        cells = []
        for size in sizes:
            other = rows[size]["others"].get(name, {"skipped": ""})
            ratio = result["ratios"].get(size, {}).get(name)
            if "skipped" in other:
                reasons.append(other["skipped"])
            cells.append(f"{_pair(other)} ({ratio['text in']} / {ratio['vectors given']})" if ratio else "")
        out.append(row([name, *cells]))
    out += ["", *dict.fromkeys(f"- {why}" for why in reasons if why)]
    out += ["", "## Ingest, vectors given", "", *head(["", *titles])]
    for key, name in _INGEST.items():
        out.append(row([name, *(_number(rows[size]["ingest"].get(key)) for size in sizes)]))
    for name in dict.fromkeys(n for size in sizes for n in rows[size]["others"]):
        cells = [_number(rows[size]["others"].get(name, {}).get("memories_per_s")) for size in sizes]
        if any(cells):
            out.append(row([f"{name}, {_INGEST['memories_per_s']}", *cells]))
    growths = [result["growth"].get(name) for name in ("ingest", "ingest, without maintain")]
    with_maintain, without = ("it takes two sizes" if one is None else _number(one) for one in growths)
    out += ["", f"Growth exponent of ingest, maintain included: {with_maintain}; without it: {without}."]
    out += ["", "## Space, in MiB", "", *head(["", *titles])]
    out.append(row(["on disk", *(_mib(rows[size]["space"]["bytes"]) for size in sizes)]))
    for table in dict.fromkeys(t for size in sizes for t in rows[size]["space"]["tables"]):
        out.append(row([f"table {table}", *(_mib(rows[size]["space"]["tables"].get(table, 0)) for size in sizes)]))
    resident = (
        ("resident_mb", "resident, this process, with the models and texts of the benchmark"),
        ("server_mb", "resident, connections of the server"),
    )
    for key, name in resident:
        out.append(row([name, *(_number(rows[size]["space"][key]) for size in sizes)]))
    if result.get("path"):
        out += ["", "## What a verb passes through (counted, not timed)", "", *head(["", *_COUNTS.values()])]
        out += [row([name, *(str(counts[what]) for what in _COUNTS)]) for name, counts in result["path"]]
    return "\n".join(out) + "\n"


def plot(result: Mapping[str, Any]) -> str:
    """Return an SVG of p50 over the number of memories, both axes logarithmic: semmem and the others."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib.figure import Figure

    sizes = sorted(result["sizes"], key=int)
    figure = Figure(figsize=(10, 4), layout="constrained")
    for axes, what in zip(figure.subplots(1, 2), ("text in", "vectors given"), strict=True):
        lines = {"semmem": {int(size): result["sizes"][size]["recall"][what]["p50_ms"] for size in sizes}}
        for size in sizes:
            for name, other in result["sizes"][size]["others"].items():
                if what in other:
                    lines.setdefault(name, {})[int(size)] = other[what]["p50_ms"]
        for name, line in lines.items():
            axes.plot(list(line), list(line.values()), "o-", label=name, lw=2.4 if name == "semmem" else 1.2)
        axes.set(xscale="log", yscale="log", title=f"{what}, p50", xlabel="memories", ylabel="ms")
        axes.legend(fontsize=8, loc="upper left")
        axes.grid(alpha=0.3)
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def head(cells: list[str]) -> list[str]:
    """Return the first two lines of a table."""
    return [row(cells), "|" + "---|" * len(cells)]


def row(cells: list[str]) -> str:
    """Return a line of a table."""
    return "| " + " | ".join(cells) + " |"


def _times(times: Any) -> str:
    return f"{times['p50_ms']:g} / {times['p95_ms']:g}" if times else ""


def _pair(recalls: Mapping[str, Any]) -> str:
    return " / ".join(f"{recalls[what]['p50_ms']:g}" for what in ("text in", "vectors given"))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f}"
