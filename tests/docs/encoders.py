"""The tables of embedders: how much each finds, what it costs, and which to choose; made from committed results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["ENCODERS", "costs", "rows", "share"]

RESULTS = Path(__file__).resolve().parents[2] / "eval" / "results"


@dataclass(frozen=True, slots=True)
class Encoder:
    """An embedder of the table: its name in ``encoders.json``, its result of ``best-leg`` and advice."""

    measured_as: str
    result: str | None
    languages: str
    choose: str


ENCODERS: Mapping[str, Encoder] = {
    "minilm": Encoder("all-MiniLM-L6-v2", "minilm", "English", "to begin: it is the default"),
    "all-mpnet-base-v2": Encoder("all-mpnet-base-v2", "mpnet", "English", "if notes matter more than time"),
    "all-mpnet-base-v2-int8": Encoder("all-mpnet-base-v2-int8", None, "English", "for the same on less disk"),
    "multilingual-e5-small": Encoder("multilingual-e5-small", "e5", "a hundred", "for other languages"),
}
SETS = {"agentnotes_a": "notes", "harbour": "harbour", "locomo3": "conversations"}


@cache
def _result(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def costs(encoder: Encoder) -> Mapping[str, Any]:
    """Return what ``python -m eval.encoders`` measured."""
    found: Mapping[str, Any] = _result("encoders")["encoders"][encoder.measured_as]
    return found


def rows(metrics: Sequence[str], *, intervals: bool) -> Iterator[list[str]]:
    """Yield the head of the table and a line for each embedder: its metrics on each set, and its costs."""
    yield ["", *SETS.values(), "ms a question", "MB", "languages", "choose it"]
    for name, encoder in ENCODERS.items():
        cost = costs(encoder)
        found = [_found(encoder, data, metrics, intervals=intervals) for data in SETS]
        time, size = f"{cost['question_ms']:.0f}", f"{cost['bytes'] / 1e6:,.0f}"
        yield [f"`{name}`", *found, time, size, encoder.languages, encoder.choose]


def _found(encoder: Encoder, data: str, metrics: Sequence[str], *, intervals: bool) -> str:
    """Return the headline of ``default`` on a set; a dash where nobody measured."""
    if encoder.result is None:
        return "–"
    table = _result(f"best-leg-{encoder.result}")["rows"]
    of = {row["metric"]: row for row in table if (row["data"], row["stratum"]) == (data, "headline")}
    return " / ".join(share(of[metric], interval=intervals) for metric in metrics) if of else "–"


def share(row: Mapping[str, Any], *, interval: bool = True) -> str:
    """Return a share as .855, with its interval where it has one."""
    low, high = (row["interval"] if interval else None) or (0, 0)
    value = _number(row["value"])
    return f"{value} [{_number(low)},&nbsp;{_number(high)}]" if low < high else value


def _number(value: float) -> str:
    return f"{value:.3f}".removeprefix("0") if value < 1 else "1"
