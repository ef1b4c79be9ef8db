"""Memories written with vectors of three dimensions, so that every number can be worked out by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from semmem.extractors import Rules
from semmem.model.store import Store
from semmem.model.types import Filters, IngestReport
from semmem.write.ingest import Ingest

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ANY = Filters()
ODD_IDS = (
    "a", "A", "a#1", "a#2", "#", "#1", "a#", "a#01", "O'Brien", 'say "hi"', "back\\slash", "{curly,\"list\"}", "NULL",
    "semi;colon -- comment", "%s %(x)s", "tab\tnewline\n", " leading and trailing ", "🦊", "é", "e\u0301", "ß", "İ",
    "汉字", "\u202eright to left", "x" * 1000, "é" * 1000,
)  # fmt: skip


def write(store: Store, *items: dict[str, Any], namespace: str = "n", on_error: Any = "abort") -> IngestReport:
    """Remember ``items``; a text that is left out is the id."""
    ingest = Ingest(store, Rules(), lambda: "no embedder")
    whole = [{"text": f"text of {item.get('id')}", "created_at": NOON} | item for item in items]
    return ingest.remember_many(whole, namespace=namespace, batch_size=500, on_error=on_error, progress=None)


def ids(memories: Any) -> list[str]:
    return [m.id for m in memories]


def row_id_of(store: Store, id: str, namespace: str = "n") -> int:
    (row_id,) = store.row_ids_of(namespace, id)
    return row_id


def shown(postings: Any) -> dict[str, dict[int, list[Any]]]:
    """Return what ``store.postings`` did, as plain lists, by namespace and key."""
    return {n: {at: sorted(entries.tolist()) for at, entries in found.items()} for n, found in postings.items()}


def unit(*values: float) -> Any:
    vector = np.array(values, dtype=np.float64)
    return (vector / np.linalg.norm(vector)).astype(np.float32)
