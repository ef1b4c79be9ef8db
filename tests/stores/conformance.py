"""What every store does, whatever it is made of: a class of tests over a ``store`` fixture that a subclass gives.

Memories are written through the write pipeline with vectors of three dimensions, so that every number can be worked out
by hand.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import semmem
from semmem.client.connection import legs_of
from semmem.extractors import Rules
from semmem.model.errors import Conflict, InvalidInput, StoreClosed
from semmem.model.exchange import Kind
from semmem.model.life import Access
from semmem.model.store import Keep, Store, graph_of, life_of, vectors_of
from semmem.model.types import Filters, IngestReport, ListOrder, Memory
from semmem.read.recall import Recaller
from semmem.text.passages import content_key, term_key
from semmem.text.tokens import key
from semmem.write.ingest import Ingest

__all__ = ["StoreConformance"]

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


def ord_of(store: Store, id: str, namespace: str = "n") -> int:
    (ord,) = store.ords_of(namespace, id)
    return ord


def shown(postings: Any) -> dict[str, dict[int, list[Any]]]:
    """Return what ``store.postings`` did, as plain lists, by namespace and key."""
    return {n: {at: sorted(entries.tolist()) for at, entries in found.items()} for n, found in postings.items()}


def unit(*values: float) -> Any:
    vector = np.array(values, dtype=np.float64)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


class StoreConformance:
    """Subclass it, and give a fixture ``store``: an empty store.

    A test marked ``needs("dense")`` is skipped where the store does not declare that capability.
    """

    @pytest.fixture(autouse=True)
    def _declared(self, request: pytest.FixtureRequest, store: Store) -> None:
        for mark in request.node.iter_markers("needs"):
            if mark.args[0] not in store.capabilities:
                pytest.skip(f"a {store.kind} store does not declare the capability {mark.args[0]!r}")

    # ------------------------------------------------------------------ remembering and getting

    def test_what_was_written_comes_back_whole(self, store: Store) -> None:
        given = {
            "id": "m", "text": "Tea at four.\n\n'Quotes' & \"more\" \\ 🫖", "title": "Tea", "author": "Ada",
            "session": "s", "position": -3, "source": "notes.md", "tags": ["b", "a", "b"], "importance": 0.25,
            "metadata": {"x": [1, 2.5, None, {"y": "é"}], "deep": {"t": True}},
            "created_at": "2026-01-31T09:00:00.123456+02:00",
        }  # fmt: skip
        write(store, given)
        at = datetime(2026, 1, 31, 7, 0, 0, 123456, tzinfo=UTC)
        assert store.get("n", ["m"]) == [
            Memory(
                id="m", namespace="n", text=str(given["text"]), title="Tea", author="Ada", session="s", position=-3,
                source="notes.md", tags=("b", "a", "b"), metadata=given["metadata"], importance=0.25, created_at=at,
                updated_at=at, version=1, parent_id=None,
            )
        ]  # fmt: skip

    def test_what_was_read_from_the_database_needs_no_confirmation(self, store: Store) -> None:
        write(store, {"id": "a"})
        assert store.scope(("n",), ANY, (), ("ada",)).size == 1
        write(store, {"id": "b"})
        store.confirm()  # a store that answers from memory raises Moved here

    def test_filters_and_exclusions_take_no_ord_of_a_memory_of_another_namespace(self, store: Store) -> None:
        # a memory has the same number in both namespaces, and only in the other one what is asked for
        write(store, {"id": "a", "session": "s"}, {"id": "b"}, {"id": "c"}, namespace="one")
        write(store, {"id": "x"}, {"id": "y", "session": "s"}, {"id": "a"}, namespace="two")
        scope = store.scope(("one",), Filters(sessions=("s",)), ())
        assert (scope.size, np.asarray(scope.allowed).tolist()) == (1, [ord_of(store, "a", "one")])
        excluded = store.scope(("one",), ANY, ("a",)).excluded
        assert np.asarray(excluded).tolist() == [ord_of(store, "a", "one")]

    def test_whether_a_namespace_has_sessions_and_authors_is_said_of_itself_alone(self, store: Store) -> None:
        write(store, {"id": "a"}, namespace="plain")
        write(store, {"id": "a", "author": "Ada", "session": "s"}, namespace="talk")
        facts = store.conversation_facts(("plain", "talk"), ("ada",))
        assert [(one.sessions, one.authors, sorted(one.named)) for one in (facts["plain"], facts["talk"])] == [
            (False, False, []),
            (True, True, ["Ada"]),
        ]

    @pytest.mark.needs("graph")
    def test_what_somebody_wrote_is_looked_for_in_one_namespace(self, store: Store) -> None:
        write(store, {"id": "a", "author": "Ada"}, {"id": "b", "author": "Tom"}, namespace="one")
        write(store, {"id": "a", "author": "Tom"}, {"id": "b", "author": "Ada"}, namespace="two")
        ords = [ord_of(store, id, "one") for id in "ab"]
        assert graph_of(store).by_author(["one"], ords, "Ada").tolist() == ords[:1]

    def test_get_keeps_the_order_asked_and_leaves_out_what_is_not_there(self, store: Store) -> None:
        write(store, {"id": "a"}, {"id": "b"}, {"id": "c"})
        assert ids(store.get("n", ["c", "nobody", "a"])) == ["c", "a"]
        assert store.get("n", []) == []
        assert store.get("elsewhere", ["a"]) == []

    def test_an_id_may_be_any_text_and_means_one_memory(self, store: Store) -> None:
        write(store, *({"id": id} for id in ODD_IDS))
        left = set(ODD_IDS)
        for id in ODD_IDS:
            assert store.get("n", [id])[0].text == f"text of {id}"
            assert len(store.ords_of("n", id)) == 1
            assert store.forget("n", id, ANY, dry_run=False) == 1
            assert store.get("n", [id]) == []
            left.remove(id)
            assert set(ids(store.list("n", ANY, 100, None))) == left

    def test_the_same_text_under_many_ids_is_stored_as_often(self, store: Store) -> None:
        report = write(store, *({"id": str(i), "text": "the same"} for i in range(5)))
        assert (report.remembered, store.stats("n").memories) == (5, 5)

    def test_the_same_again_is_no_change_and_other_content_is_a_conflict(self, store: Store) -> None:
        write(store, {"id": "a"}, {"id": "b"})
        again = write(store, {"id": "b"}, {"id": "c"})
        assert (again.remembered, again.unchanged) == (1, 1)
        with pytest.raises(Conflict, match=r"'a'.*other content; call update"):
            write(store, {"id": "d"}, {"id": "a", "text": "changed"})
        assert store.get("n", ["a"])[0].text == "text of a"
        assert store.get("n", ["d"]) == []  # it was in the batch of the conflict
        skipped = write(store, {"id": "d"}, {"id": "a", "text": "changed"}, on_error="skip")
        assert (skipped.remembered, [r.id for r in skipped.rejected]) == (1, ["a"])
        assert store.get("n", ["a"])[0].text == "text of a"
        assert ids(store.get("n", ["d"])) == ["d"]

    def test_what_is_stored_just_so_is_not_read_or_embedded_again(self, store: Store) -> None:
        asked: list[str] = []

        def embedder() -> str:
            asked.append("embedder")
            return "no embedder"

        items = [{"id": id, "text": f"text of {id}", "created_at": NOON} for id in ODD_IDS[:6]]

        def again(*more: dict[str, Any]) -> IngestReport:
            return Ingest(store, Rules(), embedder).remember_many(
                [*items, *more], namespace="n", batch_size=500, on_error="skip", progress=None
            )

        assert again().remembered == 6
        asked.clear()
        assert (again().unchanged, asked) == (6, [])
        other = again({"id": "new", "text": "new", "created_at": NOON}, {"id": items[0]["id"], "text": "changed"})
        assert (other.remembered, other.unchanged, len(other.rejected), len(asked)) == (1, 6, 1, 1)
        assert Ingest(store, Rules(), embedder).remember({**items[0], "namespace": "n"}).text == items[0]["text"]
        assert len(asked) == 1

    def test_a_long_text_is_kept_whole_and_indexed_in_parts(self, store: Store) -> None:
        text = " ".join(f"Sentence number {n} is here." for n in range(200))
        write(store, {"id": "long", "text": text, "title": "T", "session": "s"}, {"id": "long#1", "text": "not a part"})
        assert store.get("n", ["long"])[0].text == text
        parts = store.ords_of("n", "long")
        found = store.indexed_memories(["n"], parts)
        assert ids(found[o] for o in parts) == [f"long#{n}" for n in range(1, len(parts) + 1)]
        assert {m.parent_id for m in found.values()} == {"long"}
        assert " ".join(found[o].text for o in parts) == text
        assert all(len(m.text) <= 1400 and (m.title, m.session) == ("T", "s") for m in found.values())
        assert [m.text for m in store.get("n", ["long#1", "long#2"])] == ["not a part"]  # nobody gave a part its id
        whole, lengths = store.whole_memories({("n", "long"), ("n", "nobody"), ("other", "long")})["n", "long"]
        assert whole == store.get("n", ["long"])[0]
        assert list(lengths) == [len(found[o].text) for o in parts]
        assert list(store.whole_memories({("n", "long#1")})["n", "long#1"][1]) == []
        assert ids(store.list("n", ANY, 10, None)) == ["long#1", "long"]
        assert (store.stats("n").memories, store.stats("n").parts) == (2, len(parts))
        assert store.forget("n", "long", ANY, dry_run=False) == 1
        assert (store.stats("n").memories, store.stats("n").parts) == (1, 0)

    # ------------------------------------------------------------------ listing

    def test_lists_are_newest_first_and_ids_are_compared_by_code_point(self, store: Store) -> None:
        names = ["Z", "a", "z", "é", "\uffff", "🦊", "B", "a#1", "a!"]
        write(store, *({"id": i} for i in names), {"id": "new", "created_at": NOON + timedelta(microseconds=1)})
        assert ids(store.list("n", ANY, 100, None)) == ["new", *sorted(names, key=lambda i: [ord(c) for c in i])[::-1]]

    def test_pages_hold_every_memory_once_though_others_arrive_meanwhile(self, store: Store) -> None:
        write(store, *({"id": f"{n:02}", "created_at": NOON + timedelta(seconds=n // 6)} for n in range(20)))
        seen: list[str] = []
        cursor = None
        for number in range(4):
            page = store.list("n", ANY, 6, cursor)
            seen += ids(page)
            cursor = page.cursor
            assert (cursor is None) == (number == 3)
            write(store, {"id": f"late {number}", "created_at": NOON + timedelta(hours=1)})
        assert seen == [f"{n:02}" for n in range(19, -1, -1)]

    def test_a_list_in_another_order_holds_every_memory_once_and_what_is_equal_the_newest_first(
        self, store: Store
    ) -> None:
        worth = [0.5, 0.25, 1.0, 0.5, 0.5, 0.0]
        for n, importance in enumerate(worth):
            at = NOON + timedelta(seconds=n // 2)
            write(store, {"id": f"{n}", "importance": importance, "created_at": at})
        life = life_of(store)
        life.count_accesses("n", {"1": Access(1, NOON), "4": Access(9, NOON + timedelta(microseconds=1))})
        orders: tuple[tuple[ListOrder, list[str]], ...] = (
            ("created", ["5", "4", "3", "2", "1", "0"]),
            ("updated", ["5", "4", "3", "2", "1", "0"]),
            ("importance", ["2", "4", "3", "0", "1", "5"]),
            ("accessed", ["4", "1", "5", "3", "2", "0"]),
        )
        for sort_by, wanted in orders:
            seen: list[str] = []
            cursor = None
            for _ in range(3):
                page = store.list("n", ANY, 2, cursor, sort_by)
                seen, cursor = [*seen, *ids(page)], page.cursor
            assert (sort_by, seen, cursor) == (sort_by, wanted, None)
        early = replace(ANY, created_before=NOON + timedelta(seconds=1))
        assert ids(store.list("n", early, 9, None, "importance")) == ["0", "1"]
        with pytest.raises(InvalidInput, match="This cursor is of a list by created, not by importance"):
            store.list("n", ANY, 2, store.list("n", ANY, 2, None).cursor, "importance")

    def test_accesses_add_up_of_memories_that_are_there_and_go_with_them_for_good(self, store: Store) -> None:
        write(store, {"id": "a"}, {"id": "b"})
        write(store, {"id": "a"}, namespace="other")
        life, later = life_of(store), NOON + timedelta(days=1)
        assert life.count_accesses("n", {"a": Access(2, later), "b": Access(1, NOON), "gone": Access(5, NOON)}) == 2
        assert life.count_accesses("n", {"a": Access(3, NOON)}) == 1
        assert life.accesses("n", ["a", "b", "gone"]) == {"a": Access(5, later), "b": Access(1, NOON)}
        assert life.accesses("other", ["a"]) == life.accesses("n", []) == {}
        store.forget("n", "a", ANY, dry_run=False, soft=True)  # and may be taken back
        write(store, {"id": "a", "text": "another text"})
        assert life.accesses("n", ["a"]) == {"a": Access(5, later)}
        store.forget("n", "a", ANY, dry_run=False)
        assert set(life.accesses("n", ["a", "b"])) == {"b"}
        store.forget_namespace("n", dry_run=False)
        assert life.accesses("n", ["a", "b"]) == {}

    def test_a_page_that_is_just_full_is_the_last_one(self, store: Store) -> None:
        write(store, {"id": "a"}, {"id": "b"})
        assert store.list("n", ANY, 2, None).cursor is None
        assert store.list("nobody", ANY, 2, None).memories == ()

    def test_a_cursor_of_ones_own_making_is_refused(self, store: Store) -> None:
        for cursor in ("x", "é", "W10=", "bnVsbA==", "WyJ4IiwgImEiXQ==", "e30=", "WzEsMl0=", "!" * 50):
            with pytest.raises(InvalidInput, match="cursor"):
                store.list("n", ANY, 2, cursor)

    def test_filters_narrow_lists_scopes_and_forgetting_alike(self, store: Store) -> None:
        second = timedelta(seconds=1)
        write(
            store,
            {"id": "a", "session": "s1", "author": "Ada", "tags": ["x", "y"], "metadata": {"k": 1, "d": {"e": [1, 2]}}},
            {"id": "b", "session": "s2", "author": "Bob", "tags": ["x"], "created_at": NOON + second},
            {"id": "c", "created_at": NOON + 2 * second},
        )
        for filters, wanted in [
            (Filters(sessions=("s1",)), "a"),
            (Filters(sessions=("s1", "s2", "s3")), "ab"),
            (Filters(authors=("Bob",)), "b"),
            (Filters(authors=("bob",)), ""),
            (Filters(tags=("x",)), "ab"),
            (Filters(tags=("y", "x")), "a"),
            (Filters(metadata={"k": 1}), "a"),
            (Filters(metadata={"d": {"e": [2]}}), "a"),
            (Filters(metadata={"k": 2}), ""),
            (Filters(created_after=NOON + second), "bc"),
            (Filters(created_before=NOON + second), "a"),
            (Filters(created_after=NOON + second, created_before=NOON + 2 * second), "b"),
            (Filters(tags=("x",), sessions=("s2",)), "b"),
        ]:
            assert "".join(sorted(ids(store.list("n", filters, 10, None)))) == wanted, filters
            scope = store.scope(("n",), filters, ())
            assert scope.allowed is not None
            assert scope.allowed.tolist() == sorted(ord_of(store, i) for i in wanted), filters
            assert scope.size == len(wanted)
            assert store.forget("n", None, filters, dry_run=True) == len(wanted), filters
        assert store.forget("n", None, Filters(tags=("x",)), dry_run=False) == 2
        assert ids(store.list("n", ANY, 10, None)) == ["c"]

    # ------------------------------------------------------------------ walls

    def test_nothing_crosses_from_one_namespace_to_another(self, store: Store) -> None:
        write(store, {"id": "a", "text": "Ada likes tea", "title": "Ada Lovelace"}, namespace="one")
        write(store, {"id": "a", "text": "Bob likes rum", "title": "Bob Ross"}, namespace="two")
        one, two = ord_of(store, "a", "one"), ord_of(store, "a", "two")
        assert [m.text for m in store.get("one", ["a"])] == ["Ada likes tea"]
        assert [m.text for m in store.list("two", ANY, 10, None)] == ["Bob likes rum"]
        assert set(store.candidate_info(["one"], [one, two])) == {one}
        assert set(store.indexed_memories(["two"], [one, two])) == {two}
        assert store.ords_of("three", "a") == ()
        likes = term_key("like")
        assert [p.entries["ord"].tolist() for p in store.postings(["one"], [likes]).values()] == [[one]]
        assert (store.stats("one").memories, store.stats(None).memories, store.stats(None).namespaces) == (1, 2, 2)
        assert store.scope(("one",), ANY, ()).size == 1
        assert store.scope(("one", "two"), ANY, ()).size == 2
        assert store.forget("one", "a", ANY, dry_run=False) == 1
        assert [m.text for m in store.get("two", ["a"])] == ["Bob likes rum"]

    @pytest.mark.needs("dense")
    def test_no_vector_crosses_from_one_namespace_to_another(self, store: Store) -> None:
        write(store, {"id": "a", "vector": [1, 0, 0]}, namespace="one")
        write(store, {"id": "a", "vector": [0, 1, 0]}, namespace="two")
        one, two = ord_of(store, "a", "one"), ord_of(store, "a", "two")
        assert store.vectors.nearest(store.scope(("one",), ANY, ()), unit(0, 1, 0), 10).ords == (one,)
        assert set(store.vectors.similarities(["one"], [one, two], unit(1, 1, 0))) == {one}

    @pytest.mark.needs("graph")
    def test_no_name_crosses_from_one_namespace_to_another(self, store: Store) -> None:
        write(store, {"id": "a", "title": "Ada Lovelace"}, namespace="one")
        write(store, {"id": "a", "title": "Bob Ross"}, namespace="two")
        name = key(Kind.NAME, ("ada", "lovelace"))
        known = store.graph.snapshot_with_subjects({"one": [name], "two": [name]})[2]
        assert known == {"one": {name}, "two": set()}
        assert store.graph.names(["two"], [name]) == {}

    def test_namespaces_differ_by_case_and_may_be_any_text(self, store: Store) -> None:
        names = ["n", "N", "n ", "a'b", "🦊", "x" * 200]
        for name in names:
            write(store, {"id": "a", "text": f"in {name}"}, namespace=name)
        assert [store.get(name, ["a"])[0].text for name in names] == [f"in {name}" for name in names]
        assert store.stats(None).namespaces == len(names)

    def test_the_namespaces_are_listed_with_their_memories_and_last_change(self, store: Store) -> None:
        assert list(store.overview()) == []
        text = " ".join(f"Sentence number {n} is here." for n in range(100))  # of several parts, and one memory
        write(store, {"id": "a", "text": text, "created_at": NOON}, {"id": "b", "created_at": NOON - timedelta(days=1)})
        for name in ("b", "B", "\uffff", "🦊"):
            write(store, {"id": "a", "created_at": NOON + timedelta(microseconds=1)}, namespace=name)
        found = [(one.name, one.memories, one.updated_at) for one in store.overview()]
        later = NOON + timedelta(microseconds=1)
        assert found == [("B", 1, later), ("b", 1, later), ("n", 2, NOON), ("\uffff", 1, later), ("🦊", 1, later)]
        store.forget("b", "a", ANY, dry_run=False)
        assert [one.name for one in store.overview()] == ["B", "n", "\uffff", "🦊"]

    # ------------------------------------------------------------------ what recall asks for

    def test_excluding_a_memory_excludes_its_parts_and_not_what_is_called_like_one(self, store: Store) -> None:
        text = " ".join(f"Sentence number {n} is here." for n in range(100))
        write(store, {"id": "long", "text": text}, {"id": "long#1"}, {"id": "b"})
        parts = store.ords_of("n", "long")
        lone, b = ord_of(store, "long#1"), ord_of(store, "b")
        assert len(parts) > 1
        for exclude, wanted in [
            (["long"], parts),
            (["long#2"], ()),
            (["long#1"], (lone,)),
            (["b", "nobody"], (b,)),
            (["nobody"], ()),
        ]:
            scope = store.scope(("n",), ANY, exclude)
            assert scope.excluded is not None
            assert scope.excluded.tolist() == sorted(wanted), exclude
            everything = np.array(sorted((*parts, lone, b)))
            assert everything[scope.admits(everything)].tolist() == sorted({*parts, lone, b} - set(wanted))
        assert store.scope(("n",), ANY, ()).size == len(parts) + 2

    def test_heads_are_what_fusion_needs(self, store: Store) -> None:
        write(store, {"id": "a", "text": "Tea!", "importance": 0.75}, {"id": "b", "text": "tea"})
        heads = store.candidate_info(["n"], [ord_of(store, "a"), ord_of(store, "b"), 999_999])
        assert [(h.namespace, h.id, h.part, h.importance) for h in heads.values()] == [
            ("n", "a", 0, 0.75),
            ("n", "b", 0, 0.5),
        ]
        assert {bytes(h.content) for h in heads.values()} == {content_key("tea")}
        assert {(h.created_at, h.updated_at) for h in heads.values()} == {(NOON.timestamp(), NOON.timestamp())}
        assert store.candidate_info(["n"], []) == {}

    @pytest.mark.needs("graph")
    def test_neighbours_are_the_memories_before_and_after_in_the_same_session(self, store: Store) -> None:
        second = timedelta(seconds=1)
        write(
            store,
            {"id": "d", "session": "s", "created_at": NOON + second, "author": "Ada"},
            {"id": "b", "session": "s", "position": 2, "author": "Bob"},
            {"id": "c", "session": "s", "position": 10, "author": "Ada"},
            {"id": "a", "session": "s", "position": 2},
            {"id": "other", "session": "S", "position": 3},
            {"id": "alone", "position": 4},
        )
        at = {ord_of(store, i): i for i in ("a", "b", "c", "d", "other", "alone")}
        found = [(at[ord], at[near], same) for ord, near, same in store.graph.neighbours(["n"], list(at))]
        # By position, then those without one by time, then id: a b c d; c and d are both Ada's.
        pairs = [("a", "b", False), ("b", "c", False), ("c", "d", True)]
        assert sorted(found) == sorted([*pairs, *((after, before, same) for before, after, same in pairs)])

    def test_a_position_that_is_given_orders_a_session_before_any_time(self, store: Store) -> None:
        late = NOON + timedelta(microseconds=7)
        write(
            store,
            {"id": "first", "session": "s", "position": 1, "created_at": late},
            {"id": "second", "session": "s", "position": 2},
            {"id": "then", "session": "s", "created_at": NOON - timedelta(days=1)},
            {"id": "last", "session": "s"},
        )
        at = {ord_of(store, i): i for i in ("first", "second", "then", "last")}
        turns = store.session_turns(["n"], list(at))
        assert [at[turn.ord] for turn in turns] == ["first", "second", "then", "last"]
        assert {turn.ord: turn.head for turn in turns} == store.candidate_info(["n"], list(at))
        if store.graph is None:
            return
        beside = sorted((at[ord], at[near]) for ord, near, _ in store.graph.neighbours(["n"], list(at)))
        pairs = [("first", "second"), ("second", "then"), ("then", "last")]
        assert beside == sorted([*pairs, *((after, before) for before, after in pairs)])

    def test_what_stands_before_the_last_memories_of_an_author_is_known_nearest_first(self, store: Store) -> None:
        turns = [("Ada", "s"), (None, "s"), ("Bob", "s"), ("Ada", "s"), ("ada", "t"), ("Ada", None)]
        rows = [{"id": str(i), "author": a, "session": s, "position": i} for i, (a, s) in enumerate(turns)]
        write(store, *({k: v for k, v in row.items() if v is not None} for row in rows))
        write(store, {"id": "x", "author": "Ada", "session": "s"}, {"id": "y", "session": "s"}, namespace="m")
        found = store.conversation_facts(["n", "m", "empty"], ["ada", "nobody"])
        assert (found["n"].sessions, found["n"].authors, found["empty"].sessions, found["empty"].named) == (
            True, True, False, {},
        )  # fmt: skip
        assert {a: sorted(before, key=len) for a, before in found["n"].named.items()} == {
            "Ada": [(), (), ("Bob", None, "Ada")],
            "ada": [()],
        }
        assert found["m"].named == {"Ada": [()]}

    # ------------------------------------------------------------------ the wall, as a recall sees it

    @given(
        st.data(),
        st.sampled_from(["Where did Ada moor the boat?", "What did Bob cook in May", "tea rum gin", "How many boats"]),
        st.sampled_from([3, 100]),
        st.sampled_from(["any", "all", "auto"]),
    )
    @settings(
        max_examples=15,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
    )
    def test_what_one_namespace_holds_changes_no_score_that_a_leg_gives_in_another(
        self, store: Store, data: st.DataObject, question: str, depth: int, match: str
    ) -> None:
        """Each leg's list of B is the same but for one factor, whatever A's texts are: with A asked too, and without A.

        The factor is what scores of B's are worth beside A's: see semmem.legs.namespaces.
        Sessions, authors, titles, positions and times are the same in both. Where a list is cut at its depth, what is
        left of B is the head of B's own list. Ranks in the joint list, and so fused scores, may differ.
        """
        words = ["tea", "rum", "gin", "boat", "boats", "moor", "cook", "Ada", "Bob", "Loch Ness", "harbour", "?"]
        text = st.lists(st.sampled_from(words), min_size=1, max_size=5).map(" ".join)
        vector = st.lists(st.integers(-3, 3), min_size=3, max_size=3).filter(any)
        row = st.fixed_dictionaries(
            {"text": text, "vector": vector},
            optional={
                "title": st.sampled_from(["Loch Ness", "Harbour"]),
                "author": st.sampled_from(["Ada", "Bob"]),
                "session": st.sampled_from(["s", "t"]),
                "position": st.integers(0, 3),
            },
        )
        rows = data.draw(st.lists(row, min_size=1, max_size=8))
        a, b = (f"{letter}{len(store.namespaces())}" for letter in "ab")
        plan = semmem.recipe(
            "default", depths=dict.fromkeys(("lexical", "dense", "graph"), depth), lexical={"match": match}
        )
        legs = {leg: weight for leg, weight in plan.weights.items() if leg in store.capabilities}
        plan = replace(plan, weights=legs, graph=replace(plan.graph, related=1.0))
        recaller = Recaller(store, legs_of(store, "english"), lambda: "no embedder", "english")

        def remember(namespace: str, texts: bool) -> None:
            noise = data.draw(st.lists(st.tuples(text, vector), min_size=len(rows), max_size=len(rows)))
            of = rows if texts else [r | {"text": t, "vector": v} for r, (t, v) in zip(rows, noise, strict=True)]
            kept = [r if "dense" in store.capabilities else {k: v for k, v in r.items() if k != "vector"} for r in of]
            write(store, *({"id": str(at), **r} for at, r in enumerate(kept)), namespace=namespace)

        def lists(*namespaces: str) -> dict[str, list[tuple[str, float]]]:
            vector = [1, 0, 1] if "dense" in legs else None
            found = recaller.recall(question, namespaces, plan, filters=ANY, vector=vector).candidates
            assert not found.degraded
            return {
                leg: [(k[0], s) for k, s in zip(found.rankings[leg], found.raw[leg], strict=True) if k[2] == b]
                for leg in found.rankings
            }

        remember(b, texts=True)
        alone = lists(b)
        for _ in range(2):
            remember(a, texts=False)
            for leg, joint in lists(a, b).items():
                assert [id for id, _ in joint] == [id for id, _ in alone[leg]][: len(joint)], leg
                factor = max(
                    (score / own for (_, score), (_, own) in zip(joint, alone[leg], strict=False) if own), default=0.0
                )
                scaled = [factor * own for _, own in alone[leg][: len(joint)]]
                assert [score for _, score in joint] == pytest.approx(scaled, rel=1e-9, abs=1e-12), leg
                silent = leg == "graph" and not joint  # what starts from finds that match nothing says nothing
                assert depth < 100 or len(joint) == len(alone[leg]) or silent, leg
            store.forget(a, None, ANY, dry_run=False)
        recaller.close()

    @pytest.mark.slow
    @pytest.mark.needs("lexical")
    def test_that_sessions_are_too_long_to_read_what_stands_around_a_turn_is_told_and_so_are_they_alone(
        self, store: Store
    ) -> None:
        """4,000 turns are read; of 4,001 no rule acts, which a recall says in ``degraded``. Nothing else is touched."""
        turns = [
            {"id": f"t{n}", "text": f"tea {n}", "author": ("Ada", "Bob")[n % 2], "session": "long", "position": n}
            for n in range(4_000)
        ]
        turns[7]["text"] = "mooring"
        write(store, *turns)
        write(store, {"id": "rum", "text": "rum", "author": "Ada", "session": "other"})
        recaller = Recaller(store, legs_of(store, "english"), lambda: "no embedder", "english")

        def asked(question: str) -> tuple[list[str], dict[str, str]]:
            found = recaller.recall(question, ["n"], semmem.recipe("lexical"), filters=ANY, limit=3)
            return [hit.memory.id for hit in found], dict(found.degraded)

        assert asked("mooring") == (
            ["t7", "t8", "t6"],
            {},
        )  # what was said before a turn counts for more than what follows
        write(store, {"id": "last", "text": "milk", "session": "long", "position": 4_000})
        found, degraded = asked("mooring")
        assert found == ["t7"]
        assert list(degraded) == ["conversation"]
        assert degraded["conversation"].startswith("the sessions around what was found have more than 4,000 turns")
        assert asked("rum") == (["rum"], {})
        recaller.close()

    @pytest.mark.needs("lexical")
    @pytest.mark.parametrize("maintained", [False, True])
    def test_postings_say_who_has_a_term_how_often_and_how_long_it_is(self, store: Store, maintained: bool) -> None:
        write(store, {"id": "a", "text": "Tea, tea and rum"}, {"id": "b", "text": "rum", "title": "Tea"})
        write(store, {"id": "gone", "text": "tea"}, {"id": "c", "text": "gin"})
        store.forget("n", "gone", ANY, dry_run=False)
        if maintained:
            store.maintain()
        tea, gin, nobody = term_key("tea"), term_key("gin"), term_key("nobody")
        found = store.postings(["n", "m"], [tea, gin, nobody])
        # a title counts twice: b is tea tea rum, of length 3; 3 + 3 + 1 = 7 terms in all
        assert (found["n"].memories, found["n"].length, found["m"].memories, found["m"].length) == (3, 7, 0, 0)
        held = {at: entries[["ord", "count", "length"]].tolist() for at, entries in found["n"].items()}
        a, b, c = (ord_of(store, i) for i in "abc")
        assert {at: sorted(rows) for at, rows in held.items()} == {tea: [(a, 2, 3), (b, 2, 3)], gin: [(c, 1, 1)]}
        assert found["n"].keys.tolist() == sorted([tea, gin])
        assert found["m"].keys.tolist() == []
        assert store.postings(["n"], [tea, gin], max_df=1)["n"].keys.tolist() == [gin]
        assert tea in store.postings(["n"], [tea, gin], shared=True)["n"].keys.tolist()

    def test_folded_postings_are_those_of_one_namespace_however_they_are_asked_for(self, store: Store) -> None:
        write(store, {"id": "a", "text": "tea"}, {"id": "b", "text": "tea gin"}, namespace="one")
        write(store, {"id": "x", "text": "rum"}, *({"id": f"c{n}", "text": "tea"} for n in range(5)), namespace="two")
        store.maintain()
        tea = term_key("tea")
        ords = sorted(ord_of(store, id, "one") for id in "ab")
        for how in ({}, {"shared": True}, {"max_df": 9}, {"shared": True, "pending": [tea]}):
            found = store.postings(["one"], [tea], **how)["one"]  # type: ignore[arg-type]
            assert {at: entries["ord"].tolist() for at, entries in found.items()} == {tea: ords}, how

    @pytest.mark.needs("graph")
    def test_pending_keys_are_those_of_one_namespace(self, store: Store) -> None:
        write(store, {"id": "a", "text": "tea"}, namespace="one")
        store.maintain()
        write(store, {"id": "x", "text": "rum"}, namespace="two")
        graph = graph_of(store)

        def pending(namespace: str, id: str) -> list[int]:
            ords = [ord_of(store, id, namespace)]
            return graph.forwards_and_neighbours(namespace, ords, neighbours=False)[2].tolist()

        assert (pending("one", "a"), term_key("rum") in pending("two", "x")) == ([], True)

    @pytest.mark.needs("graph")
    def test_a_name_is_spelt_as_its_own_namespace_spells_it(self, store: Store) -> None:
        for namespace, title in (("one", "Blue Ferry"), ("two", "Blue ferry")):
            write(store, {"id": "a", "title": title}, namespace=namespace)
        store.maintain()
        for namespace, title in (("one", "Blue Ferry"), ("two", "Blue ferry")):
            assert list(graph_of(store).names([namespace], [key(Kind.NAME, ("blue", "ferry"))]).values()) == [title]

    def test_postings_that_are_asked_for_together_are_those_of_each_question(self, store: Store) -> None:
        write(store, {"id": "a", "text": "tea gin"}, {"id": "b", "text": "tea rum"})
        store.maintain()
        write(store, {"id": "c", "text": "rum"})
        tea, rum, gin = term_key("tea"), term_key("rum"), term_key("gin")
        together = store.postings_of(["n", "m"], ([tea, rum], None), ([tea, rum, gin], 1))
        assert shown(together[0]) == shown(store.postings(["n", "m"], [tea, rum]))
        assert shown(together[1]) == shown(store.postings(["n", "m"], [tea, rum, gin], max_df=1))
        assert list(shown(together[1])["n"]) == [gin]

    @pytest.mark.needs("graph")
    def test_the_surroundings_of_memories_are_what_they_hold_their_neighbours_and_the_keys_of_pending_ones(
        self, store: Store
    ) -> None:
        write(store, {"id": "a", "text": "tea gin", "session": "s"}, {"id": "b", "text": "tea rum", "session": "s"})
        store.maintain()
        a, b = ord_of(store, "a"), ord_of(store, "b")
        for _ in range(2):
            held, neighbours, pending = store.graph.forwards_and_neighbours("n", [a], neighbours=True)
            forwards = store.graph.forwards(["n"], [a])
            assert held.ords.tolist() == forwards.ords.tolist() == [a]
            assert held.entries.tolist() == forwards.entries.tolist()
            assert [(o, other) for o, other, _ in neighbours] == [(a, b)]
            assert list(store.graph.forwards_and_neighbours("n", [a], neighbours=False)[1]) == []
            keys = [term_key(word) for word in ("gin", "rum", "tea", "ale")]
            shared = shown(store.postings(["n"], keys, shared=True))
            assert shown(store.postings(["n"], keys, shared=True, pending=pending)) == shared
            # keys that were pending then, and are not any more, or are not yet
            assert shown(store.postings(["n"], keys, shared=True, pending=keys)) == shared
            write(store, {"id": "c", "text": "gin ale"})
        assert set(shared["n"]) == {term_key("gin"), term_key("tea"), term_key("ale")}

    @pytest.mark.needs("dense")
    def test_the_nearest_come_exactly_in_order_within_the_scope(self, store: Store) -> None:
        write(
            store,
            {"id": "x", "vector": [1, 0, 0], "session": "s"},
            {"id": "xy", "vector": [1, 1, 0], "session": "s"},
            {"id": "y", "vector": [0, 2, 0]},
            {"id": "back", "vector": [-1, 0, 0]},
        )
        at = {ord_of(store, i): i for i in ("x", "xy", "y", "back")}

        def nearest(filters: Filters, exclude: tuple[str, ...], depth: int) -> list[tuple[str, float]]:
            found = store.vectors.nearest(store.scope(("n",), filters, exclude), unit(1, 0, 0), depth)
            assert list(found.scores) == sorted(found.scores, reverse=True)
            return [(at[o], pytest.approx(s, abs=1e-6)) for o, s in zip(found.ords, found.scores, strict=True)]

        root = 0.5**0.5  # the cosine of 45 degrees
        assert nearest(ANY, (), 10) == [("x", 1), ("xy", root), ("y", 0), ("back", -1)]
        assert nearest(ANY, (), 2) == [("x", 1), ("xy", root)]
        assert nearest(ANY, ("x",), 2) == [("xy", root), ("y", 0)]
        assert nearest(Filters(sessions=("s",)), (), 10) == [("x", 1), ("xy", root)]
        assert nearest(Filters(sessions=("s",)), ("x",), 1) == [("xy", root)]
        assert nearest(Filters(sessions=("nobody",)), (), 10) == []

    @pytest.mark.needs("dense")
    def test_similarities_leave_out_memories_without_a_vector(self, store: Store) -> None:
        write(store, {"id": "x", "vector": [3, 4, 0]}, {"id": "bare"})
        found = store.vectors.similarities(["n"], [ord_of(store, "x"), ord_of(store, "bare"), 999_999], unit(0, 1, 0))
        assert found == {ord_of(store, "x"): pytest.approx(0.8, abs=1e-6)}

    @pytest.mark.needs("graph")
    @pytest.mark.parametrize("maintained", [False, True])
    def test_subjects_and_names_are_known_at_once_and_after_maintenance(self, store: Store, maintained: bool) -> None:
        write(store, {"id": "a", "title": "Ada Lovelace", "text": "She met Charles Babbage."})
        if maintained:
            store.maintain()
        ada, charles = key(Kind.NAME, ("ada", "lovelace")), key(Kind.NAME, ("charles", "babbage"))
        nobody = key(Kind.NAME, ("nobody",))
        known = store.graph.snapshot_with_subjects({"n": [ada, charles, nobody], "m": []})[2]
        assert known == {"n": {ada}, "m": set()}
        assert store.graph.names(["n"], [ada, charles, nobody]) == {ada: "Ada Lovelace", charles: "Charles Babbage"}
        moments, corrections, known = store.graph.snapshot_with_subjects({"n": [ada, charles], "m": [ada], "none": []})
        moment = moments["n"]
        assert moments == {"n": 1, "m": 0, "none": 0}
        assert corrections == store.graph.snapshot(["n", "m", "none"])[1]
        assert known == {"n": {ada}, "m": set(), "none": set()}
        assert store.graph.changed_and_known_subjects("n", moment, [ada, charles]) == (set(), {ada})
        assert store.graph.record_correction("n", (charles, "Charles Babbage"), (ada, "Ada Lovelace"))
        assert store.graph.snapshot_with_subjects({"n": [charles]})[2] == {"n": {ada}}
        assert store.graph.changed_and_known_subjects("n", moment, []) == ({ada, charles}, set())
        assert store.graph.changed_subjects("n", moment) == {ada, charles}
        store.forget("n", "a", ANY, dry_run=False)
        assert store.graph.snapshot_with_subjects({"n": [ada]})[2] == {"n": set()}
        assert store.graph.names(["n"], [ada, charles]) == {}

    @pytest.mark.parametrize("filters", [ANY, Filters(authors=("Ada",))])
    def test_a_scope_that_is_asked_with_names_has_the_kinds_and_corrections_of_its_namespaces(
        self, store: Store, filters: Filters
    ) -> None:
        write(store, {"id": "a", "author": "Ada", "session": "s"}, {"id": "b", "author": "Bob"})
        write(store, {"id": "a"}, namespace="m")
        if "graph" in store.capabilities:
            assert store.graph.record_correction("n", (1, "Lovelace"), (2, "Ada"))
        names = ["ada", "nobody"]
        plain, whole = store.scope(("n", "m"), filters, ("b",)), store.scope(("n", "m"), filters, ("b",), names)
        assert (plain.size, plain.settings, plain.kinds, plain.corrections) == (whole.size, None, None, None)
        assert np.array_equal(plain.excluded, whole.excluded)
        assert (plain.allowed is None) == (not filters)
        assert plain.allowed is None or np.array_equal(plain.allowed, whole.allowed)
        assert whole.kinds == store.conversation_facts(["n", "m"], names)
        assert list(whole.kinds["n"].named) == ["Ada"]
        if "graph" in store.capabilities:
            assert whole.corrections == store.graph.snapshot(["n", "m"])[1]
            assert whole.corrections["n"].into == {1: (2, "Ada")}

    @pytest.mark.needs("graph")
    def test_the_names_that_memories_are_about_come_with_what_people_read_for_them(self, store: Store) -> None:
        write(
            store, {"id": "a", "title": "Ada Lovelace", "text": "She met Charles Babbage."}, {"id": "t", "text": "tea"}
        )
        store.maintain()
        write(store, {"id": "b", "title": "Grace Hopper", "text": "She met nobody."})
        a, b, t = (ord_of(store, id) for id in "abt")
        ada, grace = key(Kind.NAME, ("ada", "lovelace")), key(Kind.NAME, ("grace", "hopper"))
        for _ in range(2):
            found = store.graph.subject_names("n", [t, b, a])
            assert {(ord, name) for ord, at, _, name in found if at in (ada, grace)} == {
                (a, "Ada Lovelace"),
                (b, "Grace Hopper"),
            }
            assert store.graph.names(["n"], {at for _, at, _, _ in found}) == {at: name for _, at, _, name in found}
            forwards = store.graph.forwards(["n"], [a, b, t])
            about = (forwards.entries["subject"] > 0) & (forwards.entries["kind"] == int(Kind.NAME))
            owners = np.repeat(forwards.ords, forwards.sizes)[about].tolist()
            held = forwards.entries[about]
            rows = zip(owners, held["key"].tolist(), held["subject"].tolist(), strict=True)
            assert [(ord, at, weight) for ord, at, weight, _ in found] == sorted(rows)
            store.maintain()
        assert list(store.graph.subject_names("m", [a])) == []

    # ------------------------------------------------------------------ vectors and who filled them

    @pytest.mark.needs("dense")
    def test_the_first_embedder_to_claim_a_store_is_the_one_recorded(self, store: Store) -> None:
        first = {"name": "one", "dimensions": 3, "fingerprint": "f"}
        assert store.vectors.embedder() is None
        assert store.vectors.claim_embedder(first) == first
        assert store.vectors.claim_embedder({"name": "two", "dimensions": 4, "fingerprint": "g"}) == first
        assert store.vectors.embedder() == first

    @pytest.mark.needs("dense")
    def test_vectors_that_are_missing_can_be_found_and_added_once(self, store: Store) -> None:
        text = " ".join(f"Sentence number {n} is here." for n in range(100))
        write(store, {"id": "has", "vector": [1, 0, 0]}, {"id": "a", "title": "T"}, {"id": "long", "text": text})
        write(store, {"id": "b"}, namespace="z")
        parts = store.ords_of("n", "long")
        a, b = ord_of(store, "a"), ord_of(store, "b", "z")
        missing = [(m.namespace, o, m) for o, m in store.vectors.missing_vectors(("", 0), 100)]
        assert [(n, o) for n, o, _ in missing] == sorted([("n", a), *(("n", o) for o in parts), ("z", b)])
        assert next((m.id, m.title, m.text) for _, o, m in missing if o == a) == ("a", "T", "text of a")
        assert [o for o, _ in store.vectors.missing_vectors(missing[0][:2], 1)] == [missing[1][1]]
        store.forget("z", "b", ANY, dry_run=False)
        store.vectors.add_vectors([(n, o, unit(0, 1, 0)) for n, o, _ in missing])
        store.vectors.add_vectors([("n", a, unit(1, 0, 0))])  # it has one: nothing changes
        assert store.vectors.similarities(["n"], [a], unit(0, 1, 0)) == {a: pytest.approx(1)}
        assert list(store.vectors.missing_vectors(("", 0), 100)) == []
        assert store.stats(None).vectors == 2 + len(parts)  # not one of what was forgotten

    @pytest.mark.needs("dense")
    def test_the_turns_around_memories_come_with_their_vectors_and_those_without_one_alone(self, store: Store) -> None:
        said = {"session": "s", "author": "Ada"}
        write(store, {"id": "a", "vector": [1, 0, 0], **said}, {"id": "b", "vector": [0, 1, 0], **said}, {"id": "c"})
        write(store, {"id": "bare", "text": "no vector", **said}, {"id": "a"}, namespace="m")
        a, b, c, bare = (ord_of(store, *name) for name in (("a",), ("b",), ("c",), ("bare", "m")))
        like = unit(1, 0, 0)
        turns, held, found = store.vectors.turns_with_vectors(["n"], [a, c], like)
        assert turns == store.session_turns(["n"], [a, c])
        assert [turn.ord for turn in turns] == [a, b, c]
        assert (held.tolist(), found.tolist()) == ([a, b], [[1, 0, 0], [0, 1, 0]])
        turns, held, found = store.vectors.turns_with_vectors(["m"], [bare], like)
        assert ([turn.ord for turn in turns], held.tolist(), found.tolist()) == ([bare], [], [])
        assert store.vectors.turns_with_vectors(["n"], [], like)[0] == []

    @pytest.mark.needs("dense")
    @pytest.mark.parametrize("exclude", [(), ("b",)])
    @pytest.mark.parametrize("depth", [1, 3, 10])
    def test_the_nearest_come_with_the_turns_around_them_as_if_both_were_asked_for(
        self, store: Store, exclude: tuple[str, ...], depth: int
    ) -> None:
        said = {"session": "s", "author": "Ada"}
        write(store, {"id": "a", "vector": [1, 0, 0], **said}, {"id": "b", "vector": [1, 1, 0], **said})
        write(store, {"id": "c", "vector": [0, 1, 0]}, {"id": "d", "vector": [0, 1, 0]})
        write(store, {"id": "e", "vector": [0, 0, 1]})
        write(store, {"id": "a", "vector": [1, 0, 0], **said}, namespace="m")
        scope, like = store.scope(("n",), ANY, exclude), unit(1, 0.5, 0)
        near, turns, held, found = store.vectors.nearest_with_turns(scope, like, depth)
        alone = store.vectors.nearest(scope, like, depth)
        assert (near.ords, near.scores, near.total) == (alone.ords, alone.scores, alone.total)
        assert len(near.ords) == min(depth, 5 - len(exclude))
        whole = store.vectors.turns_with_vectors(["n"], near.ords, like)
        assert (turns, held.tolist(), found.tolist()) == (whole[0], whole[1].tolist(), whole[2].tolist())
        assert len(turns) == {1: 2, 3: 4 if exclude else 3, 10: 5}[depth]  # b a c, or a c d and b beside a

    # ------------------------------------------------------------------ counting, forgetting, maintaining

    @pytest.mark.needs("graph")
    def test_concepts_and_mentions_are_counted_at_once_and_the_same_after_maintenance(self, store: Store) -> None:
        write(
            store, {"id": "a", "title": "Ada Lovelace", "text": "She met Charles Babbage."}, {"id": "b", "text": "Tea?"}
        )
        write(store, {"id": "a", "title": "Ada Lovelace", "text": "She met Charles Babbage again."}, namespace="m")

        def counts() -> list[tuple[int, int]]:
            found = [store.stats(where) for where in ("n", "m", "nobody", None)]
            return [(stats.concepts, stats.mentions) for stats in found]

        before = counts()
        assert all(concepts > 0 < mentions for concepts, mentions in (before[0], before[1], before[3]))
        assert before[2] == (0, 0)
        assert before[3][1] == before[0][1] + before[1][1]
        assert before[3][0] <= before[0][0] + before[1][0]
        store.maintain()
        assert counts() == before
        write(store, {"id": "c", "title": "Ada Lovelace", "text": "She met Mary Somerville."})
        mixed = counts()
        assert mixed[0] > before[0]
        store.maintain()
        assert counts() == mixed, (counts(), mixed)

    def test_a_dry_run_counts_and_forgets_nothing(self, store: Store) -> None:
        write(store, {"id": "a"}, {"id": "b"})
        assert store.forget("n", "a", ANY, dry_run=True) == 1
        assert store.forget("n", "nobody", ANY, dry_run=False) == 0
        assert store.stats("n").memories == 2

    def test_a_namespace_is_forgotten_whole_with_its_settings_whatever_times_its_memories_have(
        self, store: Store
    ) -> None:
        text = " ".join(f"Sentence number {n} is here." for n in range(100))
        dated = [{"id": str(n), "created_at": at} for n, at in enumerate(("0001-01-01", "9999-12-31T23:59:59Z"))]
        items = [{"id": "long", "text": text}, {"id": "a", "title": "Ada Lovelace"}, *dated]
        write(store, *items)
        store.maintain()
        write(store, {"id": "late", "title": "Charles Babbage"})
        write(store, *items, namespace="other")
        for namespace in ("n", "other", "bare"):
            store.change_settings(namespace, {"dedup": False}, ())
        assert store.forget_namespace("n", dry_run=True) == store.stats("n").memories == 5
        assert store.forget_namespace("n", dry_run=False) == 5
        assert store.forget_namespace("n", dry_run=False) == store.forget_namespace("bare", dry_run=False) == 0
        assert [row[0] for row in store.settings(None)] == ["other"]
        stats = store.stats("n")
        assert (stats.memories, stats.parts, stats.concepts, stats.mentions, stats.pending) == (0, 0, 0, 0, 0)
        assert store.scope(("n",), ANY, ()).size == 0
        assert list(store.namespaces()) == ["other"]
        assert len(store.postings(["n"], [term_key("sentenc")])["n"].entries) == 0
        assert len(ids(store.list("other", ANY, 10, None))) == 4
        assert write(store, *items).remembered == 4

    def test_what_was_forgotten_can_be_remembered_anew_with_other_content(self, store: Store) -> None:
        write(store, {"id": "a"})
        store.forget("n", "a", ANY, dry_run=False)
        assert write(store, {"id": "a", "text": "changed"}).remembered == 1
        assert store.get("n", ["a"])[0].text == "changed"
        assert store.stats("n").memories == 1

    @pytest.mark.needs("dense")
    def test_a_forgotten_memory_takes_its_vector_with_it(self, store: Store) -> None:
        write(store, {"id": "a", "vector": [1, 0, 0]})
        store.forget("n", "a", ANY, dry_run=False)
        assert store.stats("n").vectors == 0
        write(store, {"id": "a", "text": "changed", "vector": [0, 1, 0]})
        assert store.stats("n").vectors == 1

    def test_maintenance_changes_no_answer_and_has_nothing_left_to_do_a_second_time(self, store: Store) -> None:
        dense = "dense" in store.capabilities
        texts = ({"id": str(n), "text": f"memory {n} of a few"} for n in range(30))
        write(store, *({**item, "vector": [n, 1, 0]} if dense else item for n, item in enumerate(texts)))
        store.forget("n", "7", ANY, dry_run=False)

        def answers() -> Any:
            scope = store.scope(("n",), ANY, ())
            near = store.vectors.nearest(scope, unit(1, 0, 0), 10) if dense else None
            held = store.postings(["n"], [term_key("memori"), term_key("8")])["n"].items()
            matched = {at: sorted(entries[["ord", "count", "length"]].tolist()) for at, entries in held}
            return ids(store.list("n", ANY, 100, None)), scope.size, near, matched

        before = answers()
        assert {at: len(rows) for at, rows in before[3].items()} == {term_key("memori"): 29, term_key("8"): 1}
        store.maintain()
        assert answers() == before
        assert store.stats("n").pending == 0
        assert not any(store.maintain().values())

    def test_old_changes_are_swept_and_what_is_left_says_up_to_where(self, store: Store) -> None:
        write(store, {"id": "a"}, {"id": "b"})
        store.forget("n", "a", ANY, dry_run=False)
        store.forget_namespace("n", dry_run=False)
        write(store, {"id": "c"}, namespace="m")
        assert "changes" not in store.maintain(Keep(changes_days=1))
        done = store.maintain(Keep(changes_days=-1))  # older than tomorrow
        assert done["changes"] == 2  # a drop leaves itself of its namespace
        assert "changes" not in store.maintain(Keep(changes_days=-1))
        write(store, {"id": "d"}, namespace="m")
        assert store.maintain(Keep(changes_days=-1))["changes"] == 1

    def test_an_empty_store_answers_everything_with_nothing(self, store: Store) -> None:
        scope = store.scope(("n",), ANY, ("x",))
        assert scope.size == 0
        if "dense" in store.capabilities:
            assert store.vectors.nearest(scope, unit(1, 0, 0), 10).ords == ()
        assert (store.list("n", ANY, 10, None).memories, store.get("n", ["a"]), store.ords_of("n", "a")) == ((), [], ())
        stats = store.stats(None)
        assert (stats.memories, stats.namespaces, stats.vectors, stats.embedder) == (0, 0, 0, None)
        assert not any(store.maintain().values())

    def test_what_is_not_declared_is_refused_in_a_sentence_that_says_where_to_find_it(self, store: Store) -> None:
        refused = {
            "dense": lambda: vectors_of(store).claim_embedder({"name": "one", "dimensions": 3, "fingerprint": "f"}),
            "graph": lambda: graph_of(store).graph_hash("n"),
        }
        kept = {"lexical", *(name for name, part in (("dense", store.vectors), ("graph", store.graph)) if part)}
        assert store.capabilities == kept
        for capability, ask in refused.items():
            if capability in store.capabilities:
                ask()
            else:
                with pytest.raises(InvalidInput, match=rf"{store.kind} store keeps no .*; a PostgreSQL store does"):
                    ask()

    def test_settings_of_a_namespace_come_back_as_they_were_set(self, store: Store) -> None:
        store.change_settings("n", {"weights.graph": 0.5, "dedup": False, "recipe": "seed"}, ())
        store.change_settings("m", {"recipe": "hybrid"}, ())
        store.change_settings("n", {"weights.graph": 2}, ["recipe", "nothing"])
        assert [tuple(row) for row in store.settings("n")] == [("n", "dedup", False), ("n", "weights.graph", 2)]
        assert [row[0] for row in store.settings(None)] == ["m", "n", "n"]
        assert json.loads(store.scope(("n",), ANY, ()).settings or "") == [
            ["n", "dedup", False],
            ["n", "weights.graph", 2],
        ]
        assert store.scope(("other",), ANY, ()).settings is None

    def test_a_closed_store_says_so(self, store: Store) -> None:
        store.close()
        with pytest.raises(StoreClosed, match="closed"):
            store.get("n", ["a"])
        store.close()
