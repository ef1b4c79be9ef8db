"""The arrays of a namespace in memory: what they answer, and what they take."""

from __future__ import annotations

import mmap
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from semmem.legs.graph_names import mentioned, recognised
from semmem.legs.graph_walk import among, edges
from semmem.model.exchange import CandidateMetadata, Scope, Turn
from semmem.stores.packed_postings import FORWARD, OWNED_CANDIDATE, POSTING
from semmem.stores.resident import block as block_module
from semmem.stores.resident import model as model_module
from semmem.stores.resident.block import Block, Rows, aligned
from semmem.stores.resident.model import Model, State
from semmem.stores.resident.turns import Turns

NO_VECTORS = np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32)
Entry = tuple[int, int, int, int]

NO_CANDIDATES = np.zeros(0, dtype=OWNED_CANDIDATE)


def row(row_id: int, session: str | None = "s1", **more: Any) -> tuple[Any, ...]:
    """Return a memory as the store's statement has it."""
    content = more.get("content", bytes([row_id % 256]) * 15 + b"\0")
    fields = (
        "n",
        row_id,
        session,
        more.get("author"),
        row_id % 2 == 0,
        24_000 + row_id % 2**20,
        f"m{row_id}",
        more.get("part", 0),
        0.25,
    )
    return (*fields, content, row_id + 0.5, row_id + 0.75, more.get("title"), 7 * row_id, 1_000_003 * row_id)


def rows(memories: dict[int, list[Entry]]) -> Rows:
    """Return memories with entries of (key, count, mention, subject), keys distinct in each."""
    held = [(key, count, mention, subject, 1) for own in memories.values() for key, count, mention, subject in own]
    entries = np.zeros(len(held), dtype=FORWARD)
    for at, name in enumerate(("key", "count", "mention", "subject", "kind")):
        entries[name] = [one[at] for one in held]
    sizes = np.array([len(own) for own in memories.values()], dtype=np.int64)
    lengths = np.array([70_000 if row_id == 3 else 10 * row_id for row_id in memories], dtype=np.int64)
    return Rows(Turns.of([row(row_id) for row_id in memories]), lengths, sizes, entries, NO_CANDIDATES, *NO_VECTORS)


def postings(memories: dict[int, list[Entry]], key: int) -> list[tuple[int, int, int, int, int]]:
    return [
        (row_id, count, 65_535 if row_id == 3 else 10 * row_id, mention, subject)
        for row_id, own in memories.items()
        for at, count, mention, subject in own
        if at == key
    ]


def connects(found: list[tuple[int, int, int, int, int]]) -> bool:
    """Return whether several memories have a key, or one is about it."""
    return len(found) > 1 or any(subject for *_, subject in found)


def plain(entries: NDArray[Any]) -> list[tuple[int, int, int, int, int]]:
    assert entries.dtype == POSTING
    return [tuple(one[:5]) for one in entries.tolist()]


entry = st.tuples(st.integers(0, 3), st.integers(0, 100), st.integers(0, 100))
memory = st.dictionaries(st.integers(-6, 6), entry, max_size=8).map(lambda d: [(k, *v) for k, v in sorted(d.items())])


