"""The tables of embedders: how much each finds, by committed results; what it costs, by records; which to choose."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["ENCODERS", "rows", "share"]

RESULTS = Path(__file__).resolve().parents[2] / "eval" / "results"


@dataclass(frozen=True, slots=True)
class Encoder:
    """An embedder of the table. ``result`` is of ``best-leg``, None where nobody has measured.

    The costs are those of adr/0062 and adr/0097: processor time on two busy cores, a passage of 85 tokens.
    ``python -m eval.encoders`` measures them.
    """

    result: str | None
    question_ms: int
    passage_ms: int
    megabytes: int
    dimensions: int
    max_tokens: int
    languages: str
    choose: str


ENCODERS: Mapping[str, Encoder] = {
    "minilm": Encoder("minilm", 6, 22, 92, 384, 256, "English", "to begin: it is the default"),
    "all-mpnet-base-v2": Encoder("mpnet", 56, 158, 443, 768, 384, "English", "if notes matter more than time"),
    "all-mpnet-base-v2-int8": Encoder("int8", 42, 170, 129, 768, 384, "English", "for nearly the same on less disk"),
    "multilingual-e5-small": Encoder("e5", 10, 48, 139, 384, 512, "a hundred", "for other languages"),
}
SETS = {"agentnotes_a": "notes", "harbour": "harbour", "locomo3": "conversations"}


@cache
def _result(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def rows(metrics: Sequence[str], *, intervals: bool) -> Iterator[list[str]]:
    """Yield the head of the table and a line for each embedder: its metrics on each set, and its costs."""
    yield ["", *SETS.values(), "ms a question", "MB", "languages", "choose it"]
    for name, encoder in ENCODERS.items():
        found = [_found(encoder, data, metrics, intervals=intervals) for data in SETS]
        costs = str(encoder.question_ms), str(encoder.megabytes)
        yield [f"`{name}`", *found, *costs, encoder.languages, encoder.choose]


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
