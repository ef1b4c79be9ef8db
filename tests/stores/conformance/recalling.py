"""The answers that a recall asks of every store."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

import semmem
from semmem.client.connection import legs_of
from semmem.legs import Legs
from semmem.model.exchange import Kind
from semmem.model.store import Store, graph_of
from semmem.model.types import Filters
from semmem.read.recall import Recaller
from semmem.text.passages import content_key, term_key
from semmem.text.tokens import key
from tests.stores.conformance.hand_made import ANY, NOON, row_id_of, shown, unit, write


class Recalling:
    """The answers that a recall asks of every store."""

    def test_excluding_a_memory_excludes_its_parts_and_not_what_is_called_like_one(self, store: Store) -> None:
        text = " ".join(f"Sentence number {n} is here." for n in range(100))
        write(store, {"id": "long", "text": text}, {"id": "long#1"}, {"id": "b"})
        parts = store.row_ids_of("n", "long")
        lone, b = row_id_of(store, "long#1"), row_id_of(store, "b")
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
            assert everything[scope.matches(everything)].tolist() == sorted({*parts, lone, b} - set(wanted))
        assert store.scope(("n",), ANY, ()).size == len(parts) + 2

    def test_heads_are_what_fusion_needs(self, store: Store) -> None:
        write(store, {"id": "a", "text": "Tea!", "importance": 0.75}, {"id": "b", "text": "tea"})
        metadata = store.candidate_metadata(["n"], [row_id_of(store, "a"), row_id_of(store, "b"), 999_999])
        assert [(h.namespace, h.id, h.part, h.importance) for h in metadata.values()] == [
            ("n", "a", 0, 0.75),
            ("n", "b", 0, 0.5),
        ]
        assert {bytes(h.content) for h in metadata.values()} == {content_key("tea")}
        assert {(h.created_at, h.updated_at) for h in metadata.values()} == {(NOON.timestamp(), NOON.timestamp())}
        assert store.candidate_metadata(["n"], []) == {}

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
        at = {row_id_of(store, i): i for i in ("a", "b", "c", "d", "other", "alone")}
        found = [(at[row_id], at[near], same) for row_id, near, same in store.graph.neighbours(["n"], list(at))]
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
        at = {row_id_of(store, i): i for i in ("first", "second", "then", "last")}
        turns = store.session_turns(["n"], list(at))
        assert [at[turn.row_id] for turn in turns] == ["first", "second", "then", "last"]
        assert {turn.row_id: turn.candidate for turn in turns} == store.candidate_metadata(["n"], list(at))
        if store.graph is None:
            return
        beside = sorted((at[row_id], at[near]) for row_id, near, _ in store.graph.neighbours(["n"], list(at)))
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
        recaller = Recaller(store, Legs(store, legs_of(store, "english")), lambda: "no embedder", "english")

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
        a, b, c = (row_id_of(store, i) for i in "abc")
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
        row_ids = sorted(row_id_of(store, id, "one") for id in "ab")
        for how in ({}, {"shared": True}, {"max_df": 9}, {"shared": True, "pending": [tea]}):
            found = store.postings(["one"], [tea], **how)["one"]  # type: ignore[arg-type]
            assert {at: entries["ord"].tolist() for at, entries in found.items()} == {tea: row_ids}, how

    @pytest.mark.needs("lexical")
    def test_what_is_forgotten_after_it_was_folded_is_in_no_posting(self, store: Store) -> None:
        write(store, *({"id": id, "text": "tea"} for id in "abcd"), {"id": "e", "text": "gin"})
        store.maintain()
        tea, gin = term_key("tea"), term_key("gin")
        for gone, left in [("a", "bcd"), ("d", "bc"), ("e", "bc"), ("b", "c"), ("c", "")]:  # the ends of a segment too
            store.forget("n", gone, ANY, dry_run=False)
            found = shown(store.postings(["n"], [tea, gin]))["n"]
            assert [row[0] for row in found.get(tea, ())] == [row_id_of(store, id) for id in left], gone
            assert (gin in found) == (gone in "ad"), gone

    @pytest.mark.needs("graph")
    def test_a_term_is_shared_where_a_second_memory_of_the_same_namespace_has_it(self, store: Store) -> None:
        def shared(namespace: str) -> list[int]:
            (found,) = store.postings([namespace], [gin], shared=True).values()
            return sorted(row_id for _, entries in found.items() for row_id in entries["ord"].tolist())

        gin = term_key("gin")
        many = [[{"id": f"{n}{at}", "text": "gin" if at == 9 else f"w{n}x{at}"} for at in range(64)] for n in range(2)]
        write(store, *many[0], namespace="one")  # so many are flushed at once
        assert shared("one") == []
        write(store, *many[1], namespace="one")
        assert shared("one") == sorted(row_id_of(store, id, "one") for id in ("09", "19"))
        write(store, *many[0], namespace="two")
        assert shared("two") == []
        store.maintain()
        assert (len(shared("one")), shared("two")) == (2, [])

    @pytest.mark.needs("graph")
    def test_pending_keys_are_those_of_one_namespace(self, store: Store) -> None:
        write(store, {"id": "a", "text": "tea"}, namespace="one")
        store.maintain()
        write(store, {"id": "x", "text": "rum"}, namespace="two")
        graph = graph_of(store)

        def pending(namespace: str, id: str) -> list[int]:
            row_ids = [row_id_of(store, id, namespace)]
            return graph.forwards_and_neighbours(namespace, row_ids, neighbours=False)[2].tolist()

        keeps_some = store.stats(None).pending > 0  # SQLite puts each memory in its place at once
        assert (pending("one", "a"), term_key("rum") in pending("two", "x")) == ([], keeps_some)

    @pytest.mark.needs("graph")
    def test_a_name_is_spelt_as_its_own_namespace_spells_it(self, store: Store) -> None:
        for namespace, title in (("one", "Blue Ferry"), ("two", "Blue ferry")):
            write(store, {"id": "a", "title": title}, {"id": "b", "title": title}, namespace=namespace)
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
        a, b = row_id_of(store, "a"), row_id_of(store, "b")
        for _ in range(2):
            held, neighbours, pending = store.graph.forwards_and_neighbours("n", [a], neighbours=True)
            forwards = store.graph.forwards(["n"], [a])
            assert held.row_ids.tolist() == forwards.row_ids.tolist() == [a]
            assert held.entries.tolist() == forwards.entries.tolist()
            assert [(o, other) for o, other, _ in neighbours] == [(a, b)]
            assert list(store.graph.forwards_and_neighbours("n", [a], neighbours=False)[1]) == []
            keys = [term_key(word) for word in ("gin", "rum", "tea", "ale")]
            shared = shown(store.postings(["n"], keys, shared=True))
            assert shown(store.postings(["n"], keys, shared=True, pending=pending)) == shared
            # keys that were pending then, and are not any more, or are not yet
            assert shown(store.postings(["n"], keys, shared=True, pending=keys)) == shared
            write(store, {"id": "c", "text": "gin ale"})
        assert set(shared["n"]) - {term_key("ale")} == {term_key("gin"), term_key("tea")}
        assert (term_key("ale") in shared["n"]) == (store.stats(None).pending > 0)  # one memory has it, pending if any

    @pytest.mark.needs("dense")
    def test_the_nearest_come_exactly_in_order_within_the_scope(self, store: Store) -> None:
        write(
            store,
            {"id": "x", "vector": [1, 0, 0], "session": "s"},
            {"id": "xy", "vector": [1, 1, 0], "session": "s"},
            {"id": "y", "vector": [0, 2, 0]},
            {"id": "back", "vector": [-1, 0, 0]},
        )
        at = {row_id_of(store, i): i for i in ("x", "xy", "y", "back")}

        def nearest(filters: Filters, exclude: tuple[str, ...], depth: int) -> list[tuple[str, float]]:
            found = store.vectors.nearest(store.scope(("n",), filters, exclude), unit(1, 0, 0), depth)
            assert list(found.scores) == sorted(found.scores, reverse=True)
            return [(at[o], pytest.approx(s, abs=1e-6)) for o, s in zip(found.row_ids, found.scores, strict=True)]

        root = 0.5**0.5  # the cosine of 45 degrees
        assert nearest(ANY, (), 10) == [("x", 1), ("xy", root), ("y", 0), ("back", -1)]
        assert nearest(ANY, (), 2) == [("x", 1), ("xy", root)]
        assert nearest(ANY, ("x",), 2) == [("xy", root), ("y", 0)]
        assert nearest(Filters(sessions=("s",)), (), 10) == [("x", 1), ("xy", root)]
        assert nearest(Filters(sessions=("s",)), ("x",), 1) == [("xy", root)]
        assert nearest(Filters(sessions=("nobody",)), (), 10) == []

    @pytest.mark.needs("dense")
    def test_the_nearest_within_a_filter_are_of_one_namespace(self, store: Store) -> None:
        for namespace, vectors in (("one", [(0, 1, 0), (0, 0, 1)]), ("two", [(1, 0, 0), (1, 0, 0)])):
            rows = [{"id": id, "session": "s", "vector": list(v)} for id, v in zip("ab", vectors, strict=True)]
            write(store, *rows, namespace=namespace)
        scope = store.scope(("one",), Filters(sessions=("s",)), ())
        near = store.vectors.nearest(scope, unit(0, 2, 1), 10)
        assert list(near.row_ids) == [row_id_of(store, id, "one") for id in "ab"]

    @pytest.mark.needs("dense")
    def test_similarities_leave_out_memories_without_a_vector(self, store: Store) -> None:
        write(store, {"id": "x", "vector": [3, 4, 0]}, {"id": "bare"})
        found = store.vectors.similarities(
            ["n"], [row_id_of(store, "x"), row_id_of(store, "bare"), 999_999], unit(0, 1, 0)
        )
        assert found == {row_id_of(store, "x"): pytest.approx(0.8, abs=1e-6)}

    @pytest.mark.needs("graph")
    @pytest.mark.parametrize("maintained", [False, True])
    def test_subjects_and_names_are_known_at_once_and_after_maintenance(self, store: Store, maintained: bool) -> None:
        write(store, {"id": "a", "title": "Ada Lovelace", "text": "She met Charles Babbage."})
        if maintained:
            store.maintain()
        ada, charles = key(Kind.NAME, ("ada", "lovelace")), key(Kind.NAME, ("charles", "babbage"))
        nobody = key(Kind.NAME, ("nobody",))
        postings = store.postings(["n"], [ada, charles, nobody], shared=True)["n"]
        assert [at for at, entries in postings.items() if (entries["subject"] > 0).any()] == [ada]
        assert store.graph.names(["n"], [ada, charles, nobody]) == {ada: "Ada Lovelace", charles: "Charles Babbage"}
        assert store.graph.record_correction("n", (charles, "Charles Babbage"), (ada, "Ada Lovelace"))
        corrections = store.graph.corrections(["n", "m"])
        assert (corrections["n"].into, corrections["m"].into) == ({charles: (ada, "Ada Lovelace")}, {})
        store.forget("n", "a", ANY, dry_run=False)
        assert store.graph.corrections(["n"])["n"].into == {}
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
            assert whole.corrections == store.graph.corrections(["n", "m"])
            assert whole.corrections["n"].into == {1: (2, "Ada")}

    @pytest.mark.needs("graph")
    @pytest.mark.parametrize("flushed", ["together", "apart", "the first", "never"])
    def test_a_memory_is_about_a_name_as_its_own_title_writes_it(self, store: Store, flushed: str) -> None:
        for id, title in (("a", "Sunniva Holt's notes"), ("b", "sunniva holt"), ("c", "SUNNIVA HOLT")):
            write(store, {"id": id, "title": title, "text": "She lives above a bakery."})
            if flushed == "apart" or (flushed == "the first" and id == "a"):
                store.maintain()
        if flushed == "together":
            store.maintain()
        holt = key(Kind.NAME, ("sunniva", "holt"))
        rows = store.graph.subject_names("n", [row_id_of(store, id) for id in "abc"])
        ids = {row_id_of(store, id): id for id in "abc"}
        found = {ids[row_id]: name for row_id, at, _, name in rows if at == holt}
        assert {"b": "sunniva holt", "c": "SUNNIVA HOLT"}.items() <= found.items()
        assert found.get("a", "Sunniva Holt") == "Sunniva Holt"

    @pytest.mark.needs("graph")
    def test_the_names_that_memories_are_about_come_with_what_people_read_for_them(self, store: Store) -> None:
        write(
            store, {"id": "a", "title": "Ada Lovelace", "text": "She met Charles Babbage."}, {"id": "t", "text": "tea"}
        )
        store.maintain()
        write(store, {"id": "b", "title": "Grace Hopper", "text": "She met nobody."})
        a, b, t = (row_id_of(store, id) for id in "abt")
        ada, grace = key(Kind.NAME, ("ada", "lovelace")), key(Kind.NAME, ("grace", "hopper"))
        for _ in range(2):
            found = store.graph.subject_names("n", [t, b, a])
            assert {(row_id, name) for row_id, at, _, name in found if at in (ada, grace)} == {
                (a, "Ada Lovelace"),
                (b, "Grace Hopper"),
            }
            assert store.graph.names(["n"], {at for _, at, _, _ in found}) == {at: name for _, at, _, name in found}
            forwards = store.graph.forwards(["n"], [a, b, t])
            about = (forwards.entries["subject"] > 0) & (forwards.entries["kind"] == int(Kind.NAME))
            owners = np.repeat(forwards.row_ids, forwards.sizes)[about].tolist()
            held = forwards.entries[about]
            rows = zip(owners, held["key"].tolist(), held["subject"].tolist(), strict=True)
            assert [(row_id, at, weight) for row_id, at, weight, _ in found] == sorted(rows)
            store.maintain()
        assert list(store.graph.subject_names("m", [a])) == []
        write(store, {"id": "a", "title": "Bob Ross"}, namespace="m")
        assert [name for *_, name in store.graph.subject_names("m", [row_id_of(store, "a", "m")])] == ["Bob Ross"]