@settings(deadline=None)
@given(st.lists(memory, max_size=6), st.sets(st.integers(-8, 8)), st.randoms(use_true_random=False))
def test_the_postings_of_keys_are_found_whether_one_memory_has_them_or_several(
    own: list[list[Entry]], asked: set[int], chance: Any
) -> None:
    memories = dict(enumerate(own, 1))
    block = Block(rows(memories))
    keys = np.array(sorted(asked), dtype=np.int64)
    expected = {key: postings(memories, key) for key in sorted(asked)}
    here, at = block.find(keys)
    assert here.tolist() == [bool(found) for found in expected.values()]
    assert plain(block.entries(at[here])) == [one for found in expected.values() for one in found]
    assert block.sizes(at[here]).tolist() == [len(found) for found in expected.values() if found]
    mentioned = [sum(1 for one in found if one[1] or one[3]) for found in expected.values() if found]
    assert block.mentions(at[here]).tolist() == mentioned
    shared, where = block.find_shared(keys)
    assert shared.tolist() == [connects(found) for found in expected.values()]
    assert plain(block.entries(where[shared])) == [
        one for found in expected.values() if connects(found) for one in found
    ]
    for only_shared, most in ((False, None), (False, 1), (True, None), (True, 2)):
        few = {
            key: found
            for key, found in expected.items()
            if (connects(found) if only_shared else found)
            and (most is None or sum(1 for one in found if one[1] or one[3]) <= most)
        }
        found_keys, sizes, entries = block.postings_of(keys, most, shared=only_shared)
        assert found_keys.tolist() == list(few)
        assert sizes.tolist() == [len(found) for found in few.values()]
        assert plain(entries) == [one for found in few.values() for one in found]
    chosen = np.array(chance.sample(range(len(memories)), min(2, len(memories))), dtype=np.int64)
    row_ids, sizes, entries, _ = block.forwards(chosen)
    assert row_ids.tolist() == (chosen + 1).tolist()
    assert sizes.tolist() == [len(own[place]) for place in chosen]
    assert [tuple(one[:5]) for one in entries.tolist()] == [(*e, 1) for place in chosen for e in own[place]]
    connecting = {key for held in own for key, *_ in held if connects(postings(memories, key))}
    several = [[e for e in own[place] if e[0] in connecting] for place in chosen]
    row_ids, sizes, entries, _ = block.forwards(chosen, shared=True)
    assert (row_ids.tolist(), sizes.tolist()) == ((chosen + 1).tolist(), [len(held) for held in several])
    assert [tuple(one[:5]) for one in entries.tolist()] == [(*e, 1) for held in several for e in held]
    again = Block(block.rows)
    assert again.postings.tobytes() == block.postings.tobytes()
    assert again.own.tobytes() == block.own.tobytes()


def candidates(held: dict[int, list[tuple[int, int]]]) -> NDArray[Any]:
    """Return the candidates of memories, each (key, place)."""
    return np.array([(o, *one) for o, own in sorted(held.items()) for one in own], dtype=OWNED_CANDIDATE)


def test_the_concepts_that_memories_share_come_with_their_postings_and_the_candidates_that_are_names() -> None:
    # key 5 is in both memories, 6 in the first alone, 7 in the second alone, which is about it, 8 in no memory
    held = {1: [(5, 1, 30, 0), (6, 1, 30, 0)], 2: [(5, 2, 40, 0), (7, 0, 0, 90)]}
    written = replace(rows(held), candidates=candidates({1: [(7, 8), (8, 16), (5, 24)]}))
    model = Model("n", State(1, 1, 0, 2, 30, False, 0.0, 0.0, None, ""), Block(written))
    found = model.shared_concepts([1], 30)
    assert found is not None
    forwards, read = found
    assert (forwards.row_ids.tolist(), forwards.sizes.tolist()) == ([1], [1])
    assert forwards.entries["key"].tolist() == [5]
    assert forwards.candidates is not None
    assert forwards.candidates.tolist() == [(1, 7, 8)]
    assert (read.memories, read.keys.tolist(), read.sizes.tolist()) == (2, [5, 7], [2, 1])
    assert plain(read.entries) == [(1, 1, 10, 30, 0), (2, 2, 20, 40, 0), (2, 0, 20, 0, 90)]
    rare = model.shared_concepts([1], 1)  # two memories mention key 5
    assert rare is not None
    assert rare[1].keys.tolist() == [7]


run = st.tuples(st.integers(-6, 6), st.integers(0, 40))
runs_of_words = st.lists(run, max_size=6, unique_by=lambda one: one[1]).map(lambda own: sorted(own, key=lambda r: r[1]))


@settings(deadline=None)
@given(
    st.dictionaries(st.integers(1, 5), memory, min_size=1),
    st.dictionaries(st.integers(1, 5), runs_of_words),
    st.integers(0, 4),
    st.integers(1, 3),
)
def test_a_walk_has_the_same_edges_by_places_of_keys_as_by_keys(
    held: dict[int, list[Entry]], words: dict[int, list[tuple[int, int]]], max_df: int, fan: int
) -> None:
    held = dict(sorted(held.items()))
    written = replace(rows(held), candidates=candidates({o: own for o, own in words.items() if o in held}))
    model = Model("n", State(1, 1, 0, len(held), 30, False, 0.0, 0.0, None, ""), Block(written))
    from_here = sorted(held)[:3]
    by_places = model.shared_concepts(from_here, max_df)
    assert by_places is not None
    whole = model.forwards(from_here, shared=True)
    read = model.postings(np.unique(mentioned(whole)), max_df, shared=True)
    strengths = {"about": 1.0, "co_mention": 2.0, "fan": fan, "max_df": max_df}
    by_keys = edges(recognised(among(whole, read), read), read, **strengths)
    along = edges(recognised(*by_places), by_places[1], **strengths)
    for name in ("source", "key", "target", "weight"):
        assert getattr(along, name).tolist() == getattr(by_keys, name).tolist()


