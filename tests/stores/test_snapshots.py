"""One suite for all that makes snapshots: the database, memory, and an earlier time, over both stores.

Four memories in two namespaces, with vectors of three dimensions, so that every number can be worked out by hand. At an
earlier time the memories have been changed since, so that each answer comes from their versions; what the graph leg
reads is then today's, and is asked where nothing has changed since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semmem
from semmem.model.exchange import Kind, local, placed
from semmem.model.history import Access
from semmem.model.store import Snapshot, life_of
from semmem.model.types import Filters
from semmem.stores.past import PastSnapshot
from semmem.stores.resident.snapshot import MemorySnapshot
from semmem.stores.resident.store import Resident
from semmem.stores.snapshot import StoredSnapshot, scope_of
from semmem.text.passages import term_key
from semmem.text.tokens import key

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LONG = " ".join(f"Chapter {at} tells how the boat was built, word after word, and who paid for it." for at in range(60))
ADA = key(Kind.NAME, ("ada", "lovelace"))
TEA, RUM, GIN = map(term_key, ("tea", "rum", "gin"))

Take = Callable[..., Snapshot]


def from_database(mem: semmem.Semmem, *asked: Any) -> Snapshot:
    return StoredSnapshot(mem.store, scope_of(mem.store, *asked))


def from_memory(mem: semmem.Semmem, *asked: Any) -> Snapshot:
    taken = [mem._here.reader.snapshot(*asked) for _ in range(4)][-1]  # a namespace is loaded for its second recall
    assert isinstance(taken, MemorySnapshot)
    assert set(taken._models) == set(asked[0])
    return taken


def from_memory_unchecked(mem: semmem.Semmem, *asked: Any) -> Snapshot:
    assert isinstance(mem._here.reader, Resident)
    from_memory(mem, *asked)
    taken = mem._here.reader.snapshot(*asked)  # the state was the same twice
    assert isinstance(taken, MemorySnapshot)
    assert taken._check is not None
    return taken


def unchanged_since(mem: semmem.Semmem, *asked: Any) -> Snapshot:
    taken = mem.store.snapshot(*asked, datetime.now(UTC))
    assert isinstance(taken, PastSnapshot)
    assert taken.earlier == frozenset()
    return taken


def change_all(mem: semmem.Semmem) -> None:
    for id, namespace in (("a", "n"), ("b", "n"), ("c", "n"), ("x", "m")):
        if mem.get(id, namespace=namespace).version == 1:
            late = {"text": "It is over.", "tags": ["late"], "vector": [0, 0, 1]}
            mem.update(id, namespace=namespace, valid_from=NOON + timedelta(days=9), **late)


def changed_since(mem: semmem.Semmem, *asked: Any) -> Snapshot:
    change_all(mem)
    taken = mem.store.snapshot(*asked, NOON + timedelta(days=1))
    assert len(taken.earlier) >= 1
    return taken


def then_from_memory(mem: semmem.Semmem, at: datetime, *asked: Any) -> Snapshot:
    from_memory(mem, *asked)
    taken = mem._here.reader.snapshot(*asked, at)
    assert isinstance(taken, PastSnapshot)
    assert isinstance(taken._behind, MemorySnapshot)
    assert set(taken._behind._models) == set(asked[0])
    return taken


def unchanged_since_from_memory(mem: semmem.Semmem, *asked: Any) -> Snapshot:
    return then_from_memory(mem, datetime.now(UTC), *asked)


def changed_since_from_memory(mem: semmem.Semmem, *asked: Any) -> Snapshot:
    change_all(mem)
    return then_from_memory(mem, NOON + timedelta(days=1), *asked)


MAKERS = {
    "database": from_database,
    "memory": from_memory,
    "memory, unchecked": from_memory_unchecked,
    "a time since which nothing changed": unchanged_since,
    "an earlier time": changed_since,
    "a time since which nothing changed, from memory": unchanged_since_from_memory,
    "an earlier time, from memory": changed_since_from_memory,
}
TWICE = [(kind, maker) for kind in ("postgresql", "sqlite") for maker in MAKERS]


@pytest.fixture(params=[one for one in TWICE if one != ("sqlite", "memory, unchecked")], ids=" ".join)
def made(request: pytest.FixtureRequest, store_url: str, tmp_path: Path) -> Iterator[tuple[semmem.Semmem, str]]:
    """A store with the four memories, and the name of the maker that a test asks."""
    kind, maker = request.param
    url = store_url if kind == "postgresql" else f"sqlite:{tmp_path / 'notes.db'}"
    with semmem.connect(url, embedder="none", pool_size=2, resident_mb=64) as mem:
        turns = {"session": "s", "created_at": NOON}
        mem.remember("tea tea rum", id="a", title="Ada Lovelace", author="Ada", position=0, vector=[1, 0, 0],
                     namespace="n", **turns)  # fmt: skip
        mem.remember("rum", id="b", author="Bob", position=1, vector=[0, 1, 0], namespace="n", **turns)
        mem.remember("gin for Ada Lovelace", id="c", author="Ada", vector=[0.6, 0.8, 0], namespace="n", created_at=NOON)
        mem.remember("tea", id="x", vector=[1, 0, 0], namespace="m", created_at=NOON, tags=["early"])
        yield mem, maker


@pytest.fixture
def take(made: tuple[semmem.Semmem, str]) -> Take:
    """Take a snapshot of some namespaces, within filters, without some ids."""
    mem, maker = made

    def take(*namespaces: str, filters: Filters = Filters(), exclude: tuple[str, ...] = ()) -> Snapshot:  # noqa: B008
        return MAKERS[maker](mem, namespaces or ("n",), filters, exclude, ("ada",))

    return take


@pytest.fixture
def walk(made: tuple[semmem.Semmem, str], take: Take) -> Take:
    """The same, for what is today's where memories have been changed since."""
    if made[1].startswith("an earlier time"):
        pytest.skip("the graph and the sessions are those of today")
    return take


