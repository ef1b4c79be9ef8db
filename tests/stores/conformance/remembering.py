"""Remembering, getting and listing, as every store does."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from semmem.extractors import Rules
from semmem.model.errors import Conflict, InvalidInput
from semmem.model.history import Access
from semmem.model.store import Store, graph_of, life_of
from semmem.model.types import Filters, IngestReport, ListOrder, Memory
from semmem.write.ingest import Ingest
from tests.stores.conformance.hand_made import ANY, NOON, ODD_IDS, ids, row_id_of, write
from tests.stores.expiry import expire


class Remembering:
    """Remembering, getting and listing, as every store does."""

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
        found = store.snapshot(("n",), ANY, (), ("ada",))
        assert found.scope.size == 1
        write(store, {"id": "b"})
        found.confirm()  # a snapshot that is assumed to be up to date raises Moved here

    def test_filters_and_exclusions_take_no_row_id_of_a_memory_of_another_namespace(self, store: Store) -> None:
        # a memory has the same number in both namespaces, and only in the other one what is asked for
        write(store, {"id": "a", "session": "s"}, {"id": "b"}, {"id": "c"}, namespace="one")
        write(store, {"id": "x"}, {"id": "y", "session": "s"}, {"id": "a"}, namespace="two")
        scope = store.scope(("one",), Filters(sessions=("s",)), ())
        assert (scope.size, np.asarray(scope.allowed).tolist()) == (1, [row_id_of(store, "a", "one")])
        excluded = store.scope(("one",), ANY, ("a",)).excluded
        assert np.asarray(excluded).tolist() == [row_id_of(store, "a", "one")]

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
        row_ids = [row_id_of(store, id, "one") for id in "ab"]
        assert graph_of(store).by_author(["one"], row_ids, "Ada").tolist() == row_ids[:1]

    @pytest.mark.needs("graph")
    def test_a_title_is_that_of_the_memory_in_the_namespace_that_is_asked(self, store: Store) -> None:
        write(store, {"id": "a", "title": "Ada Lovelace"}, {"id": "b"}, namespace="one")
        write(store, {"id": "a", "title": "Bob Ross"}, {"id": "b", "title": "Tom Thumb"}, namespace="two")
        for namespace, titles in {"one": ("Ada Lovelace", None), "two": ("Bob Ross", "Tom Thumb")}.items():
            row_ids = [row_id_of(store, id, namespace) for id in "ab"]
            assert graph_of(store).titles([namespace], row_ids) == dict(zip(row_ids, titles, strict=True))

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
            assert len(store.row_ids_of("n", id)) == 1
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
        with pytest.raises(Conflict, match=r"'a'.*with another text; call update"):
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
        parts = store.row_ids_of("n", "long")
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

    def test_what_has_expired_is_there_for_nobody(self, store: Store) -> None:
        write(store, {"id": "a"}, {"id": "b", "expires_at": "2999-01-01"}, {"id": "c"})
        expire(store, "c")
        assert ids(store.get("n", ["a", "b", "c"])) == ids(store.list("n", ANY, 9, None))[::-1] == ["a", "b"]

    # ------------------------------------------------------------------ listing

    def test_the_last_position_of_a_session_is_found_whatever_else_stands_in_it(self, store: Store) -> None:
        write(
            store,
            {"id": "a", "session": "s", "position": 7, "created_at": NOON},
            {"id": "b", "session": "s", "position": 3, "created_at": NOON + timedelta(days=1)},
            {"id": "c", "session": "s"},
            {"id": "d", "session": "S", "position": 9},
            {"id": "e", "position": 11},
            {"id": "f", "session": "below", "position": -3},
            {"id": "g", "session": "none"},
        )
        write(store, {"id": "z", "session": "s", "position": 12}, namespace="m")
        asked = ("s", "S", "below", "none", "unknown")
        assert [store.last_position("n", session) for session in asked] == [7, 9, -3, None, None]

    def test_lists_are_newest_first_and_ids_are_compared_by_code_point(self, store: Store) -> None:
        names = ["Z", "a", "z", "é", "\uffff", "🦊", "B", "a#1", "a!"]
        write(store, *({"id": i} for i in names), {"id": "new", "created_at": NOON + timedelta(microseconds=1)})
        assert ids(store.list("n", ANY, 100, None)) == ["new", *sorted(names, key=lambda i: [ord(c) for c in i])[::-1]]

    def test_what_is_pinned_comes_by_importance_then_newest_first_of_one_time_by_id_downwards(
        self, store: Store
    ) -> None:
        old = NOON - timedelta(days=1)
        given: list[dict[str, Any]] = [{"id": id} for id in "bca"]
        given += [{"id": "x", "created_at": old}, {"id": "y", "created_at": old, "importance": 1.0}]
        given += [{"id": "secret", "importance": 1.0, "sensitive": True}, {"id": "over", "importance": 1.0}]
        write(store, *({**item, "pinned": True} for item in given), {"id": "z"})
        write(store, {"id": "other", "pinned": True}, namespace="m")
        expire(store, "over")
        assert [id for _, id in life_of(store).pinned(["n"], 10)] == ["y", "c", "b", "a", "x"]
        assert life_of(store).pinned(["n"], 1) == [("n", "y")]

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
        counts = {"1": (1, NOON), "4": (9, NOON + timedelta(microseconds=1))}
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
                for one in page:
                    assert (one.access_count, one.last_accessed) == counts.get(one.id, (0, None))
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

    @pytest.mark.parametrize("sort_by", ["importance", "updated", "accessed"])
    @pytest.mark.parametrize("key", ["Infinity", "NaN", "1e300", "-1e300", '"x"', "null"])
    def test_a_cursor_whose_key_no_memory_can_have_is_refused(self, store: Store, sort_by: ListOrder, key: str) -> None:
        if (sort_by, key) in {("importance", "1e300"), ("importance", "-1e300")}:
            return  # a number, behind or before every importance
        forged = f'["2026-01-01T00:00:00+00:00", "a", "{sort_by}", {key}]'
        with pytest.raises(InvalidInput, match="This cursor is not one that list returned"):
            store.list("n", ANY, 2, base64.urlsafe_b64encode(forged.encode()).decode(), sort_by)

    @pytest.mark.parametrize(
        "place", ['"2026-01-01", "a\\u0000"', '"2026-01-01", "\\ud800"', '"0001-01-01T00:00+14:00", "a"']
    )
    def test_a_cursor_with_an_id_or_a_time_that_no_memory_can_have_is_refused(self, store: Store, place: str) -> None:
        with pytest.raises(InvalidInput, match="This cursor is not one that list returned"):
            store.list("n", ANY, 2, base64.urlsafe_b64encode(f"[{place}]".encode()).decode())

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
            assert scope.allowed.tolist() == sorted(row_id_of(store, i) for i in wanted), filters
            assert scope.size == len(wanted)
            assert store.forget("n", None, filters, dry_run=True) == len(wanted), filters
        assert store.forget("n", None, Filters(tags=("x",)), dry_run=False) == 2
        assert ids(store.list("n", ANY, 10, None)) == ["c"]
