"""Links between memories: what may be linked, what is refused, and what becomes of links, in both stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import semmem
from semmem.model.errors import InvalidInput, NotFound
from semmem.model.history import DEEPEST, MADE_BY, Link
from semmem.model.store import Keep
from semmem.model.types import LINK_TYPES
from semmem.stores.link_rules import linking

MEMORIES = [f"m{at:02}" for at in range(13)]


@pytest.fixture(scope="module", params=["postgres", "sqlite"])
def mem(
    request: pytest.FixtureRequest, module_store: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[semmem.Semmem]:
    """A store of either kind; each test takes a namespace of its own."""
    file: Path = tmp_path_factory.mktemp("links") / "notes.db"
    url = module_store() if request.param == "postgres" else f"sqlite:{file}"
    with semmem.connect(url, embedder="none", pool_size=4) as mem:
        yield mem


@pytest.fixture
def space(mem: semmem.Semmem, request: pytest.FixtureRequest) -> str:
    """The name of a namespace with thirteen memories."""
    name = str(request.node.name)[:100]
    mem.remember_many([{"id": id, "text": f"Note {id}."} for id in MEMORIES], namespace=name)
    return name


def test_a_link_is_stored_once_and_seen_from_both_ends(mem: semmem.Semmem, space: str) -> None:
    before = datetime.now(UTC)
    made = mem.link("m01", "supersedes", "m00", namespace=space, made_by="ana")
    assert (made.namespace, *made.key, made.made_by) == (space, "m01", "supersedes", "m00", "ana")
    assert made.since is not None
    assert abs((made.since - before).total_seconds()) < 600
    assert mem.link("m01", "supersedes", "m00", namespace=space, made_by="bram") == made
    other = mem.link("m02", "see-also", "m01", namespace=space)
    assert mem.links("m00", namespace=space) == [made]
    assert mem.links("m01", namespace=space) == [made, other]
    assert mem.links("m03", namespace=space) == []


def test_a_link_that_was_taken_away_is_gone_and_taking_it_away_again_changes_nothing(
    mem: semmem.Semmem, space: str
) -> None:
    mem.link("m01", "part-of", "m00", namespace=space)
    assert mem.unlink("m01", "see-also", "m00", namespace=space) is False
    assert mem.unlink("m01", "part-of", "m00", namespace=space) is True
    assert mem.unlink("m01", "part-of", "m00", namespace=space) is False
    assert mem.links("m01", namespace=space) == []


def test_what_cannot_be_linked_is_said_in_one_sentence(mem: semmem.Semmem, space: str) -> None:
    mem.remember("Another wall.", id="there", namespace=f"{space} two")
    for id, type, to, error, said in (
        ("m01", "supersedes", "nobody", NotFound, "There is no memory 'nobody' in namespace"),
        ("there", "supersedes", "m01", NotFound, "There is no memory 'there' in namespace"),
        (
            "m01",
            "replaces",
            "m02",
            InvalidInput,
            "There is no type of link 'replaces'; choose one of supersedes, resolv",
        ),
        (
            "m01",
            "see-also",
            "m01",
            InvalidInput,
            "A memory cannot be linked to itself, and both ids are 'm01'; name two memories.",
        ),
        ("é" * 700, "see-also", "ü" * 700, InvalidInput, "ids have .* bytes together in UTF-8; memories with at most"),
    ):
        with pytest.raises(error, match=said):
            mem.link(id, type, to, namespace=space)
    for verb in (mem.links, lambda id, namespace: mem.unlink(id, "see-also", "m01", namespace=namespace)):
        with pytest.raises(NotFound, match="There is no memory 'nobody' in namespace"):
            verb("nobody", namespace=space)
    assert mem.links("m01", namespace=space) == []


def test_a_circle_of_what_supersedes_what_is_refused_and_of_other_types_is_not(mem: semmem.Semmem, space: str) -> None:
    for newer, older in (("m01", "m00"), ("m02", "m01")):
        mem.link(newer, "supersedes", older, namespace=space)
    with pytest.raises(InvalidInput, match="'m00' cannot supersede 'm02', which supersedes it, directly"):
        mem.link("m00", "supersedes", "m02", namespace=space)
    mem.link("m00", "see-also", "m02", namespace=space)
    assert [link.key for link in mem.links("m00", namespace=space)] == [
        ("m00", "see-also", "m02"),
        ("m01", "supersedes", "m00"),
    ]


def test_a_chain_has_ten_links_at_most_wherever_the_eleventh_would_be_put(mem: semmem.Semmem, space: str) -> None:
    for at in range(10):
        mem.link(f"m{at + 1:02}", "supersedes", f"m{at:02}", namespace=space)
    mem.link("m12", "supersedes", "m01", namespace=space)
    for newer, older in (("m11", "m10"), ("m00", "m11"), ("m11", "m12")):
        if (newer, older) == ("m11", "m12"):
            mem.link(newer, "supersedes", older, namespace=space)
            continue
        with pytest.raises(InvalidInput, match="11 links would be in one chain, and at most 10 may"):
            mem.link(newer, "supersedes", older, namespace=space)
    assert len(mem.links("m10", namespace=space)) == 1


def test_of_many_links_all_are_made_or_none_unless_it_is_said_that_bad_ones_are_left_out(
    mem: semmem.Semmem, space: str
) -> None:
    life = mem.store.life
    assert life is not None
    pairs = [("m01", "m00"), ("m02", "m01"), ("m00", "m02"), ("m03", "nobody"), ("m03", "m00")]
    rows = [Link(space, newer, "supersedes", older) for newer, older in pairs]
    with pytest.raises(InvalidInput, match="'m00' cannot supersede 'm02'"):
        life.link(space, rows)
    assert life.links(space, MEMORIES) == []
    made = life.link(space, rows, skip=True)
    assert [link.key for link in made] == [("m01", "supersedes", "m00"), ("m02", "supersedes", "m01"),
                                           ("m03", "supersedes", "m00")]  # fmt: skip
    assert life.link(space, []) == ()


def test_two_writers_at_once_close_no_circle(mem: semmem.Semmem, space: str) -> None:
    def link(pair: tuple[str, str]) -> bool:
        try:
            mem.link(pair[0], "supersedes", pair[1], namespace=space)
        except InvalidInput:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        for at in range(0, 12, 4):
            a, b, c, d = MEMORIES[at : at + 4]
            done = list(threads.map(link, [(a, b), (b, c), (c, d), (d, a)]))
            assert done.count(False) == 1


def test_what_was_linked_and_unlinked_is_written_down_for_those_who_keep_a_copy(mem: semmem.Semmem, space: str) -> None:
    mem.link("m01", "see-also", "m00", namespace=space)
    mem.link("m01", "see-also", "m00", namespace=space)
    mem.unlink("m01", "see-also", "m00", namespace=space)
    sql = "SELECT number, id, kind FROM {}change WHERE namespace = {} AND kind LIKE '%linked' ORDER BY number, id"
    if mem.store.kind == "SQLite":
        rows = mem.store._run(lambda c: c.execute(sql.format("", "?"), (space,)).fetchall())  # type: ignore[attr-defined]
    else:
        from tests.stores.audit import sql as asked

        rows = asked(mem, sql.format("semmem.", "%s").replace("%l", "%%l"), space)
    first = rows[0][0]
    assert [(number - first, id, kind) for number, id, kind in rows] == [
        (0, "m00", "linked"), (0, "m01", "linked"), (1, "m00", "unlinked"), (1, "m01", "unlinked"),
    ]  # fmt: skip


def test_an_update_keeps_the_links_of_a_memory(mem: semmem.Semmem, space: str) -> None:
    made = mem.link("m01", "supersedes", "m00", namespace=space)
    mem.update("m00", namespace=space, text="Something else altogether.")
    mem.update("m01", namespace=space, text="And this too.")
    assert mem.links("m00", namespace=space) == [made]


def test_links_of_a_memory_that_is_forgotten_softly_come_back_with_it_and_those_of_one_that_is_gone_do_not(
    mem: semmem.Semmem, space: str
) -> None:
    made = mem.link("m01", "supersedes", "m00", namespace=space)
    mem.forget("m01", namespace=space)
    assert mem.links("m00", namespace=space) == []
    mem.restore_memory("m01", namespace=space)
    assert mem.links("m00", namespace=space) == [made]
    mem.forget("m01", namespace=space, hard=True)
    mem.remember("Note m01.", id="m01", namespace=space)
    assert mem.links("m00", namespace=space) == []


def test_nothing_crosses_the_wall_of_a_namespace(mem: semmem.Semmem, space: str) -> None:
    other = f"{space} two"
    mem.remember_many([{"id": id, "text": f"Note {id}."} for id in MEMORIES], namespace=other)
    mem.link("m01", "supersedes", "m00", namespace=space)
    mem.link("m00", "supersedes", "m01", namespace=other)
    assert [link.key for link in mem.links("m00", namespace=space)] == [("m01", "supersedes", "m00")]
    assert mem.unlink("m00", "supersedes", "m01", namespace=space) is False
    apart = semmem.recipe("default", dedup=False)
    found = mem.recall("Note m00 m01", namespace=[space, other], limit=50, recipe=apart)
    assert {(hit.namespace, hit.id): hit.superseded_by for hit in found if hit.superseded_by} == {
        (space, "m00"): "m01", (other, "m01"): "m00",
    }  # fmt: skip


# ---------------------------------------------------------------------- the rules, without a store


@given(st.lists(st.tuples(st.integers(0, 13), st.integers(0, 13)), max_size=60))
def test_whatever_is_linked_no_chain_is_a_circle_and_none_is_too_long(pairs: list[tuple[int, int]]) -> None:
    ids = [str(at) for at in range(14)]
    rows = [Link("n", str(new), "supersedes", str(old)) for new, old in pairs if new != old]
    taken = linking("n", rows, ids, [], skip=True).links
    older: dict[str, set[str]] = {}
    for row in taken:
        older.setdefault(row.from_id, set()).add(row.to_id)

    def depth(id: str, under: frozenset[str]) -> int:
        assert id not in under
        return max((1 + depth(one, under | {id}) for one in older.get(id, ())), default=0)

    assert max(depth(id, frozenset()) for id in ids) <= DEEPEST
    # what was left out would have broken one or the other
    left, stored = [row for row in rows if row not in taken], [(row.from_id, row.to_id, None) for row in taken]
    assert linking("n", left, ids, stored, skip=True) == ([], [])


@pytest.mark.slow
@given(st.permutations(range(30)), st.integers(1, 30))
def test_of_a_value_that_changed_often_the_newest_stands_above_all_in_whatever_order_it_came(
    order: list[int], at_once: int
) -> None:
    ids = [f"{at:02}" for at in range(30)]
    ties: dict[tuple[str, str], str | None] = {}
    there: list[int] = []
    for start in range(0, 30, at_once):
        rows = []
        for at in order[start : start + at_once]:  # each is linked with the one before it, and the one behind
            rows += [(at, max((one for one in there if one < at), default=None))]
            rows += [(min((one for one in there if one > at), default=None), at)]
            there.append(at)
        links = [Link("n", ids[n], "supersedes", ids[o], None, MADE_BY) for n, o in rows if None not in (n, o)]
        found = linking("n", links, ids, [(*tie, by) for tie, by in ties.items()], skip=True)
        for tie in found.lifted:
            del ties[tie]
        ties |= {(row.from_id, row.to_id): row.made_by for row in found.links}
        older: dict[str, set[str]] = {}
        for new, old in ties:
            assert new > old
            older.setdefault(new, set()).add(old)
        reached, edge, depth = set(), {ids[max(there)]}, 0
        while edge := {old for one in edge for old in older.get(one, ())}:
            reached |= edge
            depth += 1
        assert depth <= DEEPEST
        assert reached == {ids[at] for at in there} - {ids[max(there)]}


def test_links_that_a_person_made_are_not_moved_for_a_longer_chain() -> None:
    ids = [f"{at:02}" for at in range(13)]
    stored = [(ids[at + 1], ids[at], "ana") for at in range(10)]
    row = Link("n", ids[11], "supersedes", ids[10], None, MADE_BY)
    assert linking("n", [row], ids, stored, skip=True) == ([], [])
    with pytest.raises(InvalidInput, match="11 links would be in one chain"):
        linking("n", [row], ids, stored)
    stored[0] = (*stored[0][:2], MADE_BY)
    found = linking("n", [row], ids, stored)
    assert found.lifted == [(ids[1], ids[0])]
    assert [one.key for one in found.links] == [row.key, (ids[6], "supersedes", ids[0])]


def test_the_types_of_links_are_five() -> None:
    assert LINK_TYPES == ("supersedes", "resolved-by", "part-of", "see-also", "contradicts")


def test_links_go_out_and_come_in_with_their_memories_and_those_that_lead_nowhere_are_told(
    mem: semmem.Semmem, space: str
) -> None:
    mem.link("m01", "supersedes", "m00", namespace=space, made_by="ana")
    mem.link("m00", "see-also", "m02", namespace=space)
    before = mem.links("m00", namespace=space)
    rows = list(mem.export(namespace=space))
    assert {row["id"]: [(one["type"], one["to"]) for one in row["links"]] for row in rows if "links" in row} == {
        "m00": [("see-also", "m02")],
        "m01": [("supersedes", "m00")],
    }
    with semmem.connect("sqlite::memory:", embedder="none") as other:
        done = other.import_items(rows)  # the newest first: what a link leads to may come later
        assert (done.remembered, done.linked, done.unlinked) == (13, 2, ())
        assert [one.key for one in other.links("m00", namespace=space)] == [one.key for one in before]
        assert [(one.since, one.made_by) for one in other.links("m00", namespace=space)] == [
            (one.since, one.made_by) for one in before
        ]
        again = other.import_items(rows)
        assert (again.unchanged, again.linked, again.unlinked) == (13, 2, ())
        fewer = [row for row in rows if row["id"] != "m02"]
        fewer.append({"id": "odd", "text": "Odd.", "namespace": space, "links": [{"type": "like", "to": "m00"}, 7]})
        with semmem.connect("sqlite::memory:", embedder="none") as third:
            done = third.import_items(fewer)
            assert (done.remembered, done.linked) == (13, 1)
            assert [one.split(";")[0] for one in done.unlinked] == [
                "odd: There is no type of link 'like'",
                "odd: 7 is no link.",
                "m00 see-also m02: m02 is not there, or the link is not allowed.",
            ]


def test_a_link_with_a_time_that_no_calendar_holds_in_utc_is_not_made_so_its_namespace_still_goes_out(
    mem: semmem.Semmem, space: str
) -> None:
    for since in ("0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"):
        row = {"id": "odd", "text": "Odd.", "links": [{"type": "see-also", "to": "m00", "since": since}]}
        done = mem.import_items([row], namespace=space)
        assert (done.linked, done.unlinked) == (
            0,
            (f"odd: since must be between the years 1 and 9999 in UTC, not '{since}'.",),
        )
        assert mem.links("odd", namespace=space) == []
    assert len(list(mem.export(namespace=space))) == 14


def test_a_link_that_semmem_made_is_no_edge_of_the_walk_until_a_person_makes_it(mem: semmem.Semmem, space: str) -> None:
    life = mem.store.life
    assert life is not None
    row_ids = [mem.store.row_ids_of(space, id)[0] for id in ("m00", "m01", "m02")]
    life.link(space, [Link(space, "m01", "contradicts", "m00", made_by=MADE_BY)])
    mem.link("m02", "part-of", "m01", namespace=space)
    theirs = [(row_ids[1], row_ids[2], "part-of"), (row_ids[2], row_ids[1], "part-of")]
    assert sorted(life.linked(space, row_ids)) == sorted(theirs)
    assert mem.link("m01", "contradicts", "m00", namespace=space, made_by="ana").made_by == "ana"
    both = [*theirs, (row_ids[0], row_ids[1], "contradicts"), (row_ids[1], row_ids[0], "contradicts")]
    assert sorted(life.linked(space, row_ids)) == sorted(both)
    life.link(space, [Link(space, "m01", "contradicts", "m00", made_by=MADE_BY)])
    assert [one.made_by for one in mem.links("m00", namespace=space)] == ["ana"]


def test_a_contradiction_waits_until_one_supersedes_the_other_or_it_is_taken_away_or_one_is_forgotten(
    mem: semmem.Semmem, space: str
) -> None:
    waiting = [mem.link(f"m0{newer}", "contradicts", f"m0{newer - 1}", namespace=space) for newer in (1, 3, 5, 7)]
    mem.link("m09", "see-also", "m08", namespace=space)
    assert mem.contradictions(namespace=space) == waiting[::-1]
    assert mem.contradictions(namespace=space, limit=1) == waiting[3:]
    mem.link("m01", "supersedes", "m00", namespace=space)
    mem.link("m02", "supersedes", "m03", namespace=space)  # the older one holds
    mem.unlink("m05", "contradicts", "m04", namespace=space)
    assert mem.contradictions(namespace=space) == waiting[3:]
    mem.forget("m06", namespace=space)
    assert mem.contradictions(namespace=space) == []
    mem.restore_memory("m06", namespace=space)
    assert mem.contradictions(namespace=space) == waiting[3:]
    with pytest.raises(InvalidInput, match="limit must be from 1 to 10000"):
        mem.contradictions(namespace=space, limit=0)


def test_near_duplicates_wait_as_contradictions_do_and_links_that_people_made_are_none(
    mem: semmem.Semmem, space: str
) -> None:
    alike = mem.link("m01", "see-also", "m00", namespace=space, made_by="semmem")
    mem.link("m03", "see-also", "m02", namespace=space, made_by="ana")
    mem.link("m05", "contradicts", "m04", namespace=space)
    assert mem.near_duplicates(namespace=space) == [alike]
    mem.unlink("m01", "see-also", "m00", namespace=space)
    assert mem.near_duplicates(namespace=space) == []
    mem.link("m01", "see-also", "m00", namespace=space, made_by="semmem")
    mem.link("m00", "supersedes", "m01", namespace=space)
    assert mem.near_duplicates(namespace=space) == []
    with pytest.raises(InvalidInput, match="limit must be from 1 to 10000"):
        mem.near_duplicates(namespace=space, limit=10_001)


def test_a_memory_that_takes_the_id_of_one_that_was_swept_has_none_of_its_links(mem: semmem.Semmem, space: str) -> None:
    mem.link("m01", "see-also", "m00", namespace=space)
    mem.forget("m00", namespace=space)
    mem.store.maintain(Keep(forgotten_days=-1))
    mem.remember("Another one.", id="m00", namespace=space)
    assert mem.links("m00", namespace=space) == []