def vectored(rows: Rows) -> Rows:
    """Return memories with a unit vector of two dimensions each, equal for numbers that differ by a multiple of six."""
    angles = rows.row_ids % 6 * np.pi / 7
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    return replace(rows, vector_row_ids=rows.row_ids, vectors=vectors.reshape(len(angles), 2))


@settings(deadline=None)
@given(
    st.dictionaries(st.integers(1, 8), memory, min_size=2, max_size=8),
    st.dictionaries(st.integers(1, 8), runs_of_words),
    st.data(),
)
def test_what_was_written_since_a_block_was_built_and_what_was_removed_is_answered_as_by_one_block(
    held: dict[int, list[Entry]], words: dict[int, list[tuple[int, int]]], data: st.DataObject
) -> None:
    numbers = sorted(held)
    later = set(data.draw(st.lists(st.sampled_from(numbers), unique=True), label="written later"))
    earlier = [number for number in numbers if number not in later]
    gone = set(data.draw(st.lists(st.sampled_from(earlier), unique=True) if earlier else st.just([]), label="removed"))
    max_df = data.draw(st.integers(0, 4), label="max_df")

    def block_of(chosen: list[int]) -> Block:
        written = rows({number: held[number] for number in chosen})
        return Block(vectored(replace(written, candidates=candidates({o: words.get(o, []) for o in chosen}))))

    left = [number for number in numbers if number not in gone]
    state = State(1, 1, 0, len(left), 30, False, 0.0, 0.0, None, "")
    two = Model(
        "n", state, block_of(earlier), block_of(sorted(later)) if later else None, np.array(sorted(gone), np.int64)
    )
    one = Model("n", state, block_of(left))
    keys = range(-7, 8)
    read, expected = (model.postings(keys, None) for model in (two, one))
    assert (read.keys.tolist(), read.sizes.tolist()) == (expected.keys.tolist(), expected.sizes.tolist())
    assert plain(read.entries) == plain(expected.entries)

    from_here = left[:4]
    strengths = {"about": 1.0, "co_mention": 2.0, "fan": 2, "max_df": max_df}
    walks = []
    for model in (two, one):
        whole = model.forwards(from_here, shared=True)
        connected = model.postings(np.unique(mentioned(whole)), max_df, shared=True)
        walks.append(edges(recognised(among(whole, connected), connected), connected, **strengths))
    for name in ("source", "key", "target", "weight"):
        assert getattr(walks[0], name).tolist() == getattr(walks[1], name).tolist()

    query = np.array([0.6, 0.8], dtype=np.float32)
    for scope in (Scope(("n",), len(left)), Scope(("n",), len(left), excluded=np.array(left[1:2], np.int64))):
        for depth in (0, 1, 3, 9):
            assert two.nearest(scope, query, depth) == one.nearest(scope, query, depth)
    vectors = [model.vectors_of(numbers) for model in (two, one)]
    assert vectors[0][0].tolist() == vectors[1][0].tolist() == left
    assert vectors[0][1].tolist() == vectors[1][1].tolist()
    assert two.metadata(numbers) == one.metadata(numbers)


