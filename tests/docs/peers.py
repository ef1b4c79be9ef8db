"""The tables that set semmem beside other systems, made from committed results."""

from __future__ import annotations

import json
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["everywhere", "on_three"]

RESULTS = Path(__file__).resolve().parents[2] / "eval" / "results"
NAMES = {
    "semmem": "semmem",
    "mem0": "mem0, infer=False",
    "Graphiti": None,
    "basic-memory": None,
    "LangGraph's store": "LangGraph PostgresStore",
    "LanceDB": "LanceDB hybrid",
    "txtai": "txtai",
}
"""The systems of the table, and the names under which they are measured; None where nobody has."""

NEEDS = {
    "semmem": "nothing: PostgreSQL comes along",
    "mem0": "a language model",
    "Graphiti": "a language model, a graph database",
    "basic-memory": "nothing",
    "LangGraph's store": "PostgreSQL, pgvector",
    "LanceDB": "nothing",
    "txtai": "nothing",
}
CALLS = {
    "semmem": "0",
    "mem0": "1,000 or more; 0 with `infer=False`",
    "Graphiti": "several thousand",
    "basic-memory": "0",
    "LangGraph's store": "0",
    "LanceDB": "0",
    "txtai": "0",
}
EXPLAINS = {
    "semmem": "each score by leg; why, and why not",
    "mem0": "–",
    "Graphiti": "the facts and their sources",
    "basic-memory": "–",
    "LangGraph's store": "a similarity",
    "LanceDB": "a score",
    "txtai": "a score, and the weight of each word",
}
"""From the documentation of each system, as generally known; no source is cited yet."""


@cache
def _result(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def _recall(of: str, name: str | None, *, bold: bool = False) -> str:
    one = _result("peers")["sets"][of]["systems"].get(name) if name else None
    if one is None:
        return "–"
    best = max(float(other["R@10"]) for other in _result("peers")["sets"][of]["systems"].values())
    words = _share(one["R@10"])
    if bold and one["R@10"] == best:
        words = f"**{words}**"
    return words if one["low"] is None else f"{words} [{_share(one['low'])},&nbsp;{_share(one['high'])}]"


def _share(value: float) -> str:
    rounded = Decimal(str(value)).quantize(Decimal("0.01"), ROUND_HALF_UP)
    return str(rounded).removeprefix("0") if value < 1 else "1"


def _milliseconds(name: str | None, size: str) -> str:
    at = _result("bench-titled")["sizes"][size]
    of = at["recall"] if name == "semmem" else at["others"].get(name)
    if not of or "skipped" in of:
        return "–"
    indexed = at["others"].get(f"{name}, index of vectors")
    more = f"; {indexed['vectors given']['p50_ms']:,.0f} with an index of vectors" if indexed else ""
    if name == "semmem":
        more = f" in memory; {of['vectors given, resident_mb=0']['p50_ms']:,.0f} from the database"
    return f"{of['vectors given']['p50_ms']:,.0f}{more}"


def _megabytes(of: str, name: str | None) -> str:
    one = _result("peers")["sets"][of]["systems"].get(name) if name else None
    return f"{one['bytes'] / 1e6:.0f}" if one and one.get("bytes") else "–"


def _table(rows: dict[str, list[str]]) -> str:
    head = ["", *NAMES]
    lines = [head, ["---"] * len(head), *([name, *cells] for name, cells in rows.items())]
    return _drawn(lines)


def on_three() -> str:
    """Return the table of the README: what a system needs, costs, finds on three sets, and explains."""
    rows = {
        "needs to run": [NEEDS[name] for name in NAMES],
        "model calls for 1,000 memories": [CALLS[name] for name in NAMES],
    }
    for of in ("harbour", "musique100", "longmemeval_mini"):
        rows[f"recall@10, {of}"] = [_recall(of, name, bold=True) for name in NAMES.values()]
    rows["ms a recall, 100,000 passages, vectors given"] = [_milliseconds(name, "100000") for name in NAMES.values()]
    rows["MB for 1,890 passages"] = [_megabytes("musique100", name) for name in NAMES.values()]
    rows["explains"] = [EXPLAINS[name] for name in NAMES]
    return _table(rows)


def everywhere() -> str:
    """Return recall@10 of every system on every set."""
    sets = dict(sorted(_result("peers")["sets"].items()))
    systems = dict.fromkeys(name for one in sets.values() for name in one["systems"])
    heads = [f"{of}, {one['corpus']['headline']} questions" for of, one in sets.items()]
    lines = [["", *heads], ["---"] * (len(heads) + 1)]
    lines += [[name, *(_recall(of, name, bold=True) for of in sets)] for name in systems]
    return _drawn(lines)


def _drawn(lines: list[list[str]]) -> str:
    return "\n".join(f"|{'|'.join(f' {cell} ' if cell != '---' else cell for cell in line)}|" for line in lines)
