"""The graph is the same whatever the order of writing, batching and forgetting: its hash says so."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import semmem
from semmem.client.memory import Semmem
from semmem.stores.packed_postings import FORWARD, POSTING
from tests.stores.audit import singleton, sql

NAMES = ("Ada Lovelace", "Ada", "Lovelace", "The Who", "Who", "Bank of England", "England", "New Ada", "IT", "Port 80")
TITLES = (*NAMES, "ada lovelace", "Ada Lovelace, Countess", "Who (band)", "Ada Lovelace's Port")
WORDS = ("met", "and", "in", "the", "who", "england", "saw", ",", ".", "port", "It")
_fresh = itertools.count()

text = st.lists(st.one_of(st.sampled_from(NAMES), st.sampled_from(WORDS)), min_size=1, max_size=7).map(" ".join)
memory = st.fixed_dictionaries({"text": text, "title": st.one_of(st.none(), st.none(), st.sampled_from(TITLES))})
step = st.one_of(
    memory.map(lambda m: ("one", [m])),
    st.lists(memory, min_size=1, max_size=6).map(lambda ms: ("many", ms)),
    st.integers(0, 30).map(lambda n: ("forget", n)),
    st.just(("maintain", None)),
)


def df_is_exact(mem: Semmem) -> None:
    """Prove each posting, its df and its number of subjects against what the memories hold."""
    held: dict[Any, list[Any]] = defaultdict(list)
    waiting = set(sql(mem, "SELECT namespace, ord FROM pending"))
    for namespace, row_id, length, raw in sql(mem, "SELECT namespace, ord, length, entries FROM forward"):
        for key, count, mention, subject, _, _ in np.frombuffer(raw, dtype=FORWARD).tolist():
            if (namespace, row_id) not in waiting:
                held[namespace, key].append((row_id, count, length, mention, subject))
    found: dict[Any, list[Any]] = defaultdict(list)
    df: dict[Any, int] = defaultdict(int)
    for namespace, key, n, raw in sql(mem, "SELECT namespace, key, n, entries FROM posting"):
        found[namespace, key] += [row[:5] for row in np.frombuffer(raw, dtype=POSTING).tolist()]
        df[namespace, key] += n
    for (namespace, key), (_, _, entry) in singleton(mem).items():
        if (namespace, key) not in df:  # else its rows count
            found[namespace, key] += [row[:5] for row in np.frombuffer(entry, dtype=POSTING).tolist()]
            df[namespace, key] = sum(1 for row in found[namespace, key] if row[1] or row[3])
    assert {k: sorted(v) for k, v in found.items()} == {k: sorted(v) for k, v in held.items()}
    assert df == {k: sum(1 for row in v if row[1] or row[3]) for k, v in held.items()}
    lengths = sql(mem, "SELECT coalesce(sum(length), 0)::int FROM forward")[0][0]
    assert sql(mem, "SELECT coalesce(sum(length), 0)::int FROM namespace")[0][0] == lengths


def emptied(url: str) -> str:
    """Return ``url`` with nothing stored, so that every example of a property begins anew."""
    with psycopg.connect(url, autocommit=True, options="-c search_path=semmem,public") as connection:
        tables = connection.execute(
            "SELECT string_agg(tablename::text, ', ') FROM pg_tables WHERE schemaname = 'semmem' "
            "AND tablename NOT IN ('migration', 'audit')"
        ).fetchone()
        assert tables is not None
        connection.execute(f"TRUNCATE {tables[0]}")  # type: ignore[arg-type]
    return url


def rebuilt(mem: Semmem, kept: dict[str, dict[str, Any]], batch_size: int) -> str:
    """Return the hash of a namespace that was filled with ``kept`` in another order."""
    namespace = f"again{next(_fresh)}"
    mem.remember_many(list(reversed(kept.values())), namespace=namespace, batch_size=batch_size)
    mem.maintain()
    return mem.graph_hash(namespace=namespace)


@pytest.mark.slow
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(step, min_size=1, max_size=12), batch_size=st.integers(1, 7))
def test_after_maintain_any_history_gives_the_graph_of_a_store_filled_anew(
    store_url: str, steps: list[Any], batch_size: int
) -> None:
    with semmem.connect(emptied(store_url), recipe="lexical", embedder="none", pool_size=2) as mem:
        kept: dict[str, dict[str, Any]] = {}
        for what, given_ in steps:
            if what in ("one", "many"):
                items = [{**m, "id": f"m{next(_fresh)}", "created_at": "2026-01-31"} for m in given_]
                kept |= {item["id"]: item for item in items}
                if what == "one":
                    mem.remember(**items[0])
                else:
                    mem.remember_many(items, batch_size=batch_size)
            elif what == "forget" and kept:
                gone = list(kept)[given_ % len(kept)]
                del kept[gone]
                mem.forget(gone)
            elif what == "maintain":
                mem.maintain()
        mem.maintain()
        df_is_exact(mem)
        assert mem.graph_hash() == rebuilt(mem, kept, batch_size)
        assert mem.rebuild(extract=True).changed == 0