def row_id_of(taken: Snapshot, id: str, namespace: str = "n") -> int:
    """Return the placed row id of a memory."""
    (row_id,) = (row_id for row_id, candidate in taken.metadata_of([id]).items() if candidate.namespace == namespace)
    return row_id


def test_postings_say_who_has_a_word_and_how_often(take: Take) -> None:
    taken = take()
    found, both = taken.postings("n", ([TEA, GIN, term_key("nobody")], None), ([RUM], None))
    a, b, c = (row_id_of(taken, id) for id in "abc")
    held = {at: entries[["ord", "count"]].tolist() for at, entries in found.items()}
    assert held == {TEA: [(a, 2)], GIN: [(c, 1)]}
    assert found.memories == 3
    assert sorted(both.entries["ord"].tolist()) == sorted([a, b])


def test_each_namespace_answers_for_itself(take: Take) -> None:
    taken = take("n", "m")
    (found,) = taken.postings("m", ([TEA], None))
    x = row_id_of(taken, "x", "m")
    assert found.entries["ord"].tolist() == [local(x)]
    assert x == placed(local(x), 1)
    metadata = taken.metadata([row_id_of(taken, "a"), x, placed(10**6, 1)])
    assert {(candidate.id, candidate.namespace) for candidate in metadata.values()} == {("a", "n"), ("x", "m")}
    assert all(row_id == candidate.row_id for row_id, candidate in metadata.items())
    shown = taken.memories(list(metadata.values()))
    assert {row_id: (memory.text, passage.text) for row_id, (memory, passage) in shown.items()} == {
        row_id_of(taken, "a"): ("tea tea rum", "tea tea rum"), x: ("tea", "tea"),
    }  # fmt: skip


def test_the_nearest_are_those_within_scope_best_first(take: Take) -> None:
    taken = take()
    a, b, c = (row_id_of(taken, id) for id in "abc")
    vector = np.array([1, 0, 0], dtype=np.float32)
    (part,) = taken.scope.each()
    near = taken.nearest(part, vector, 3)
    assert near.row_ids == (a, c, b)
    assert near.scores == pytest.approx((1.0, 0.6, 0.0), abs=1e-6)
    without = take(exclude=("a",))
    (part,) = without.scope.each()
    assert without.nearest(part, vector, 1).row_ids == (c,)


def test_filters_and_exclusions_are_in_the_scope(take: Take) -> None:
    taken = take(filters=Filters(sessions=("s",)), exclude=("b",))
    row_ids = np.array([row_id_of(taken, id) for id in "abc"], dtype=np.int64)
    assert taken.scope.matches(row_ids).tolist() == [True, False, False]
    both = take("n", "m", filters=Filters(tags=("early",)))
    row_ids = np.array([row_id_of(both, "a"), row_id_of(both, "x", "m")], dtype=np.int64)
    assert both.scope.matches(row_ids).tolist() == [False, True]
    assert both.scope.size == 1


def test_facts_of_a_conversation_and_corrections_come_with_the_scope(
    take: Take, made: tuple[semmem.Semmem, str]
) -> None:
    made[0].split_concept("Ada Lovelace", namespace="n")
    scope = take("n", "m").scope
    assert scope.kinds is not None
    assert scope.corrections is not None
    assert (scope.kinds["n"].sessions, scope.kinds["n"].authors, sorted(scope.kinds["n"].named)) == (
        True,
        True,
        ["Ada"],
    )
    assert (scope.kinds["m"].sessions, scope.kinds["m"].authors) == (False, False)
    assert (scope.corrections["n"].apart, scope.corrections["m"].apart) == (frozenset([ADA]), frozenset())


