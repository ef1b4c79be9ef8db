"""Compaction joins the rows that its rule names, and leaves every other row as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import semmem
from semmem.stores.postgres import postings, upkeep
from semmem.stores.postgres.store import PostgresStore
from semmem.stores.postgres.typed import Connection
from semmem.stores.sql_files import statements

FULL = 40
ENDS = (-(1 << 63), (1 << 63) - 1)


class Posting(NamedTuple):
    """A row of the table of postings."""

    namespace: str
    key: int
    segment: int
    kind: int
    n: int
    subjects: int
    low: int
    high: int
    name: str
    entries: bytes
    lone: bool


@st.composite
def tables(draw: st.DrawFn) -> list[Posting]:
    """Rows of a few keys in two namespaces: small and full ones, some alone, and in any order of row ids."""
    sizes = st.lists(st.sampled_from((0, 1, 2, 3, 5, 9, 20, FULL - 1, FULL, FULL + 3)), min_size=3, max_size=8)
    rows = []
    for namespace, key in (("a", ENDS[0]), ("a", 7), ("a", ENDS[1]), ("b", 7)):
        lone = draw(st.integers(0, 4)) == 0
        for segment, n in enumerate(draw(sizes)[: 1 if lone else None], 1):
            low = draw(st.integers(0, 20))
            counts = (segment % 3, n, n // 2, low, low + n)
            entries = bytes([segment]) * 12 * max(n, 1)
            rows.append(Posting(namespace, key, segment, *counts, f"s{segment}", entries, lone))
    return rows


def joined(rows: Sequence[Posting]) -> Iterator[Posting]:
    """Yield rows of one key as few rows, in the order of their memories; each begins before it is full."""
    pieces: dict[int, list[Posting]] = {}
    before = 0
    for row in sorted(rows, key=lambda row: (row.low, row.segment)):
        pieces.setdefault(before // FULL, []).append(row)
        before += row.n
    for some in pieces.values():
        yield Posting(
            some[0].namespace,
            some[0].key,
            max(row.segment for row in some),
            min(row.kind for row in some),
            sum(row.n for row in some),
            sum(row.subjects for row in some),
            min(row.low for row in some),
            max(row.high for row in some),
            min(some, key=lambda row: row.segment).name,
            b"".join(row.entries for row in some),
            False,
        )


def compacted(table: Sequence[Posting], segments: Sequence[int], fresh: int, least: int) -> list[Posting]:
    """Return the table after a compaction of namespace a, by the rule as it is told."""
    left = list(table)
    for _, group in groupby((row for row in table if row.namespace == "a" and not row.lone), lambda row: row.key):
        rows = list(group)
        if sum(row.segment in segments for row in rows) < fresh:
            continue
        newest = sorted((row for row in rows if row.n < FULL), key=lambda row: -row.segment)
        newer = [sum(other.n + 1 for other in newest[:age]) for age in range(len(newest))]
        last = max((age for age, row in enumerate(newest) if age == 0 or row.n <= 2 * newer[age]), default=-1)
        if last + 1 >= least:
            left = [row for row in left if row not in newest[: last + 1]] + list(joined(newest[: last + 1]))
    return sorted(left)


def maintained(table: Sequence[Posting], after: int) -> list[Posting]:
    """Return the table once the rows of namespace a are joined whose keys have got one in a segment after that one."""
    left = list(table)
    for _, group in groupby((row for row in table if row.namespace == "a" and not row.lone), lambda row: row.key):
        rows = [row for row in group if row.n < FULL]
        if len(rows) > 1 and any(row.segment > after for row in rows):
            left = [row for row in left if row not in rows] + list(joined(rows))
    return sorted(left)


@pytest.fixture(scope="module")
def store(module_url: str) -> Iterator[PostgresStore]:
    """An empty store of this module."""
    with semmem.connect(module_url, embedder="none") as mem:
        assert isinstance(mem.store, PostgresStore)
        yield mem.store


@pytest.mark.slow
@given(
    tables(),
    st.sampled_from(([], [2, 3], [3, 4, 5], [*range(1, 9)])),
    st.sampled_from((1, 2, 4, 8)),
    st.sampled_from((2, 4)),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_the_rows_that_are_joined_are_those_of_the_rule(
    store: PostgresStore, table: list[Posting], segments: list[int], fresh: int, least: int, scans: bool
) -> None:
    asked = {"namespace": "a", "segments": segments, "fresh": fresh, "full": FULL, "least": least}

    def work(connection: Connection) -> tuple[list[Any], list[Any]]:
        with connection.transaction(force_rollback=True):
            connection.execute(f"SET LOCAL enable_seqscan TO {'on' if scans else 'off'}")
            with connection.cursor() as cursor:
                cursor.executemany(f"INSERT INTO semmem.posting VALUES ({', '.join(['%s'] * 11)})", table)
            keys = [*ENDS, -1, 7, 7]
            known = connection.execute(statements("postgres")["segments_known"], {"namespace": "a", "keys": keys})
            found = sorted(key for (key,) in known.fetchall())
            connection.execute(statements("postgres")["compact"], asked)
            return found, sorted(connection.execute("SELECT * FROM semmem.posting").fetchall())

    shared = {row.key for row in table if row.namespace == "a" and not row.lone}
    known, left = store.run(work)
    assert known == sorted(key for key in (*ENDS, -1, 7, 7) if key in shared)
    assert [Posting(*row) for row in left] == compacted(table, segments, fresh, least)


@pytest.mark.slow
@given(tables(), st.integers(0, 8), st.sampled_from((1, 2, 3)), st.booleans())
@settings(max_examples=100, deadline=None)
def test_maintain_joins_the_rows_of_the_keys_that_have_got_one_since(
    store: PostgresStore, table: list[Posting], after: int, steps: int, scans: bool
) -> None:
    def work(connection: Connection) -> list[Any]:
        with connection.transaction(force_rollback=True), pytest.MonkeyPatch.context() as patched:
            patched.setattr(postings, "SEGMENT_FULL", FULL)
            connection.execute(f"SET LOCAL enable_seqscan TO {'on' if scans else 'off'}")
            with connection.cursor() as cursor:
                cursor.executemany(f"INSERT INTO semmem.posting VALUES ({', '.join(['%s'] * 11)})", table)
            due = {"a": upkeep.unsettled(connection, {"a": after})["a"]._replace(packs=False)}
            since = {"a": ENDS[0]}
            while since["a"] <= ENDS[1]:
                since, *_ = upkeep.settle(connection, since, steps, due)
            return sorted(connection.execute("SELECT * FROM semmem.posting").fetchall())

    assert [Posting(*row) for row in store.run(work)] == maintained(table, after)