@settings(deadline=None)
@given(
    st.dictionaries(st.integers(1, 5), memory, max_size=5),
    st.lists(
        st.tuples(st.sets(st.integers(1, 9), max_size=3), st.dictionaries(st.integers(1, 9), memory, max_size=3)),
        max_size=5,
    ),
    st.sampled_from([0, 2**31, 2**32 - 2**16 - 10]),
    st.integers(1, 9),
    st.integers(0, 4),
)
def test_a_chain_of_writes_is_answered_as_by_a_block_built_anew(
    first: dict[int, list[Entry]],
    steps: list[tuple[set[int], dict[int, list[Entry]]]],
    offset: int,
    joined_at: int,
    max_df: int,
) -> None:
    def block_of(memories: dict[int, list[Entry]]) -> Rows:
        return vectored(rows(dict(sorted(memories.items()))))

    held = {offset + number: own for number, own in first.items()}
    state = State(1, 1, 0, 0, 30, False, 0.0, 0.0, None, "")
    model = Model("n", state, Block(block_of(held)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model_module, "_TAIL", joined_at)
        for gone, written in steps:
            new = {offset + number: own for number, own in written.items()}
            ids = [f"m{number}" for number in {offset + number for number in gone} | new.keys() & held.keys()]
            later = model.after(state, block_of(new), ids)
            assert later is not None
            model = later
            held = {number: own for number, own in held.items() if f"m{number}" not in ids} | new
    anew, every = Model("n", state, Block(block_of(held))), [offset + number for number in range(1, 10)]
    for most in (None, max_df):
        read, expected = (one.postings(range(-7, 8), most) for one in (model, anew))
        assert (read.keys.tolist(), read.sizes.tolist()) == (expected.keys.tolist(), expected.sizes.tolist())
        assert plain(read.entries) == plain(expected.entries)
    shared, expected = (one.postings(range(-7, 8), None, shared=True) for one in (model, anew))
    at = dict(shared.items())
    assert all(len(entries) for entries in at.values())
    assert {key: plain(entries) for key, entries in expected.items()} == {
        key: plain(at[key]) for key, _ in expected.items()
    }
    whole, connected = (model.forwards(every, shared=shared) for shared in (False, True))
    assert whole.row_ids.tolist() == connected.row_ids.tolist() == sorted(held)
    assert set(expected.keys.tolist()) & set(whole.entries["key"].tolist()) <= set(connected.entries["key"].tolist())
    query, scope = np.array([0.6, 0.8], dtype=np.float32), Scope(("n",), len(held))
    assert [model.nearest(scope, query, d) for d in (0, 2, 9)] == [anew.nearest(scope, query, d) for d in (0, 2, 9)]
    assert model.metadata(every) == anew.metadata(every)


def test_a_walk_over_two_blocks_reads_the_concepts_that_memories_of_either_share() -> None:
    # key 5 is in both blocks, 6 in the first memory alone, 7 in the second, 8 in the third alone, which is about it
    first = replace(rows({1: [(5, 1, 30, 0), (6, 1, 30, 0)]}), candidates=candidates({1: [(8, 8), (9, 16)]}))
    tail = replace(rows({2: [(5, 1, 30, 0), (7, 1, 30, 0)], 3: [(8, 0, 0, 90)]}), candidates=candidates({2: [(8, 0)]}))
    model = Model("n", State(1, 1, 0, 3, 60, False, 0.0, 0.0, None, ""), Block(first), Block(tail))
    forwards = model.forwards([1, 2], shared=True)
    assert (forwards.row_ids.tolist(), forwards.sizes.tolist()) == ([1, 2], [1, 1])
    assert forwards.entries["key"].tolist() == [5, 5]
    assert forwards.candidates is not None
    assert forwards.candidates.tolist() == [(1, 8, 8), (2, 8, 0)]
    assert model.forwards([1, 2]).entries["key"].tolist() == [5, 6, 5, 7]


def test_the_names_that_memories_are_about_are_read_again_where_another_memory_with_the_name_comes_or_goes() -> None:
    state = State(1, 1, 0, 3, 30, False, 0.0, 0.0, None, "")
    reads: list[list[int]] = []

    def read(missing: list[int]) -> list[tuple[int, int, int, str]]:
        reads.append(missing)
        return [(row_id, row_id % 3, 90, f"Name {row_id}.{len(reads)}") for row_id in missing if row_id != 2]

    def said(model: Model, row_ids: Any) -> list[str]:
        return [name for *_, name in model.subject_names(row_ids, read)]

    model = Model("n", state, Block(rows({1: [(1, 0, 0, 90)], 2: [], 3: [(0, 0, 0, 90)]})))
    assert model.subject_names([2, 1], read) == [(1, 1, 90, "Name 1.1")]
    assert said(model, [3]) == ["Name 3.2"]
    later = model.after(state, rows({4: [(1, 0, 0, 90)], 5: [(2, 0, 0, 90)]}), ["m2"])  # 4 has the name of 1
    assert later is not None
    assert said(later, np.array([3, 1])) == ["Name 1.3", "Name 3.2"]
    assert said(later, [4, 5]) == ["Name 4.4", "Name 5.4"]
    last = later.after(state, rows({6: []}), ["m4"])
    assert last is not None
    assert said(last, [1, 3, 5]) == ["Name 1.5", "Name 3.2", "Name 5.4"]
    joined = last.joined()
    assert joined is not None
    assert said(joined, [1, 3, 5]) == ["Name 1.5", "Name 3.2", "Name 5.4"]
    folded = last.after(state._replace(segments=1), rows({}), [])
    assert folded is not None
    assert said(folded, [5]) == ["Name 5.6"]
    changed = last.after(state, rows({5: []}), ["m5"])  # as a memory that is stored again under its number
    assert changed is not None
    assert said(changed, [5, 3]) == ["Name 3.2", "Name 5.7"]
    assert said(model, [1]) == ["Name 1.1"]  # a recall that still reads an earlier state
    assert reads == [[2, 1], [3], [1], [4, 5], [1], [5], [5]]


def test_what_two_blocks_have_is_not_found_by_places() -> None:
    state = State(1, 1, 0, 2, 30, False, 0.0, 0.0, None, "")
    base, tail = Block(rows({1: [(5, 1, 30, 0)]})), Block(rows({2: [(5, 1, 30, 0)]}))
    assert Model("n", state, base, tail).shared_concepts([1], 30) is None
    assert Model("n", state, base, None, np.array([1])).shared_concepts([1], 30) is None


def test_the_row_ids_of_changed_memories_are_looked_up_once_in_each_block(monkeypatch: pytest.MonkeyPatch) -> None:
    state = State(1, 1, 0, 2, 30, False, 0.0, 0.0, None, "")
    model = Model("n", state, Block(rows({1: [], 2: []})), Block(rows({3: [], 4: []})))
    looked: list[list[int]] = []
    row_ids_of = Block.row_ids_of

    def look(block: Block, ids: Any) -> Any:
        found = row_ids_of(block, ids)
        looked.append(found.tolist())
        return found

    monkeypatch.setattr(Block, "row_ids_of", look)
    later = model.after(state, rows({5: []}), ["m1", "m4"])
    assert later is not None
    assert looked == [[1], [4]]
    assert later.row_ids_of(["m1", "m2", "m3", "m4", "m5"]).tolist() == [2, 3, 5]


def test_a_large_model_takes_some_memories_more_and_is_joined_where_the_whole_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(model_module, "_TAIL", 2)
    monkeypatch.setattr(model_module, "_MOST_FOLLOWED", 3)
    state = State(1, 1, 0, 2, 30, False, 0.0, 0.0, None, "")
    base = Block.from_arrays("n", Block(rows({1: [(5, 1, 30, 0)], 2: []})).arrays())
    model = Model("n", state, base)
    whole = Block(rows({1: [(5, 1, 30, 0)], 2: []})).size
    assert (model.size, base.whole_size) == (560, whole)
    grown = model.after(state, rows({3: [], 4: []}), ["m1"], joins=1)
    assert grown is not None
    assert (grown.is_built_on(model), [turn.row_id for turn in grown.block.turns]) == (True, [2, 3, 4])
    assert grown.after(state, rows({5: []}), [], joins=1) is None
    assert grown.joined(whole - 1) is None
    for built in (grown.joined(whole), model.after(state, rows({3: [], 4: []}), ["m1"], joins=2)):
        assert built is not None
        assert (built.is_built_on(model), built._tail, built.behind) == (False, None, 0)
        assert [turn.row_id for turn in built.block.turns] == [2, 3, 4]


def test_the_block_that_follows_a_mapped_one_has_its_vectors_in_bytes_only_where_these_fit_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(model_module, "_TAIL", 1)
    state = State(1, 1, 0, 2, 30, False, 0.0, 0.0, None, "")
    two = replace(rows({1: [], 2: []}), vector_row_ids=np.array([1, 2]), vectors=np.ones((2, 3), dtype=np.float32))
    base = Block.from_arrays("n", Block(two).arrays())
    model = Model("n", state, base)  # six bytes more
    for spare, in_bytes in ((6, True), (5, False)):
        later = model.after(state, rows({3: []}), [], joins=1)
        assert later is not None
        built = later.joined(base.whole_size + spare)
        assert built is not None
        assert built._base.in_bytes is in_bytes


def test_a_block_in_pages_of_its_own_answers_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    block = Block(rows({1: [(5, 1, 30, 0)], 2: [(5, 2, 30, 1), (6, 1, 30, 0)]}), coarse=True)
    assert block.in_own_pages() is block  # a small one stays
    monkeypatch.setattr(block_module, "_PAGED", 0)
    paged = block.in_own_pages()
    assert isinstance(paged.own.base, mmap.mmap)
    assert (paged.size, paged.in_bytes, paged.is_mapped) == (block.size, True, False)
    assert {n: a.tolist() for n, a in paged.arrays().items()} == {n: a.tolist() for n, a in block.arrays().items()}
    assert [tuple(turn) for turn in paged.turns] == [tuple(turn) for turn in block.turns]


def test_arrays_one_after_the_other_begin_at_multiples_of_64_bytes() -> None:
    assert aligned([1, 64, 0, 65, 0]) == ([0, 64, 128, 128, 256], 256)
    assert aligned([1, 64], 65) == ([128, 192], 256)
    assert aligned([0], 65) == ([128], 128)
    assert aligned([], 65) == ([], 65)


@given(st.lists(st.integers(0, 300)), st.integers(0, 300))
def test_arrays_neither_overlap_nor_leave_64_bytes_between_them(sizes: list[int], start: int) -> None:
    offsets, end = aligned(sizes, start)
    ends = [start, *(offset + size for offset, size in zip(offsets, sizes, strict=True))]
    assert ends[-1] == end
    assert all(offset % 64 == 0 and 0 <= offset - before < 64 for offset, before in zip(offsets, ends, strict=False))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="The kernel does not tell.")
