"""What filters match is kept while a namespace stays as it was, and read again after every change."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import semmem
from semmem.model.filters import checked_filters
from semmem.model.types import Filters
from semmem.stores import filter_matches
from semmem.stores.filter_matches import FilterMatches, _digest
from semmem.stores.postgres.store import PostgresStore
from tests.stores.audit import sql
from tests.stores.resident.trio import Trio, change, new_space, opened
from tests.stores.test_stale_parts import LONG, cut_shorter

FILTERS = (
    Filters(tags=("half",)),
    Filters(sessions=("s1", "s2")),
    Filters(authors=("Mia",)),
    Filters(sensitive=True),
)
CHANGES = ("few", "update", "forget", "take back", "maintain", "drop", "sensitive", "link")


@pytest.fixture(autouse=True)
def _keep_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_matches, "_LEAST", 1)


def kept(trio: Trio) -> FilterMatches:
    return postgres(trio.kept).matching


def postgres(mem: semmem.Semmem) -> PostgresStore:
    assert isinstance(mem.store, PostgresStore)
    return mem.store


def check(trio: Trio, *namespaces: str) -> None:
    """Compare what filters match for those who keep something with what they match for those who do not."""
    for filters in FILTERS:
        for _ in range(2):
            one, other = (mem.store.scope(namespaces, filters, ()) for mem in (trio.kept, trio.plain))
            assert one.allowed is not None
            assert other.allowed is not None
            assert one.allowed.tolist() == other.allowed.tolist()
            assert one.size == other.size == len(one.allowed)


@pytest.mark.slow
@settings(max_examples=8)
@given(steps=st.lists(st.tuples(st.sampled_from(CHANGES), st.integers(0, 60)), max_size=6))
def test_what_is_kept_is_what_the_database_says_after_every_change(trio: Trio, steps: list[tuple[str, int]]) -> None:
    space = new_space()
    for step in (("many", 0), *steps):
        change(trio.writer, space, step)
        check(trio, space)


def test_several_namespaces_are_kept_apart(trio: Trio) -> None:
    one, other = new_space(), new_space()
    change(trio.writer, one, ("many", 0))
    change(trio.writer, other, ("many", 100))
    check(trio, one)
    check(trio, one, other)
    change(trio.writer, other, ("few", 200))
    check(trio, one, other)
    check(trio, other, one)


def test_a_namespace_that_is_renamed_or_copied_takes_nothing_along(trio: Trio) -> None:
    old, new, third = new_space(), new_space(), new_space()
    change(trio.writer, old, ("many", 0))
    check(trio, old, new)
    trio.writer.rename_namespace(old, new)
    check(trio, old, new)
    change(trio.writer, old, ("few", 300))
    check(trio, old, new)
    trio.writer.copy_namespace(new, third)
    check(trio, old, new, third)


def test_a_store_that_is_restored_is_read_again(other_url: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        trio = opened(stack, other_url)
        change(trio.writer, "n", ("many", 0))
        trio.writer.backup(tmp_path / "before.semmem")
        change(trio.writer, "n", ("few", 100))
        check(trio, "n")
        trio.writer.forget(namespace="n", everything=True)  # and nobody asks before it is there again
        trio.writer.restore(tmp_path / "before.semmem")
        check(trio, "n")


@pytest.mark.slow
def test_what_was_made_anew_is_read_again_though_others_came_since(
    trio: Trio, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(trio.writer, space, ("few", 0))
    trio.writer.remember(LONG, id="long", tags=["half"], namespace=space)
    check(trio, space)
    cut_shorter(monkeypatch, 9)
    assert trio.writer.maintain()["rebuilt"] > 0
    monkeypatch.undo()
    monkeypatch.setattr(filter_matches, "_LEAST", 1)
    trio.writer.remember("One more.", tags=["half"], namespace=space)
    check(trio, space)


@pytest.mark.parametrize("more", [pytest.param(0, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow), 3])
def test_a_copy_that_is_set_back_is_read_again(store_url: str, other_url: str, tmp_path: Path, more: int) -> None:
    def remember(mem: semmem.Semmem, ids: str, tag: str) -> None:
        for id in ids:
            mem.remember(f"Note {id}.", id=id, tags=[tag], namespace="n")

    with semmem.connect(store_url, embedder="hashing", pool_size=2) as source:
        remember(source, "ab", "half")
        source.backup(tmp_path / "before.semmem")
        remember(source, "cd", "half")
    semmem.copy(store_url, other_url)
    with ExitStack() as stack:
        trio = opened(stack, other_url)
        check(trio, "n")
        trio.warm("n")
        assert len(trio.kept.recall("note", namespace="n")) == 4
        with semmem.connect(store_url, embedder="hashing", pool_size=2) as source:
            for id in "abcd":
                source.forget(id, namespace="n", hard=True)
            source.restore(tmp_path / "before.semmem")
            remember(source, "xyz"[:more], "other")  # of two the numbers are those of before
        semmem.copy(store_url, other_url)
        check(trio, "n")
        answers = [mem.recall("note", namespace="n") for mem in (trio.kept, trio.plain)]
        assert {hit.id for hit in answers[0]} == {hit.id for hit in answers[1]} == {*"ab", *"xyz"[:more]}


class Secret(str):
    """Words that do not show themselves."""

    def __repr__(self) -> str:
        return "'***'"


class Zone(tzinfo):
    """A zone that does not show itself."""

    def __init__(self, hours: int) -> None:
        self.hours = hours

    def utcoffset(self, at: datetime | None, /) -> timedelta:
        return timedelta(hours=self.hours)

    def __repr__(self) -> str:
        return "Zone()"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"sessions": [Secret("ta")]}, {"sessions": [Secret("tb")]}),
        ({"metadata": {"of": Secret("ta")}}, {"metadata": {"of": Secret("tb")}}),
        (
            {"created_after": datetime(2024, 5, 1, 3, tzinfo=Zone(0))},
            {"created_after": datetime(2024, 5, 1, 3, tzinfo=Zone(3))},
        ),
        ({"tags": ["a", "b"]}, {"tags": ["a, b"]}),
        ({"sessions": ["ta"]}, {"authors": ["ta"]}),
        ({"sensitive": False}, {"sensitive": True}),
    ],
)
def test_filters_that_look_alike_are_kept_apart(
    trio: Trio, space: str, one: dict[str, Any], other: dict[str, Any]
) -> None:
    for number, of in enumerate(["ta", "tb"] * 3):
        trio.writer.remember(
            f"The secret number {number}.",
            created_at=datetime(2024, 5, 1, number, 30, tzinfo=UTC),
            session=of,
            author="tb" if of == "ta" else "ta",
            tags=["a", "b"] if of == "ta" else ["a, b"],
            metadata={"of": of},
            sensitive=number < 2,
            namespace=space,
        )
    for filters in (one, other, one):
        chosen = checked_filters(filters)
        scopes = [mem.store.scope((space,), chosen, ()).allowed for mem in (trio.kept, trio.plain)]
        assert [row_ids.tolist() for row_ids in scopes if row_ids is not None] == [scopes[1].tolist()] * 2  # type: ignore[union-attr]
    assert kept(trio).of([space], checked_filters(one))[space].place is not None
    assert _digest(checked_filters(one)) != _digest(checked_filters(other))


def test_a_change_of_metadata_alone_is_seen(trio: Trio, space: str) -> None:
    for number in range(4):
        trio.writer.remember(f"Note {number}.", id=f"n{number}", metadata={"done": False}, namespace=space)
    done = Filters(metadata={"done": True})
    assert [trio.kept.store.scope((space,), done, ()).size for _ in range(2)] == [0, 0]
    trio.writer.update("n2", metadata={"done": True}, namespace=space)
    assert [trio.kept.store.scope((space,), done, ()).size for _ in range(2)] == [1, 1]


def packed(mem: semmem.Semmem, monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """Return a list that gets, for each scope with filters, how many row ids the server sends; None: it sends none."""
    sent: list[int | None] = []
    store = postgres(mem)
    together = store.together

    def listening(*queries: Any, **how: Any) -> Any:
        rows = together(*queries, **how)
        for (name, _), own in zip(queries, rows, strict=True):
            if name == "memory_scope":
                sent.append(None if own[0][3] is None else len(own[0][3]) // 8)
        return rows

    monkeypatch.setattr(store, "together", listening)
    return sent


def asked(trio: Trio, space: str, sent: list[int | None]) -> tuple[int, int | None]:
    """Return how many memories the filter matches, and how many row ids the server sent for it."""
    return trio.kept.store.scope((space,), FILTERS[0], ()).size, sent[-1]


def remember(trio: Trio, space: str, *ids: str) -> None:
    """Store, in one transaction, memories that the filter matches."""
    notes = [{"id": id, "text": f"Note {id}.", "tags": ["half"]} for id in ids]
    trio.writer.remember_many(notes, namespace=space)


def test_what_came_since_is_added_and_all_is_read_again_after_any_other_change(
    trio: Trio, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = packed(trio.kept, monkeypatch)

    def ask() -> tuple[int, int | None]:
        return asked(trio, space, sent)

    remember(trio, space, "a", "b", "c")
    assert [ask(), ask()] == [(3, 3), (3, None)]
    remember(trio, space, "d", "e")
    trio.writer.remember("Another thing.", namespace=space)
    assert [ask(), ask()] == [(5, 2), (5, None)]
    trio.writer.update("a", tags=["other"], namespace=space)
    assert [ask(), ask()] == [(4, 4), (4, None)]
    trio.writer.forget("b", namespace=space)
    remember(trio, space, "f")
    assert ask() == (4, 4)
    trio.writer.restore_memory("b", namespace=space)
    assert ask() == (5, 5)


@pytest.mark.slow
def test_more_than_a_thousand_that_came_since_are_read_in_one_piece(
    trio: Trio, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = packed(trio.kept, monkeypatch)
    remember(trio, space, "a")
    assert asked(trio, space, sent) == (1, 1)
    remember(trio, space, *(f"g{n}" for n in range(1_001)))
    assert asked(trio, space, sent) == (1_002, 1_002)
    remember(trio, space, *(f"h{n}" for n in range(999)))
    assert asked(trio, space, sent) == (2_001, 999)


def test_all_is_read_again_after_a_change_that_is_listed_no_longer(
    trio: Trio, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = packed(trio.kept, monkeypatch)
    remember(trio, space, "a", "b")
    assert asked(trio, space, sent) == (2, 2)
    trio.writer.update("a", tags=["other"], namespace=space)
    sql(trio.writer, "DELETE FROM change WHERE namespace = %s AND kind <> 'written'", space)  # as a sweep does
    remember(trio, space, "c")
    assert asked(trio, space, sent) == (2, 2)


def test_a_namespace_that_was_dropped_and_filled_anew_is_read_again(
    trio: Trio, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = packed(trio.kept, monkeypatch)
    remember(trio, space, "a", "b", "c")
    assert asked(trio, space, sent) == (3, 3)
    trio.writer.forget(namespace=space, everything=True)
    remember(trio, space, "x")
    remember(trio, space, "y")
    assert asked(trio, space, sent) == (2, 2)


def test_row_ids_that_a_stream_reserved_before_others_came_are_not_missed(trio: Trio, space: str) -> None:
    def items() -> Iterator[dict[str, Any]]:
        for number in range(40):
            yield {"id": f"s{number}", "text": f"Of the stream, note {number}.", "tags": ["half"]}
            if number % 8 == 3:
                trio.plain.remember(f"Beside it, note {number}.", tags=["half"], namespace=space)
                check(trio, space)

    trio.writer.remember_many(items(), namespace=space, batch_size=5)
    check(trio, space)


def test_what_is_kept_is_not_read_again(other_url: str) -> None:
    with semmem.connect(other_url, embedder="none", pool_size=1) as mem:
        mem.remember_many([{"text": f"Note {n}.", "tags": [f"t{n % 3}"]} for n in range(30)], namespace="n")

        def scans() -> int:
            mem.store.run(lambda c: c.execute("SELECT pg_stat_force_next_flush()").fetchall())
            which = "SELECT seq_scan + idx_scan FROM pg_stat_user_tables WHERE relid = 'memory'::regclass"
            return int(sql(mem, which)[0][0])

        def sizes() -> list[int]:
            return [mem.store.scope(("n",), Filters(tags=(tag,)), ()).size for tag in ("t0", "t1")]

        assert sizes() == [10, 10]
        first = scans()
        assert sizes() == [10, 10]
        second = scans()
        mem.remember("One more.", tags=["t1"], namespace="n")
        written = scans()
        assert sizes() == [10, 11]
        read = scans()
        assert sizes() == [10, 11]
        bounds = scans() - read  # what asks for memories with bounds in time goes on
        assert second - first == bounds
        assert read - written == bounds + 2


def test_nothing_is_kept_while_a_namespace_is_being_dropped(trio: Trio, space: str) -> None:
    change(trio.writer, space, ("many", 0))
    check(trio, space)
    sql(trio.writer, "UPDATE namespace SET dropping = 0 WHERE namespace = %s", space)
    trio.kept.store.scope((space,), FILTERS[0], ())
    assert kept(trio).of([space], FILTERS[0])[space].place is None


def test_a_process_that_keeps_no_namespace_in_memory_keeps_no_filter(trio: Trio, space: str) -> None:
    change(trio.writer, space, ("many", 0))
    check(trio, space)
    assert kept(trio).of([space], FILTERS[0])[space].place is not None
    assert postgres(trio.plain).matching.of([space], FILTERS[0])[space].place is None


def test_nothing_is_kept_after_the_end(module_url: str, space: str) -> None:
    with ExitStack() as stack:
        trio = opened(stack, module_url)
        change(trio.writer, space, ("many", 0))
        check(trio, space)
    assert kept(trio).of([space], FILTERS[0])[space].place is None


def test_an_array_that_is_kept_cannot_be_changed(trio: Trio, space: str) -> None:
    change(trio.writer, space, ("many", 0))
    trio.kept.store.scope((space,), FILTERS[0], ())
    array = kept(trio).of([space], FILTERS[0])[space].row_ids
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 7


@pytest.mark.nodes
def test_threads_that_ask_while_others_write_get_one_moment_each(trio: Trio, space: str) -> None:
    change(trio.writer, space, ("many", 0))
    store, wrong, stop = trio.kept.store, [], threading.Event()

    def read() -> None:
        while not stop.is_set():
            scope = store.scope((space,), FILTERS[0], (), ())
            assert scope.allowed is not None
            if scope.size != len(scope.allowed) or (np.diff(scope.allowed) <= 0).any():
                wrong.append(scope)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(400, 412):
        change(trio.writer, space, ("few", number))
    stop.set()
    for reader in readers:
        reader.join()
    assert wrong == []
    check(trio, space)
