"""The log of recalls, as every store keeps it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from semmem.model.errors import NotFound
from semmem.model.recall_log import LogFilters, LoggedHit, LoggedRecall, merged
from semmem.model.store import Keep, Store, life_of
from tests.stores.conformance.hand_made import ANY, ODD_IDS, write

_ALL = LogFilters()


def entry(id: str, *hits: LoggedHit, namespaces: tuple[str, ...] = ("n",), **more: Any) -> LoggedRecall:
    return LoggedRecall(id, f"Question {id}?", namespaces, hits, **more)


def given(id: str, rank: int = 1, namespace: str = "n") -> LoggedHit:
    return LoggedHit(id, namespace, "given", rank, 1 / (60 + rank))


def found(store: Store, *namespaces: str, **filters: Any) -> list[str]:
    """Return the ids of the logged recalls, newest first."""
    rows = life_of(store).recalls(namespaces or ("n",), LogFilters(**filters), 100, None)
    return [one.id for one in merged(rows)]


class Log:
    """The log of recalls, as every store keeps it."""

    def test_an_entry_comes_back_as_it_was_logged(self, store: Store) -> None:
        facts = {
            "confidence": 0.25,
            "degraded": {"dense": "off"},
            "arguments": {"limit": 3, "filters": {"tags": ["é"]}},
        }
        hits = (
            given("a"), LoggedHit("b", "n", "left_out", 2, 0.5), LoggedHit("c", "n", "withheld", 3, 0.25),
            LoggedHit("p", "n", "pinned"), LoggedHit("x", "n", "excluded"),
        )  # fmt: skip
        logged = entry("r1", *hits, verb="context", interface="mcp", agent="eve", recipe="default", facts=facts)
        before = datetime.now(UTC) - timedelta(seconds=5)
        write(store, *({"id": hit.id} for hit in hits))
        life_of(store).note_recall(logged)
        (row,) = life_of(store).recalled(["n"], "r1")
        assert before <= row.at <= datetime.now(UTC) + timedelta(seconds=5)
        assert row == LoggedRecall(
            "r1", "Question r1?", ("n",), hits, row.at, "context", "mcp", "eve", "default", facts
        )
        assert life_of(store).recalled(["m"], "r1") == []

    def test_whatever_an_id_holds_it_is_logged_judged_and_found(self, store: Store) -> None:
        write(store, *({"id": id} for id in ODD_IDS))
        life_of(store).note_recall(entry("r1", *(given(id, rank) for rank, id in enumerate(ODD_IDS, 1))))
        (row,) = life_of(store).recalled(["n"], "r1")
        assert [hit.id for hit in row.hits] == list(ODD_IDS)
        assert life_of(store).judge("r1", {("n", id): True for id in ODD_IDS}, "eve") == []
        assert {one.id for one in life_of(store).judgments("n")} == set(ODD_IDS)
        assert all(found(store, memory=id) == ["r1"] for id in ODD_IDS)

    def test_each_namespace_has_its_own_row_and_a_page_its_bounds(self, store: Store) -> None:
        hits = given("a", 2), given("b", 1, "m")
        write(store, {"id": "a"})
        write(store, {"id": "b"}, namespace="m")
        for number in range(5):
            life_of(store).note_recall(entry(f"r{number}", *hits, namespaces=("n", "m")))
        life_of(store).note_recall(entry("r9", namespaces=("m",)))
        assert (found(store), found(store, "n", "m")) == (
            ["r4", "r3", "r2", "r1", "r0"],
            ["r9", "r4", "r3", "r2", "r1", "r0"],
        )
        rows = life_of(store).recalls(["n", "m"], _ALL, 2, "r4")
        assert [(row.id, row.namespaces[0], [hit.id for hit in row.hits]) for row in rows] == [
            ("r3", "m", ["b"]), ("r3", "n", ["a"]), ("r2", "m", ["b"]), ("r2", "n", ["a"]),
        ]  # fmt: skip

    def test_entries_are_narrowed_by_who_asked_when_and_what_was_given(self, store: Store) -> None:
        withheld = LoggedHit("a", "n", "withheld", 1, 0.5)
        write(store, {"id": "a"})
        life_of(store).note_recall(entry("r1", given("a"), interface="mcp", agent="eve"))
        life_of(store).note_recall(entry("r2", withheld, interface="http"))
        later = datetime.now(UTC) + timedelta(hours=1)
        for filters, expected in (
            ({"interface": "mcp"}, ["r1"]), ({"agent": "eve"}, ["r1"]), ({"agent": "nobody"}, []),
            ({"memory": "a"}, ["r1"]), ({"memory": "b"}, []), ({"interface": "http", "agent": "eve"}, []),
            ({"asked_after": later}, []), ({"asked_before": later}, ["r2", "r1"]),
            ({"asked_before": later - timedelta(hours=2)}, []),
        ):  # fmt: skip
            assert found(store, **filters) == expected, filters

    def test_a_recall_is_not_logged_where_a_hit_of_it_was_forgotten_for_good(self, store: Store) -> None:
        write(store, {"id": "a"}, {"id": "b"})
        write(store, {"id": "c"}, namespace="m")
        store.forget("n", "a", ANY, dry_run=False, soft=True)
        store.forget("n", "b", ANY, dry_run=False)
        life = life_of(store)
        with pytest.raises(
            NotFound, match="was forgotten for good or became sensitive meanwhile, so the recall is not logged"
        ):
            life.note_recall(entry("r2", given("c", 1, "m"), given("b", 2), namespaces=("m", "n")))
        for id, hits in {"r1": [given("a")], "r3": []}.items():
            life.note_recall(entry(id, *hits, namespaces=("m", "n")))
        assert (found(store), found(store, "m")) == (["r3", "r1"], ["r3", "r1"])

    def test_a_judgment_of_what_is_not_there_records_nothing(self, store: Store) -> None:
        write(store, {"id": "a"})
        life_of(store).note_recall(entry("r1", given("a")))
        life = life_of(store)
        assert life.judge("r1", {("n", "a"): True, ("n", "gone"): False}, None) == [("n", "gone")]
        assert life.judgments("n") == []
        assert life.judge("r1", {("n", "a"): True}, "eve") == []
        assert life.judge("r1", {("n", "a"): False}, None) == []
        (said,) = life.judgments("n")
        assert (said.id, said.useful, said.made_by, said.question) == ("a", False, None, "Question r1?")
        (row,) = life.recalled(["n"], "r1")
        assert (row.hits[0].outcome, row.hits[0].useful) == ("given", False)

    def test_entries_go_with_their_memories_their_namespace_and_their_time(self, store: Store) -> None:
        write(store, {"id": "a"}, {"id": "b"})
        write(store, {"id": "c"}, namespace="m")
        life = life_of(store)
        life.note_recall(entry("r1", given("a"), given("b", 2)))
        life.note_recall(entry("r2", given("b")))
        life.note_recall(entry("r3", given("b"), given("c", 2, "m"), namespaces=("n", "m")))
        life.note_recall(entry("r4", given("a"), given("c", 2, "m"), namespaces=("n", "m", "empty")))
        assert store.forget("n", "a", ANY, dry_run=False) == 1  # for good, and nowhere stays a question that had it
        assert (found(store), found(store, "m"), found(store, "empty")) == (["r3", "r2"], ["r3"], [])
        assert life.judge("r2", {("n", "b"): True}, None) == []
        store.maintain(Keep(recall_log_days=0))
        assert (found(store), found(store, "m")) == (["r2"], [])
        store.forget_namespace("n", dry_run=True)
        assert found(store) == ["r2"]
        life.note_recall(entry("r5", given("b"), namespaces=("n", "m")))
        life.note_recall(entry("r6", given("c", 1, "m"), namespaces=("n", "m")))
        store.forget_namespace("n", dry_run=False)
        assert (found(store), found(store, "m")) == ([], ["r6"])