def test_the_pages_of_a_block_are_memory_of_this_process_alone() -> None:
    def shared() -> int:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return int(status.partition("RssShmem:")[2].split()[0])

    before = shared()
    two = replace(
        rows({1: [], 2: []}), vector_row_ids=np.array([1, 2]), vectors=np.ones((2, 500_000), dtype=np.float32)
    )
    paged = Block(two).in_own_pages()
    assert isinstance(paged.vectors.base, mmap.mmap)
    assert shared() == before


def test_a_block_for_which_the_system_has_no_pages_stays_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: int, **more: int) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(block_module, "_PAGED", 0)
    monkeypatch.setattr(mmap, "mmap", full)
    block = Block(rows({1: [(5, 1, 30, 0)]}))
    assert block.in_own_pages() is block


def test_the_heads_of_a_model_are_those_of_the_memories_that_it_still_has() -> None:
    state = State(1, 1, 0, 3, 30, False, 0.0, 0.0, None, "0")
    model = Model("n", state, Block(rows({1: [], 2: [], 3: []})))
    assert sorted(model.metadata([1, 2, 3, 9])) == [1, 2, 3]
    later = model.after(state, rows({5: []}), ["m2"])
    assert later is not None
    for _ in range(2):  # the second time from the cache
        metadata = later.metadata([1, 2, 3, 5, 9])
        assert {row_id: candidate.id for row_id, candidate in metadata.items()} == {1: "m1", 3: "m3", 5: "m5"}
    assert sorted(model.metadata(np.array([2, 3]))) == [2, 3]