def test_texts_and_memories_of_what_is_gone_are_left_out(take: Take) -> None:
    taken = take()
    a = row_id_of(taken, "a")
    assert taken.texts("n", [a, 10**6]) == {a: "Ada Lovelace\ntea tea rum"}
    assert taken.metadata_of(["nobody"]) == {}
    assert taken.memories([]) == {}
    taken.confirm()


def test_a_hit_that_is_a_part_has_the_whole_memory_and_its_own_passage(
    walk: Take, made: tuple[semmem.Semmem, str]
) -> None:
    made[0].remember(LONG, id="long", namespace="n")
    taken = walk()
    metadata = sorted(taken.metadata_of(["long"]).values(), key=lambda candidate: candidate.part)
    assert [candidate.part for candidate in metadata] == list(range(1, len(metadata) + 1))
    assert len(metadata) > 1
    for memory, passage in taken.memories(metadata).values():
        assert memory.text == LONG
        assert passage.text == LONG[passage.start : passage.end]


def test_sessions_stand_in_their_order_with_their_vectors(walk: Take) -> None:
    taken = walk()
    a, b, c = (row_id_of(taken, id) for id in "abc")
    assert [turn.row_id for turn in taken.turns("n", [b])] == [a, b]
    (part,) = taken.scope.each()
    near, turns, owners, vectors = taken.nearest_with_turns(part, np.array([0, 1, 0], dtype=np.float32), 1)
    assert (near.row_ids, [turn.row_id for turn in turns], owners.tolist()) == ((b,), [a, b], [a, b])
    assert vectors.tolist() == [[1, 0, 0], [0, 1, 0]]
    owners, vectors = taken.vectors("n", [c, a], np.array([1, 0, 0], dtype=np.float32))
    assert owners.tolist() == [a, c]
    assert vectors[1].tolist() == pytest.approx([0.6, 0.8, 0])


def test_concepts_neighbours_titles_and_authors_are_read_of_one_namespace(walk: Take) -> None:
    taken = walk()
    a, b, c = (row_id_of(taken, id) for id in "abc")
    forwards, beside, _ = taken.forwards("n", [a, c], neighbours=True)
    assert forwards.row_ids.tolist() == [a, c]
    about = {
        row_id: entries["subject"][entries["key"] == ADA].tolist()
        for row_id, entries in zip([a, c], np.split(forwards.entries, forwards.sizes.cumsum()[:-1]), strict=True)
    }
    assert (about[a][0] > 0, about[c] in ([], [0])) == (True, True)
    assert [(one, other, same) for one, other, same in beside] == [(a, b, False)]
    assert taken.titles("n", [a, b]) == {a: "Ada Lovelace", b: None}
    assert taken.by_author("n", [a, b, c], "Ada").tolist() == [a, c]
    assert [(row_id, at) for row_id, at, _, _ in taken.subject_names("n", [a, b])] == [(a, ADA)]
    shared = taken.shared_postings("n", [TEA, RUM], None)
    assert {at: sorted(e["ord"].tolist()) for at, e in shared.items() if at == RUM} == {RUM: sorted([a, b])}
    assert taken.relationships("n", [ADA], 9) == []


def test_links_and_accesses_are_those_of_the_store(walk: Take, made: tuple[semmem.Semmem, str]) -> None:
    mem, _ = made
    mem.link("c", "supersedes", "b", namespace="n")
    mem.link("a", "see-also", "b", namespace="n")
    once = Access(1, datetime(2026, 3, 2, tzinfo=UTC))
    life_of(mem.store).count_accesses("n", {"a": once})
    taken = walk()
    a, b, c = (row_id_of(taken, id) for id in "abc")
    assert [(row.old, row.candidate.id, row.candidate.row_id) for row in taken.newer({"n": ["b", "a"]})] == [
        ("b", "c", c)
    ]
    assert sorted(taken.linked("n", [a, b]))[0][:3] == (a, b, "see-also")
    assert {id: access.last for id, access in taken.accesses("n", ["a", "b"]).items()} == {"a": once.last}


def test_what_a_recall_keeps_is_read_from_the_database(take: Take) -> None:
    taken = take()
    assert not isinstance(taken.stored, MemorySnapshot)
    assert not isinstance(getattr(taken.stored, "_behind", None), MemorySnapshot)  # no model is kept
    assert taken.stored.scope is taken.scope
    assert taken.stored.metadata([row_id_of(taken, "a")]).keys() == {row_id_of(taken, "a")}
