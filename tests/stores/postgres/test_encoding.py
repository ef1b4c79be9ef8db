"""Packed entries: what goes in comes out, and inverting is what a dictionary of lists would do."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.model.exchange import Extraction, Kind
from semmem.stores.packed_postings import FORWARD, POSTING, Segments, forward_entries, invert, unpack_postings
from semmem.stores.postgres.encoding import posting_rows


class Segment(NamedTuple):
    """The postings of one key within one batch."""

    key: int
    kind: int
    n: int
    subjects: int
    low: int
    high: int
    name: str
    entries: bytes


def each(segments: Segments) -> list[Segment]:
    numbers = (column.tolist() for column in segments[:6])
    return [Segment(*one) for one in zip(*numbers, segments.names, segments.packed(), strict=True)]


weights = st.integers(0, 100).map(lambda n: n / 100)
entry = st.tuples(st.integers(-5, 5), st.sampled_from(list(Kind)), weights, weights, st.integers(0, 70_000))


@st.composite
def extractions(draw: st.DrawFn) -> Extraction:
    rows = sorted(draw(st.lists(entry, max_size=8, unique_by=lambda row: row[0])))
    return Extraction(
        keys=[r[0] for r in rows],
        kinds=[int(r[1]) for r in rows],
        names=[f"key {r[0]}" for r in rows],
        mentions=[r[2] for r in rows],
        subjects=[r[3] for r in rows],
        counts=[r[4] for r in rows],
        length=draw(st.integers(0, 70_000)),
    )


def oracle(row_ids: list[int], found: list[Extraction]) -> dict[int, dict[str, Any]]:
    """The same as ``invert``, with nothing but dictionaries and lists."""
    out: dict[int, dict[str, Any]] = {}
    for row_id, e in sorted(zip(row_ids, found, strict=True), key=lambda pair: pair[0]):
        for at, key in enumerate(e.keys):
            mention, subject = round(e.mentions[at] * 100), round(e.subjects[at] * 100)
            row = (row_id, min(e.counts[at], 65_535), min(e.length, 65_535), mention, subject)
            segment = out.setdefault(key, {"kind": e.kinds[at], "name": e.names[at], "rows": []})
            segment["rows"].append(row)
    return out


@settings(max_examples=60, deadline=None)
@given(st.lists(extractions(), max_size=6), st.randoms(use_true_random=False))
def test_inverting_gives_what_a_dictionary_of_lists_gives(found: list[Extraction], random: Any) -> None:
    row_ids = random.sample(range(1, 2**32), len(found))
    sizes = np.array([len(e.keys) for e in found], dtype=np.int64)
    lengths = np.array([e.length for e in found], dtype=np.int64)
    names = [n for e in found for n in e.names]
    segments = each(invert(np.array(row_ids, dtype=np.int64), lengths, sizes, forward_entries(found), names))
    wanted = oracle(row_ids, found)
    assert [s.key for s in segments] == sorted(wanted)
    for segment in segments:
        want = wanted[segment.key]
        rows = [tuple(row)[:5] for row in np.frombuffer(segment.entries, dtype=POSTING).tolist()]
        assert rows == want["rows"]
        assert (segment.kind, segment.name) == (want["kind"], want["name"])
        assert segment.n == sum(1 for _, count, _, mention, _ in rows if mention or count)
        assert segment.subjects == sum(1 for row in rows if row[4])
        assert (segment.low, segment.high) == (rows[0][0], rows[-1][0])


@settings(max_examples=40, deadline=None)
@given(extractions())
def test_the_forward_entries_of_a_memory_are_what_was_extracted(e: Extraction) -> None:
    packed = np.frombuffer(forward_entries([e]).tobytes(), dtype=FORWARD)
    assert packed["key"].tolist() == e.keys
    assert packed["kind"].tolist() == e.kinds
    assert packed["count"].tolist() == [min(c, 65_535) for c in e.counts]
    assert packed["mention"].tolist() == [round(m * 100) for m in e.mentions]
    assert packed["subject"].tolist() == [round(s * 100) for s in e.subjects]


def test_a_record_has_no_gap_that_a_compiler_chose() -> None:
    assert (FORWARD.itemsize, POSTING.itemsize) == (16, 12)
    one = Extraction([-2], [2], ["a b"], [0.6], [0.0], [0], 3)
    assert forward_entries([one]).tobytes() == bytes.fromhex("feffffffffffffff00003c0002000000")  # 0x3c = 60


def test_two_memories_with_one_key_become_one_segment() -> None:
    first = Extraction([7], [1], ["cat"], [0.3], [0.0], [2], 5)
    second = Extraction([7, 9], [1, 3], ["cat", "Tom"], [0.3, 0.0], [0.0, 0.8], [1, 0], 4)
    segments = each(
        invert(
            np.array([12, 11]),
            np.array([5, 4]),
            np.array([1, 2]),
            forward_entries([first, second]),
            ["cat", "cat", "Tom"],
        )
    )
    raw = np.array([(11, 1, 4, 30, 0, b""), (12, 2, 5, 30, 0, b"")], dtype=POSTING).tobytes()
    tom = np.array([(11, 0, 4, 0, 80, b"")], dtype=POSTING).tobytes()
    assert segments == [Segment(7, 1, 2, 0, 11, 12, "cat", raw), Segment(9, 3, 0, 1, 11, 11, "Tom", tom)]


def test_memories_without_a_single_term_make_no_segment() -> None:
    nothing = Extraction((), (), (), (), (), (), 0)
    arrays = (np.array([1, 2]), np.array([0, 0]), np.array([0, 0]))
    assert each(invert(*arrays, forward_entries([nothing, nothing]), [])) == []


def test_a_row_of_postings_travels_as_copy_reads_it_and_keys_of_one_memory_go_last() -> None:
    entries = bytes(range(12))
    numbers = np.array([[-2, 3, 1, 0, 5, 6], [9, 1, 2, 1, 5, 8]]).T
    segments = Segments(*numbers, ["Zoë", ""], np.array([1, 2]), entries * 3)
    rows = list(posting_rows("n", 7, segments, ()))
    five, seven = "0000000000000005", "0000000000000007"
    values = [
        (b"n", "fffffffffffffffe", seven, "0003", "00000001", "00000000", five, "0000000000000006"),
        (b"n", "0000000000000009", seven, "0001", "00000002", "00000001", five, "0000000000000008"),
    ]
    ends = [("Zoë".encode(), entries, b"\x01"), (b"", entries * 2, b"\x00")]
    for row, start, end in zip(rows, values[::-1], ends[::-1], strict=True):
        fields = [start[0], *map(bytes.fromhex, start[1:]), *end]
        assert row == b"\x00\x0b" + b"".join(len(field).to_bytes(4, "big") + field for field in fields)
    known, _ = posting_rows("n", 7, segments, {-2})
    assert known[-1:] == b"\x00"


def test_entries_stand_in_one_order_whatever_the_order_of_rows_and_whatever_is_folded() -> None:
    rows = [(7, [(1, 2, 10, 30, 0)]), (5, [(4, 1, 10, 100, 0)]), (7, [(3, 1, 12, 100, 100), (9, 1, 8, 30, 0)])]

    def unpacked(order: list[int], pending: list[tuple[int, int, bytes]]) -> tuple[list[int], list[int], list[Any]]:
        metadata, raw = b"", b""
        for at in order:
            key, of_key = rows[at]
            packed = np.array([(*row, b"") for row in of_key], dtype=POSTING).tobytes()
            metadata += np.array([key, len(of_key), len(packed)], dtype=">i8").tobytes()
            raw += packed
        ids, sizes, entries = unpack_postings(metadata, raw, pending, np.array([5, 7]), 9)
        return ids.tolist(), sizes.tolist(), entries[["ord", "count", "mention"]].tolist()

    whole = ([5, 7], [1, 3], [(4, 1, 100), (1, 2, 30), (3, 1, 100), (9, 1, 30)])
    assert [unpacked(order, []) for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0])] == [whole] * 3
    waiting = np.array([(7, 2, 30, 0, 0, b"")], dtype=FORWARD).tobytes()
    assert unpacked([2, 1], [(1, 10, waiting)]) == whole  # the oldest is flushed last