def piece(row_id: int, *vector: float) -> Rows:
    """Return one memory with one entry, and with a vector or without."""
    vectors = np.array([vector], dtype=np.float32) if vector else NO_VECTORS[1]
    with_vector = np.array([row_id] * len(vectors), dtype=np.int64)
    return replace(rows({row_id: [(row_id, 1, 1, 0)]}), vector_row_ids=with_vector, vectors=vectors)


def test_a_piece_without_vectors_leaves_those_of_the_others_to_their_memories() -> None:
    pieces = [Rows.none(), piece(2, 0.5), piece(4), piece(9, 0.25)]
    for whole in (Rows.gathered(iter(pieces), 3, 2, 3, 0), Rows.gathered(pieces, 9, 8, 7, 6)):
        assert whole.row_ids.tolist() == [2, 4, 9]
        assert whole.entries["key"].tolist() == [2, 4, 9]
        assert (whole.vector_row_ids.tolist(), whole.vectors.tolist()) == ([2, 9], [[0.5], [0.25]])
        later = Rows.merged(piece(7, 0.75), whole)
        assert later.row_ids.tolist() == [2, 4, 7, 9]
        assert (later.vector_row_ids.tolist(), later.vectors.tolist()) == ([2, 7, 9], [[0.5], [0.75], [0.25]])
    assert Rows.gathered([], 0, 0, 0, 0).vectors.shape == Rows.merged(Rows.none(), Rows.none()).vectors.shape == (0, 0)


