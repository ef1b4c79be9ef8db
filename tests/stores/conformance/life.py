"""Links, changes, corrections, answers, limits, moves and the audit, as every store keeps them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from semmem.concepts.rules import extract
from semmem.model.audit import AuditEntry, AuditFilters
from semmem.model.errors import NamespaceFull
from semmem.model.exchange import Corrections
from semmem.model.history import MOST_LINKS, MOST_SIMILAR, Link
from semmem.model.reports import Limits
from semmem.model.store import Keep, Store, graph_of, life_of
from semmem.read.changes import changes
from semmem.text.passages import term_key
from tests.stores.conformance.hand_made import ANY, NOON, ids, row_id_of, unit, write
from tests.stores.expiry import expire, written_then

DAY = timedelta(days=1)
PAST, FUTURE = "2001-01-01", "2999-01-01"
LONG = " ".join(f"Sentence number {n} is here." for n in range(100))
"""A text of several parts."""


def link(from_id: str, type: Any, to_id: str, since: datetime | None = None, made_by: str | None = None) -> Link:
    return Link("n", from_id, type, to_id, since, made_by)


def keys(links: Any) -> list[tuple[str, str, str]]:
    return [one.key for one in links]


def noted(id: str, namespace: str = "n", who: str | None = None) -> AuditEntry:
    return AuditEntry(id, None, namespace, who, "python", None, "recall", "done")


def rows_of(store: Store, sql: str) -> list[Any]:
    run: Any = store._run if store.kind == "SQLite" else store.run
    rows: list[Any] = run(lambda c: c.execute(sql).fetchall())
    return rows


def age(store: Store, days: int, unscrubbed: bytes | None = None) -> None:
    """Let the answers be older, and one wait for a rewriting of the files, as after a hard forget that failed."""
    run: Any = store._run if store.kind == "SQLite" else store.run
    # a column less an interval depends on the zone, and Citus changes no rows by what is no constant for them
    older = f"at - {days} * 86400000000" if store.kind == "SQLite" else f"now() - make_interval(days => {days})"
    run(lambda c: c.execute(f"UPDATE answered SET at = {older}").rowcount)
    if unscrubbed is not None:
        run(
            lambda c: (
                c.execute(f"UPDATE answered SET unscrubbed = true WHERE key = {literal(store, unscrubbed)}").rowcount
            )
        )


def seen_last(store: Store, at: datetime) -> None:
    """Let every memory have been written, or remembered again, at that time."""
    run: Any = store._run if store.kind == "SQLite" else store.run
    value = int(at.timestamp() * 1e6) if store.kind == "SQLite" else at
    mark = "?" if store.kind == "SQLite" else "%s"
    run(lambda c: c.execute(f"UPDATE memory SET last_seen = {mark} WHERE last_seen IS NOT NULL", (value,)))


def literal(store: Store, value: bytes) -> str:
    return f"X'{value.hex()}'" if store.kind == "SQLite" else f"'\\x{value.hex()}'"


class Life:
    """Links, changes, corrections, answers, limits, moves and the audit, as every store keeps them."""

    # ------------------------------------------------------------------ links

    def test_a_link_that_somebody_takes_over_from_semmem_keeps_the_earlier_time(self, store: Store) -> None:
        write(store, {"id": "a"}, {"id": "b"})
        life = life_of(store)
        for since, made_by, kept in (
            (NOON, "semmem", NOON),
            (NOON + DAY, "semmem", NOON),
            (NOON - DAY, "semmem", NOON - DAY),
            (NOON + DAY, "ana", NOON - DAY),
            (NOON - 9 * DAY, "bram", NOON - DAY),  # it is ana's now
        ):
            life.link("n", [link("a", "see-also", "b", since, made_by)])
            (found,) = life.links("n", ["b"])
            assert found.since == kept
        assert found.made_by == "ana"

    def test_what_is_not_valid_yet_or_has_expired_supersedes_nothing_and_ends_a_chain(self, store: Store) -> None:
        write(
            store,
            *({"id": id} for id in "abcd"),
            {"id": "later", "valid_from": FUTURE},
            {"id": "since", "valid_from": PAST, "expires_at": FUTURE},
            {"id": "gone"},
        )
        life = life_of(store)
        above = {"a": "later", "b": "since", "c": "gone", "later": "d", "since": "d"}
        life.link("n", [link(newer, "supersedes", older) for older, newer in above.items()])
        expire(store, "gone")
        newer = life.newer(["n"], {"n": ["a", "b", "c", "d"]})
        assert sorted((one.old, one.candidate.id) for one in newer) == [("b", "since"), ("since", "d")]

    def test_links_whose_other_end_is_gone_are_not_seen(self, store: Store) -> None:
        write(store, *({"id": id} for id in "abc"))
        life = life_of(store)
        life.link("n", [link("a", "see-also", "b"), link("c", "see-also", "a"), link("b", "contradicts", "c")])
        store.forget("n", "b", ANY, dry_run=False, soft=True)
        assert keys(life.links("n", ["a", "b", "c"])) == [("c", "see-also", "a")]
        assert life.undecided("n", "contradicts", 9) == []

    def test_the_walk_follows_so_many_links_in_each_direction_and_none_to_what_has_expired_or_that_semmem_made(
        self, store: Store
    ) -> None:
        more = MOST_LINKS + 1
        write(
            store,
            {"id": "hub"},
            *({"id": f"in {n:02}"} for n in range(more)),
            *({"id": f"out {n:02}"} for n in range(more)),
            {"id": "x"},
            {"id": "y", "sensitive": True},
            {"id": "z"},
        )
        life = life_of(store)
        links = [link("z", "part-of", "x"), link("z", "part-of", "y"), link("hub", "part-of", "z", None, "semmem")]
        links += [link(f"in {n:02}", "see-also", "hub") for n in range(more)]
        links += [link("hub", "see-also", f"out {n:02}") for n in range(more)]
        life.link("n", links)
        expire(store, "x")
        hub = row_id_of(store, "hub")
        assert len(life.linked("n", [hub])) == 2 * MOST_LINKS
        assert life.linked("n", [row_id_of(store, "z")]) == []
        assert life.linked("n", [row_id_of(store, "in 00")]) == [(row_id_of(store, "in 00"), hub, "see-also")]

    # ------------------------------------------------------------------ what is alike

    def test_of_a_key_that_many_have_the_newest_are_alike_but_no_secret_and_nothing_that_has_expired(
        self, store: Store
    ) -> None:
        names = [f"{n:02}" for n in range(MOST_SIMILAR + 3)]
        write(store, *({"id": name} for name in names), {"id": "last"})
        life = life_of(store)
        life.similar("n", {row_id_of(store, name): [7] for name in names})
        expire(store, names[-1])
        write(store, {"id": "secret", "sensitive": True})
        last = row_id_of(store, "last")
        found = [one.id for one in life.similar("n", {last: [7]})[last]]
        assert found == names[-2 : -MOST_SIMILAR - 1 : -1]  # of the newest twenty others, one has expired
        assert len(found) == MOST_SIMILAR - 1

    # ------------------------------------------------------------------ changes

    def test_changes_are_those_of_one_namespace_and_the_mark_of_a_sweep_is_none(self, store: Store) -> None:
        write(store, {"id": "a"}, {"id": "b"})
        write(store, {"id": "c"})
        write(store, {"id": "z"}, namespace="m")
        life = life_of(store)

        def after(number: int, id: str | None) -> list[tuple[int, str | None, str]]:
            return [(at, one.id, one.kind) for at, one in life.changes({"n": (number, id)}, 9)["n"].changes]

        assert after(0, None) == [(1, "a", "written"), (1, "b", "written"), (2, "c", "written")]
        assert after(1, "a") == [(1, "b", "written"), (2, "c", "written")]
        store.maintain(Keep(changes_days=-1))
        write(store, {"id": "d"})
        assert after(0, None) == [(3, "d", "written")]
        log = life.changes({"n": (3, "d")}, 9)["n"]
        assert (log.changes, log.number, log.swept) == ([], 3, 2)

    def test_nothing_that_was_kept_of_a_namespace_is_left_when_it_is_forgotten(self, store: Store) -> None:
        write(store, {"id": "a"}, {"id": "b"})
        write(store, {"id": "a"}, namespace="m")
        life = life_of(store)
        for namespace in ("n", "m"):
            store.forget(namespace, "a", ANY, dry_run=False, soft=True)
        store.forget_namespace("n", dry_run=False)
        assert (life.history("n", "a"), life.forgotten("n", "a")) == ([], None)
        assert [one.memory.id for one in life.history("m", "a")] == ["a"]

    # ------------------------------------------------------------------ what was derived

    def test_memories_are_read_anew_by_their_row_ids_and_counted_whole(self, store: Store) -> None:
        write(store, {"id": "a"})
        write(store, {"id": "long", "text": LONG}, {"id": "secret", "sensitive": True})
        write(store, {"id": "b"})
        write(store, {"id": "z"}, {"id": "y"}, namespace="m")
        life, last = life_of(store), row_id_of(store, "b")
        made = life.made_between("n", 0, last, 9)
        assert [one.memory.id for one in made] == ["a", "long", "b"]
        assert made[1].row_ids == store.row_ids_of("n", "long")
        assert len(made[1].lengths) == len(made[1].row_ids) > 1
        assert [one.memory.id for one in life.made_between("n", 0, last, 2)] == ["a", "long"]
        assert (life.count_made("n", 0, last), life.count_made("n", row_id_of(store, "a"), last - 1)) == (3, 1)
        assert life.count_made("m", 0, last) == 2

    # ------------------------------------------------------------------ corrections of names

    @pytest.mark.needs("graph")
    def test_merges_move_along_with_a_name_and_are_taken_back_with_it(self, store: Store) -> None:
        graph = graph_of(store)
        for namespace in ("n", "m"):
            write(store, {"id": "a"}, namespace=namespace)
            assert graph.record_correction(namespace, (1, "one"), (2, "two"))
        assert graph.record_correction("n", (2, "two"), (3, "three"))
        assert not graph.record_correction("n", (1, "one"), (3, "three"))
        merged = graph.corrections(["n", "m"])
        assert merged["n"].into == {1: (3, "three"), 2: (3, "three")}
        assert merged["m"].into == {1: (2, "two")}
        assert graph.record_correction("n", (3, "three"), None)
        assert graph.corrections(["n", "m"]) == {"n": Corrections({}, frozenset({3}), {3: "three"}), "m": merged["m"]}

    @pytest.mark.needs("graph")
    def test_relationships_are_those_of_one_namespace(self, store: Store) -> None:
        for other, namespace in enumerate("mno", 2):
            write(store, {"id": "a"}, namespace=namespace)
            found = replace(extract("Tea."), relationships=[(1, "knows", other)])
            store.reindex(namespace, [(row_id_of(store, "a", namespace), found)])
        asked = [graph_of(store).relationships([namespace], [1, 3], 9) for namespace in "mno"]
        assert [sorted(pairs) for pairs in asked] == [[(1, 2)], [(1, 3), (3, 1)], [(1, 4)]]

    @pytest.mark.needs("graph")
    def test_corrections_stay_until_the_last_memory_of_their_namespace_goes(self, store: Store) -> None:
        graph = graph_of(store)
        write(store, {"id": "a"}, {"id": "b"})
        graph.record_correction("n", (1, "one"), (2, "two"))
        for id, left in (("a", {1: (2, "two")}), ("b", {})):
            store.forget("n", id, ANY, dry_run=False)
            assert graph.corrections(["n"])["n"].into == left

    @pytest.mark.needs("graph")
    def test_what_people_linked_is_part_of_the_hash_of_a_graph_and_what_semmem_linked_is_not(
        self, store: Store
    ) -> None:
        write(store, {"id": "a"}, {"id": "b"})
        graph, life = graph_of(store), life_of(store)
        before = graph.graph_hash("n")
        life.link("n", [link("a", "see-also", "b", None, "semmem")])
        assert graph.graph_hash("n") == before
        life.link("n", [link("a", "see-also", "b", None, "ana")])
        assert graph.graph_hash("n") != before

    # ------------------------------------------------------------------ kept answers

    def test_an_answer_is_kept_for_its_days_from_the_time_it_was_given(self, store: Store) -> None:
        def once(key: bytes, answer: str, days: float = 1.0) -> tuple[str, bool]:
            return store.serving.once(key, b"request", lambda: answer, together=False, keep_days=days)

        assert once(b"k", "one") == ("one", False)
        assert once(b"k", "two") == ("one", True)
        assert once(b"other", "three") == ("three", False)
        assert once(b"k", "four", 0.0) == ("four", False)  # its time is over
        assert once(b"k", "five") == ("four", True)
        age(store, days=2)
        assert once(b"k", "six") == ("six", False)
        assert once(b"k", "seven") == ("six", True)

    def test_old_answers_go_by_twos_but_not_before_the_files_are_rewritten_for_them(self, store: Store) -> None:
        def once(key: bytes) -> tuple[str, bool]:
            return store.serving.once(key, b"request", lambda: "answer", together=False, keep_days=1.0)

        for key in (b"1", b"2", b"3", b"4"):
            once(key)
        age(store, days=2, unscrubbed=b"1")
        once(b"5")
        assert len(rows_of(store, "SELECT key FROM answered")) == 3
        once(b"6")
        assert sorted(bytes(key) for (key,) in rows_of(store, "SELECT key FROM answered")) == [b"1", b"5", b"6"]

    # ------------------------------------------------------------------ moves

    @pytest.mark.parametrize("stay", [False, True])
    def test_a_namespace_under_another_name_has_what_it_had_and_the_limits_of_that_name(
        self, store: Store, stay: bool
    ) -> None:
        dense = "dense" in store.capabilities
        items = [{"id": "a", "text": "Ada likes tea"}, {"id": "b", "text": "Bob likes rum"}]
        write(store, {"id": "0"}, namespace="before")
        for item, vector in zip(items, ([1, 0, 0], [0, 1, 0]), strict=True):
            write(store, {**item, "vector": vector} if dense else item)
        write(store, {"id": "long", "text": LONG} if not dense else {"id": "l", "text": "é"})
        life = life_of(store)
        life.set_limits("n", {"keep_days": 5.0, "most_memories": 7, "most_bytes": 9_000})
        life.set_limits("m", {"keep_days": 6.0})
        life.set_limits("small", {"most_bytes": 27})  # one less than what n holds, as é has two
        if dense:
            with pytest.raises(NamespaceFull):
                life.move_namespace("n", "small", stay=stay)
            life.set_limits("small", {"most_bytes": 28})
        assert life.move_namespace("n", "m", stay=stay) == 3
        limits = life.limits("m")
        assert (limits.keep_days, limits.most_memories, limits.most_bytes) == (6.0, 7, 9_000)
        likes, tea = term_key("like"), term_key("tea")
        found = store.postings(["m"], [likes, tea])["m"]
        rows = [row_id_of(store, id, "m") for id in "ab"]
        assert sorted(found.entries["ord"].tolist()) == sorted([*rows, rows[0]])
        if dense:
            assert store.vectors.nearest(store.scope(("m",), ANY, ()), unit(0, 1, 0), 1).row_ids == (rows[1],)
        log = life.changes({"m": (0, None)}, 9)["m"]
        if stay:  # the changes of a copy are that its memories came, after all that the first had
            assert {one.id for _, one in log.changes} == {m.id for m in store.list("m", ANY, 9, None)}
            assert {(number, one.kind) for number, one in log.changes} == {(4, "written")}
        assert ids(store.list("n", ANY, 9, None)) == (ids(store.list("m", ANY, 9, None)) if stay else [])
        assert ids(store.list("before", ANY, 9, None)) == ["0"]

    @pytest.mark.parametrize("stay", [False, True])
    def test_neither_name_of_a_namespace_that_was_moved_gives_a_row_id_again(self, store: Store, stay: bool) -> None:
        life = life_of(store)
        for id in "abc":
            write(store, {"id": id}, namespace="m")
        write(store, {"id": "a"})
        of_new, of_old = row_id_of(store, "c", "m"), row_id_of(store, "a")
        store.forget_namespace("m", dry_run=False)
        life.move_namespace("n", "m", stay=stay)
        write(store, {"id": "x"}, namespace="m")
        write(store, {"id": "x"})
        assert row_id_of(store, "x", "m") > of_new
        assert row_id_of(store, "x") > of_old
        life.move_namespace("m", "last", stay=False)
        store.forget_namespace("n", dry_run=False)
        life.move_namespace("last", "n", stay=False)
        write(store, {"id": "y"})
        assert row_id_of(store, "y") > of_new

    def test_the_old_name_of_a_namespace_has_nothing_and_its_changes_say_so(self, store: Store) -> None:
        life = life_of(store)
        write(store, {"id": "a"}, {"id": "b"})
        life.set_limits("n", {"most_memories": 2})
        life.move_namespace("n", "m", stay=False)
        assert ids(store.list("n", ANY, 9, None)) == []
        assert [(one.id, one.kind) for _, one in life.changes({"n": (0, None)}, 9)["n"].changes] == [(None, "dropped")]
        assert life.limits("n") == Limits()
        assert ([one.name for one in store.overview()], list(store.namespaces())) == (["m"], ["m"])
        assert (store.stats(None).namespaces, store.stats("n").memories) == (1, 0)

    def test_a_cursor_of_changes_goes_on_with_the_end_of_a_namespace_that_was_renamed(self, store: Store) -> None:
        life = life_of(store)
        write(store, {"id": "a"})
        cursor = changes(life, None, ["n"], 9).cursor
        write(store, {"id": "b"})
        life.move_namespace("n", "m", stay=False)
        write(store, {"id": "c"})
        found = []
        while page := changes(life, cursor, ["n"], 1):
            cursor = page.cursor
            found += [(one.id, one.kind) for one in page]
        assert found == [(None, "dropped"), ("c", "written")]

    # ------------------------------------------------------------------ limits

    def test_limits_count_whole_memories_and_the_bytes_of_text_and_title(self, store: Store) -> None:
        life = life_of(store)
        assert life.set_limits("n", {"most_memories": 2}).most_memories == 2
        write(store, {"id": "long", "text": LONG})
        assert store.stats("n").parts > 1
        write(store, {"id": "b", "text": "b"})
        with pytest.raises(NamespaceFull):
            write(store, {"id": "c", "text": "c"})
        life.set_limits("m", {"most_bytes": 8})
        write(store, {"id": "a", "text": "éé", "title": "é"}, namespace="m")  # six bytes, three characters
        with pytest.raises(NamespaceFull):
            write(store, {"id": "b", "text": "bcd"}, namespace="m")
        write(store, {"id": "b", "text": "bc"}, namespace="m")

    def test_a_limit_that_is_set_leaves_the_others(self, store: Store) -> None:
        life = life_of(store)
        life.set_limits("n", {"keep_days": 2.0, "most_memories": 3, "most_bytes": 4})
        life.set_limits("m", {"keep_days": 9.0})
        for given, wanted in (
            ({"most_memories": 5}, (2.0, 5, 4)),
            ({"most_bytes": 6}, (2.0, 5, 6)),
            ({"keep_days": None}, (None, 5, 6)),
        ):
            life.set_limits("n", given)
            found = life.limits("n")
            assert (found.keep_days, found.most_memories, found.most_bytes) == wanted
        assert life.limits("m").keep_days == 9.0

    def test_what_is_pinned_or_changed_or_said_again_outlives_the_days_of_its_namespace(self, store: Store) -> None:
        old = {"created_at": datetime(2020, 1, 1, tzinfo=UTC)}
        write(store, {"id": "old", **old}, {"id": "pinned", "pinned": True, **old}, {"id": "new"})
        write(store, {"id": "again", **old}, {"id": "other", **old})
        write(store, {"id": "old", **old}, namespace="m")
        life = life_of(store)
        written_then(store, "old", "pinned", "again", "other")
        life.corroborate("n", {"again": 1})
        since = {"created_at": datetime.now(UTC)}
        write(store, {"id": "late", **since})
        life.set_limits("n", {"keep_days": (datetime.now(UTC) - NOON) / DAY + 1})
        assert store.maintain(Keep())["kept"] == 2
        assert ids(store.list("n", ANY, 9, None)) == ["late", "new", "pinned", "again"]
        assert ids(store.list("m", ANY, 9, None)) == ["old"]

    def test_the_days_of_a_namespace_begin_with_the_writing_whatever_time_was_given(self, store: Store) -> None:
        life = life_of(store)
        life.set_limits("n", {"keep_days": 30.0})
        times = {"old": datetime(2020, 1, 1, tzinfo=UTC), "later": datetime(2090, 1, 1, tzinfo=UTC)}
        write(store, *({"id": id, "created_at": at} for id, at in times.items()))
        assert "kept" not in store.maintain(Keep())
        kept = store.list("n", ANY, 9, None)
        assert {one.id: (one.updated_at, one.seen_count, one.last_seen) for one in kept} == {
            id: (at, 1, None) for id, at in times.items()
        }
        seen_last(store, datetime.now(UTC) - 31 * DAY)
        assert store.maintain(Keep())["kept"] == 2

    # ------------------------------------------------------------------ the audit

    def test_the_audit_is_narrowed_by_namespace_and_by_who_called(self, store: Store) -> None:
        life = life_of(store)
        life.note_audit([noted("1", "a", "ana"), noted("1", "b", "ana")])
        life.note_audit([noted("2", "b", "bram")])
        life.note_audit([noted("3", "")])

        def found(**filters: Any) -> list[tuple[str, str]]:
            return [(one.id, one.namespace) for one in life.audited(AuditFilters(**filters), 9, ("", ""))]

        assert found() == [("1", "a"), ("1", "b"), ("2", "b"), ("3", "")]
        assert found(namespaces=("a", "c")) == [("1", "a")]
        assert found(who="bram") == [("2", "b")]
        assert found(namespaces=("b",), who="ana") == [("1", "b")]

    def test_a_page_of_the_audit_may_end_within_a_call(self, store: Store) -> None:
        life = life_of(store)
        life.note_audit([noted("2", "a")])
        life.note_audit([noted("1", name) for name in "cab"])
        place, seen = ("", ""), []
        for _ in range(4):
            (entry,) = life.audited(AuditFilters(), 1, place)
            place = (entry.id, entry.namespace)
            seen.append(place)
        assert seen == [("1", "a"), ("1", "b"), ("1", "c"), ("2", "a")]
        assert life.audited(AuditFilters(), 1, place) == []

    def test_the_times_of_the_audit_begin_with_the_first_and_end_before_the_second(self, store: Store) -> None:
        life = life_of(store)
        for id in "123":
            life.note_audit([noted(id)])
        (_, at, _) = (one.at for one in life.audited(AuditFilters(), 9, ("", "")))
        since = life.audited(AuditFilters(noted_after=at), 9, ("", ""))
        before = life.audited(AuditFilters(noted_before=at), 9, ("", ""))
        assert ([one.id for one in since][-2:], [one.id for one in before][:1]) == (["2", "3"], ["1"])
        assert "2" not in [one.id for one in before]

    def test_entries_of_the_audit_that_are_over_go_each_time_and_in_every_namespace(self, store: Store) -> None:
        life = life_of(store)
        for id in "12":
            life.note_audit([noted(id, "a"), noted(id, "b")])
            assert "audit" not in store.maintain(Keep(audit_days=1))
            assert store.maintain(Keep(audit_days=-1))["audit"] == 2  # older than tomorrow
        assert life.audited(AuditFilters(), 9, ("", "")) == []
