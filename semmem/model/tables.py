"""Memories and hits as tables: HTML for a notebook, and a DataFrame of pandas."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from semmem.model.errors import MissingExtra

if TYPE_CHECKING:
    from semmem.model.types import Hit, Memory

__all__ = ["data_frame", "hit_rows", "html_table", "memory_rows"]

_LONGEST = 300
"""Characters of a cell in a notebook."""


def memory_rows(memories: Iterable[Memory]) -> list[dict[str, Any]]:
    """Return the fields of each memory by name."""
    return [{one.name: getattr(memory, one.name) for one in dataclasses.fields(memory)} for memory in memories]


def hit_rows(hits: Iterable[Hit]) -> list[dict[str, Any]]:
    """Return rank, score, the share of each component, the snippet and the fields of the memory of each hit."""
    hits = list(hits)
    names = list(dict.fromkeys(name for hit in hits for name in hit.components))
    fields = memory_rows(hit.memory for hit in hits)
    return [
        {
            "rank": hit.rank,
            "score": hit.score,
            **{name: hit.components.get(name, 0.0) for name in names},
            "snippet": hit.snippet,
            **of,
        }
        for hit, of in zip(hits, fields, strict=True)
    ]


def html_table(caption: str, rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Return rows as an HTML table; every cell is escaped, and a long one is cut."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(row.get(name))}</td>' for name in columns)}</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    shown = "" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
    return escape(shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…")


def data_frame(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return rows as a DataFrame. Raises MissingExtra where pandas is not installed."""
    try:
        import pandas
    except ImportError as error:
        raise MissingExtra("to_pandas needs pandas, which is not installed; add it with: pip install pandas") from error
    return pandas.DataFrame([dict(row) for row in rows])