def test_pieces_of_more_memories_than_were_counted_are_refused() -> None:
    with pytest.raises(ValueError, match="More lengths than were counted"):
        Rows.gathered([piece(2), piece(4)], 1, 0, 2, 0)
    with pytest.raises(ValueError, match="Vectors of different dimensions"):
        Rows.gathered([piece(2, 0.5, 0.25), piece(4, 0.5)], 2, 2, 2, 0)


def test_a_turn_is_what_the_store_said_of_it_however_memories_came_and_went() -> None:
    one = Turns.of([row(2, None, title="The ferry"), row(5, "s2", author="Mia", part=3)])
    other = Turns.of([row(4, "s2", author="Mia"), row(9)])
    both = Turns.joined([Turns.of([]), one, other]).select(np.array([0, 2, 1, 3]))
    assert [tuple(turn) for turn in both] == [
        row(2, None)[:12], row(4, "s2", author="Mia")[:12], row(5, "s2", author="Mia", part=3)[:12], row(9)[:12]
    ]  # fmt: skip
    assert [both.title(at) for at in range(4)] == ["The ferry", None, None, None]
    assert both.place(2) == (35, 5_000_015)
    assert both.each("session") == [None, "s2", "s2", "s1"]
    left = both.select(np.array([False, True, False, True]))
    assert [turn.id for turn in left] == ["m4", "m9"]
    assert left[1].candidate == CandidateMetadata(9, "n", "m9", 0, 0.25, b"\t" * 15 + b"\0", 9.5, 9.75)
    assert len(Turns.of([])) == 0


class Counting(Turns):
    """Turns that count how many of them are made."""

    made = 0

    def __getitem__(self, position: int) -> Turn:
        type(self).made += 1
        return super().__getitem__(position)


def talk(written: list[tuple[Any, ...]]) -> Rows:
    """Return memories without entries, as the store's statement has them."""
    Counting.made = 0
    turns = Counting.of(written)
    none = np.zeros(len(written), dtype=np.int64)
    return Rows(turns, none, none, np.zeros(0, FORWARD), NO_CANDIDATES, *NO_VECTORS)


def talked(state: State, block: Block) -> Model:
    return Model("n", state, block)


def test_whom_an_author_follows_is_read_of_the_16_memories_created_last_however_many_there_are() -> None:
    # in session sK somebody named pK speaks, then Mia: her memories have odd row ids
    said = [row(n, f"s{n // 2}", author="Mia" if n % 2 else f"p{n // 2}") for n in range(2, 3_002)]
    state = State(1, 1, 0, 3_000, 0, False, 0.0, 0.0, None, "")
    model = talked(state, Block(talk(said)))
    found = model.kinds(["mia", "nobody"])
    assert found is not None
    assert found.named == {"Mia": [(f"p{k}",) for k in range(1_500, 1_484, -1)]}
    assert Counting.made == 16 + 2 * 16  # Mia's last, and the sessions of these
    later = model.after(state, talk([row(4_000, None, author="Mia"), row(1, "s1501", author="Mia")]), ["m3001", "m5"])
    assert later is not None
    found = later.kinds(["mia"])
    assert found is not None
    assert found.named == {"Mia": [(), *((f"p{k}",) for k in range(1_499, 1_484, -1))]}


def test_of_memories_created_at_the_same_moment_all_may_be_the_newest() -> None:
    turns = Turns.of([(*row(at)[:14], created) for at, created in enumerate((5, 9, 7, 7, 1))])
    every = np.arange(5)
    assert turns.newest(every, 1).tolist() == [1]
    assert turns.newest(every, 2).tolist() == [1, 2, 3]
    assert turns.newest(every, 4).tolist() == [0, 1, 2, 3]
    assert turns.newest(np.array([0, 4]), 2).tolist() == [0, 4]


def test_a_part_among_the_memories_of_an_author_is_for_the_store_to_read_until_it_is_gone() -> None:
    state = State(1, 1, 0, 3, 0, False, 0.0, 0.0, None, "")
    model = talked(state, Block(talk([row(n, author="Mia", part=n % 2) for n in (2, 3, 4)])))
    assert model.kinds(["mia"]) is None
    later = model.after(state, talk([]), ["m3"])
    assert later is not None
    found = later.kinds(["mia"])
    assert found is not None
    assert found.named == {"Mia": [("Mia",), ()]}


def test_a_namespace_has_sessions_and_authors_until_the_last_memory_with_one_is_gone() -> None:
    state = State(1, 1, 0, 4, 0, False, 0.0, 0.0, None, "")
    written = [row(2, "talk"), row(3, None, author="Mia"), row(4, None, author="..."), row(5, None)]
    model: Model | None = talked(state, Block(talk(written)))
    seen = []
    for new, gone in (([], ["m2"]), ([row(6, "talk")], ["m3"]), ([row(7, None, author="Tom")], ["m6"])):
        assert model is not None
        found = model.kinds([])
        assert found is not None
        seen.append((found.sessions, found.authors))
        model = model.after(state, talk(new), gone)
    assert model is not None
    found = model.kinds([])
    assert found is not None
    assert [*seen, (found.sessions, found.authors)] == [(True, True), (False, True), (True, False), (False, True)]
    assert Counting.made == 0


def test_a_session_is_in_its_order_with_what_came_and_went_and_its_turns_are_made_once() -> None:
    state = State(1, 1, 0, 100, 0, False, 0.0, 0.0, None, "")
    model = talked(state, Block(talk([row(n, "talk") for n in range(2, 202, 2)])))
    assert [turn.id for turn in model.session_turns([2])] == [f"m{n}" for n in range(2, 202, 2)]
    assert Counting.made == 100 + 1
    later = model.after(state, talk([row(7, "talk"), row(300, "talk"), row(301, "else")]), ["m2", "m100"])
    assert later is not None
    assert later.neighbours([8]) == [(8, 7, False), (8, 10, False)]
    assert later.neighbours([98]) == [(98, 96, False), (98, 102, False)]
    assert later.neighbours([300]) == [(300, 200, False)]
    assert later.neighbours([4]) == [(4, 6, False)]
    assert later.neighbours([301]) == []
    assert Counting.made == 2 + 1  # what came; nothing of the large block


def test_the_sessions_that_a_block_keeps_are_bounded_by_their_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_module, "_MOST_TURNS", 5)
    block = Block(talk([row(n, f"s{n % 3}") for n in range(2, 11)]))  # three turns in each session
    for name, made in (("s0", 3), ("s0", 3), ("s1", 6), ("s1", 6), ("s0", 9)):
        assert [turn.session for *_, turn in block.session(name)] == [name] * 3
        assert Counting.made == made


def test_a_key_of_one_memory_takes_21_bytes_with_its_entry_and_a_shared_one_21_and_16_an_entry() -> None:
    alone = [(key, 1, 30, 0) for key in range(1_000)]
    shared = [(-key, 1, 30, 0) for key in range(1, 1_001)]

    def taken(memories: dict[int, list[Entry]]) -> int:
        return Block(rows(memories)).size

    bare = taken({1: [], 2: []})
    assert taken({1: alone, 2: []}) - bare == 21 * 1_000
    assert taken({1: shared, 2: shared}) - bare == 16 * 2_000 + 21 * 1_000


def test_a_candidate_takes_22_bytes() -> None:
    written = rows({1: [], 2: []})
    named = replace(written, candidates=candidates({1: [(7, 8 * n) for n in range(100)]}))
    assert Block(named).size - Block(written).size == 22 * 100
