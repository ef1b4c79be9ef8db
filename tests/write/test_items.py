"""Every input that cannot be stored is refused in one clear sentence; what can be stored is kept as it was given."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.extractors import Rules
from semmem.model.errors import InvalidInput, SemmemError
from semmem.model.types import IngestReport
from semmem.write.ingest import Ingest
from semmem.write.items import MadeId, NoItem, drafted, given_id, uuid7


class Unasked:
    """Fails the test when it is asked for anything."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the store was asked to {name}")


class NoStore(Unasked):
    """A store that fails the test when anything gets as far as the store; only what it declares may be looked at."""

    capabilities = frozenset(("lexical", "dense", "graph"))
    vectors = Unasked()
    graph = Unasked()
    life = Unasked()


def ingest() -> Ingest:
    return Ingest(NoStore(), Rules(), lambda: "no embedder")  # type: ignore[arg-type]


def nested(levels: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for _ in range(levels):
        out = {"a": out}
    return out


CIRCULAR: dict[str, Any] = {}
CIRCULAR["a"] = CIRCULAR

BAD: list[tuple[str, dict[str, Any], str]] = [
    ("no text", {}, "The text is empty"),
    ("an empty text", {"text": ""}, "The text is empty"),
    ("white space", {"text": " \n\t "}, "The text is empty"),
    ("None as text", {"text": None}, "The text is empty"),
    ("a NUL in the text", {"text": "a\x00b"}, "text contains a NUL character"),
    ("half a surrogate pair", {"text": "a\ud83d"}, "text contains half a surrogate pair at 1"),
    ("bytes as text", {"text": b"a"}, "text must be a string, not bytes"),
    ("a number as text", {"text": 7}, "text must be a string, not int"),
    ("a text of over ten million characters", {"text": "a" * 10_000_001}, "text has 10000001 characters"),
    ("an empty id", {"text": "a", "id": ""}, "id and namespace cannot be empty"),
    ("an id of 1,001 characters", {"text": "a", "id": "a" * 1001}, "id has 1001 characters; at most 1000"),
    ("an id of 1,000 foxes", {"text": "a", "id": "🦊" * 1000}, "have 4007 bytes together"),  # 4 each, + 7 of default
    ("a number as id", {"text": "a", "id": 7}, "id must be a string, not int; write str(…)"),
    ("a NUL in the id", {"text": "a", "id": "a\x00"}, "id contains a NUL"),
    ("an empty namespace", {"text": "a", "namespace": ""}, "id and namespace cannot be empty"),
    ("a long namespace", {"text": "a", "namespace": "n" * 201}, "namespace has 201 characters"),
    ("a list as title", {"text": "a", "title": ["b"]}, "title must be a string, not list"),
    ("a surrogate in the author", {"text": "a", "author": "\udc00"}, "author contains half a surrogate"),
    ("a number as session", {"text": "a", "session": 1.5}, "session must be a string, not float"),
    ("a long source", {"text": "a", "source": "s" * 4001}, "source has 4001 characters"),
    ("a position that is no number", {"text": "a", "position": "1"}, "position must be a whole number"),
    ("a position with a fraction", {"text": "a", "position": 1.0}, "position must be a whole number"),
    ("True as position", {"text": "a", "position": True}, "position must be a whole number"),
    ("a position beyond 63 bits", {"text": "a", "position": 2**63}, "position must be a whole number"),
    ("an importance above 1", {"text": "a", "importance": 1.01}, "importance must be a number from 0 to 1, not 1.01"),
    ("an importance below 0", {"text": "a", "importance": -0.1}, "importance must be a number from 0 to 1"),
    ("NaN as importance", {"text": "a", "importance": float("nan")}, "importance must be a number from 0 to 1"),
    ("True as importance", {"text": "a", "importance": True}, "importance must be a number from 0 to 1"),
    ("importance in words", {"text": "a", "importance": "high"}, "importance must be a number from 0 to 1, not 'high'"),
    ("a time that is none", {"text": "a", "created_at": "yesterday"}, "created_at must be an ISO 8601 time such as"),
    (
        "a time in seconds",
        {"text": "a", "created_at": 1_700_000_000},
        "created_at must be a datetime, a date or an ISO 8601",
    ),
    ("a time before the year 1", {"text": "a", "created_at": "0001-01-01T00:00:00+05:00"}, "between the years 1 and"),
    ("a time after the year 9999", {"text": "a", "created_at": "9999-12-31T23:00:00-05:00"}, "between the years 1 and"),
    ("one string as tags", {"text": "a", "tags": "red"}, "tags must be a list of strings"),
    ("a number as tags", {"text": "a", "tags": 3}, "tags must be a list of strings"),
    ("a number among the tags", {"text": "a", "tags": ["red", 3]}, "a tag must be a string, not int"),
    ("an empty tag", {"text": "a", "tags": [""]}, "A tag cannot be empty"),
    ("None as a tag", {"text": "a", "tags": [None]}, "A tag cannot be empty"),
    ("a NUL in a tag", {"text": "a", "tags": ["\x00"]}, "a tag contains a NUL"),
    ("a long tag", {"text": "a", "tags": ["t" * 201]}, "a tag has 201 characters"),
    ("a list as metadata", {"text": "a", "metadata": [1]}, "metadata must be a mapping with string keys"),
    ("a number as metadata key", {"text": "a", "metadata": {1: 2}}, "metadata must be a mapping with string keys"),
    ("NaN in metadata", {"text": "a", "metadata": {"x": [float("nan")]}}, "metadata must be JSON values"),
    ("infinity in metadata", {"text": "a", "metadata": {"x": float("inf")}}, "metadata must be JSON values"),
    ("a set in metadata", {"text": "a", "metadata": {"x": {1}}}, "metadata must be JSON values"),
    ("a circle in metadata", {"text": "a", "metadata": CIRCULAR}, "metadata must be JSON values"),
    ("a NUL in metadata", {"text": "a", "metadata": {"x": "\x00"}}, "metadata contains a NUL"),
    ("a NUL in a metadata key", {"text": "a", "metadata": {"x": {"\x00": 1}}}, "metadata contains a NUL"),
    ("half a pair in metadata", {"text": "a", "metadata": {"x": "\ud83d"}}, "metadata contains half a surrogate"),
    ("metadata 101 deep", {"text": "a", "metadata": nested(101)}, "nested deeper than 100 levels"),
    ("metadata 100,000 deep", {"text": "a", "metadata": nested(100_000)}, "nested deeper than 100 levels"),
    ("too much metadata", {"text": "a", "metadata": {"x": "y" * 1_000_000}}, "metadata has 1000009 characters"),
    ("an unknown key", {"text": "a", "txt": "b"}, "A memory has no field 'txt'; use text, namespace, id"),
    ("a key that is no string", {"text": "a", 5: "b"}, "A memory has no field 5"),
    ("NaN in a vector", {"text": "a", "vector": [1.0, float("nan")]}, "vector must hold finite numbers"),
    ("infinity in a vector", {"text": "a", "vector": [1.0, float("inf")]}, "vector must hold finite numbers"),
    ("a vector of zeros", {"text": "a", "vector": [0.0, 0.0]}, "vector must hold finite numbers that are not all 0"),
    ("an empty vector", {"text": "a", "vector": []}, "flat list of 1 to 16000 numbers"),
    ("a long vector", {"text": "a", "vector": [1.0] * 16_001}, "flat list of 1 to 16000 numbers"),
    ("a nested vector", {"text": "a", "vector": [[1.0, 2.0]]}, "flat list of 1 to 16000 numbers"),
    ("a ragged vector", {"text": "a", "vector": [[1.0], [1.0, 2.0]]}, "vector must be a flat list of numbers"),
    ("one number as vector", {"text": "a", "vector": 1.0}, "flat list of 1 to 16000 numbers"),
    ("words as vector", {"text": "a", "vector": ["1", "2"]}, "vector must be a flat list of numbers"),
    ("None in a vector", {"text": "a", "vector": [1.0, None]}, "vector must be a flat list of numbers"),
    ("a number past all bounds", {"text": "a", "vector": [10**400, 1]}, "vector must be a flat list of numbers"),
    ("a complex vector", {"text": "a", "vector": [1j, 2.0]}, "vector must be a flat list of numbers"),
]
IDS = [name for name, _, _ in BAD]


def is_one_sentence(message: str) -> bool:
    return "\n" not in message and 10 < len(message) < 400 and message == message.strip()


@pytest.mark.parametrize(("item", "says"), [case[1:] for case in BAD], ids=IDS)
def test_remember_refuses_it_in_one_sentence_before_the_store_is_asked(item: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        ingest().remember(item)
    assert says in caught.value.message
    assert is_one_sentence(caught.value.message)


class EmptyStore(NoStore):
    """A store that takes batches and must never be given a row."""

    def write(self, rows: Any, **how: Any) -> Any:
        from semmem.model.exchange import Written

        assert not rows
        return Written(frozenset(), frozenset(), frozenset())


@pytest.mark.parametrize(("item", "says"), [case[1:] for case in BAD], ids=IDS)
def test_remember_many_reports_it_with_position_and_reason(item: dict[str, Any], says: str) -> None:
    many = Ingest(EmptyStore(), Rules(), lambda: "no embedder")  # type: ignore[arg-type]
    report = many.remember_many([item, item], namespace="default", batch_size=10, on_error="skip", progress=None)
    assert [r.position for r in report.rejected] == [0, 1]
    assert all(says in r.reason and is_one_sentence(r.reason) for r in report.rejected)
    assert report.read == 2
    with pytest.raises(InvalidInput, match=r"^Item 0") as caught:
        ingest().remember_many([item], namespace="default", batch_size=10, on_error="abort", progress=None)
    assert says in caught.value.message
    assert caught.value.position == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("item", ["a text", ["a"], None, 7, ("text", "a")])
def test_an_item_that_is_no_mapping_is_refused(item: Any) -> None:
    with pytest.raises(InvalidInput, match="An item must be a mapping with a text, not"):
        ingest().remember_many([item], namespace="default", batch_size=1, on_error="abort", progress=None)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"on_error": "ignore"}, 'on_error must be "abort" or "skip"'),
        ({"batch_size": 0}, "batch_size must be a whole number from 1 to 100000"),
        ({"batch_size": "10"}, "batch_size must be a whole number"),
        ({"batch_size": True}, "batch_size must be a whole number"),
        ({"namespace": ""}, "namespace must be a name"),
        ({"namespace": 5}, "namespace must be a string, not int"),
        ({"namespace": "a\x00"}, "namespace contains a NUL"),
        ({"items": {"text": "a"}}, "takes a list or a stream of items, not one dict"),
        ({"items": "a text"}, "takes a list or a stream of items, not one str"),
        ({"items": 5}, "takes a list or a stream of items, not one int"),
    ],
)
def test_an_argument_that_cannot_be_is_refused_before_an_item_is_read(arguments: dict[str, Any], says: str) -> None:
    def items() -> Iterator[Any]:
        raise AssertionError("an item was read")
        yield

    with pytest.raises(SemmemError) as caught:
        ingest().remember_many(
            **{"items": items(), "namespace": "n", "batch_size": 5, "on_error": "abort", "progress": None} | arguments
        )
    assert says in caught.value.message


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["text", "id", "title", "tags", "metadata", "importance", "created_at", "vector", "position"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.datetimes(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        ),
    )
)
def test_whatever_an_item_holds_it_is_accepted_or_refused_and_nothing_else_is_raised(item: dict[str, Any]) -> None:
    try:
        draft = drafted(0, item, "n")
    except InvalidInput:
        pass
    else:
        assert draft.memory.text == item["text"]


def memory(**item: Any) -> Any:
    return drafted(0, {"text": "a", **item}, "n").memory


def test_a_time_without_a_zone_is_utc_and_one_with_a_zone_is_the_same_moment() -> None:
    assert memory(created_at="2026-01-31T09:00:00").created_at == datetime(2026, 1, 31, 9, tzinfo=UTC)
    east = datetime(2026, 1, 31, 9, tzinfo=timezone(timedelta(hours=2)))
    assert memory(created_at=east).created_at == datetime(2026, 1, 31, 7, tzinfo=UTC)
    assert memory(created_at="2026-01-31").created_at == datetime(2026, 1, 31, tzinfo=UTC)


def test_the_same_moment_in_two_zones_is_the_same_content() -> None:
    one = drafted(0, {"text": "a", "created_at": "2026-01-31T09:00:00+02:00"}, "n")
    other = drafted(0, {"text": "a", "created_at": datetime(2026, 1, 31, 7, tzinfo=UTC)}, "n")
    assert one.payload == other.payload


def test_every_field_but_id_namespace_and_vector_is_part_of_the_content() -> None:
    plain = drafted(0, {"text": "a"}, "n").payload
    for change in (
        {"text": "b"}, {"title": "t"}, {"author": "t"}, {"session": "t"}, {"source": "t"}, {"position": 1},
        {"tags": ["t"]}, {"metadata": {"t": 1}}, {"importance": 0.6}, {"created_at": "2026-01-31"},
    ):  # fmt: skip
        assert drafted(0, {"text": "a", **change}, "n").payload != plain, change
    for same in ({"id": "x"}, {"namespace": "m"}, {"vector": [1.0]}, {"title": ""}, {"importance": 0.5}, {"tags": []}):
        assert drafted(0, {"text": "a", **same}, "n").payload == plain, same


def test_a_set_of_tags_is_kept_in_one_order_in_every_process() -> None:
    assert memory(tags={"c", "a", "b"}).tags == ("a", "b", "c")
    assert memory(tags=["c", "a", "b"]).tags == ("c", "a", "b")


def test_an_escaped_backslash_before_u0000_is_not_a_nul() -> None:
    assert memory(metadata={"pattern": "\\u0000 and \\ud83d"}).metadata == {"pattern": "\\u0000 and \\ud83d"}
    assert memory(metadata={"fox": "🦊"}).metadata == {"fox": "🦊"}


def test_subclasses_of_plain_types_are_stored_as_plain_values() -> None:
    class Who(StrEnum):
        ADA = "Ada"

    class When(datetime):
        pass

    found = memory(author=Who.ADA, tags=[Who.ADA], created_at=When(2026, 1, 31, tzinfo=UTC))
    assert type(found.author) is str
    assert found.author == "Ada"
    assert type(found.tags[0]) is str
    assert type(found.created_at) is datetime


def test_a_vector_is_brought_to_unit_length_however_long_or_short_it_was() -> None:
    for scale in (1.0, 1e-30, 1e200, 1e-300):
        vector = drafted(0, {"text": "a", "vector": [3 * scale, 4 * scale]}, "n").vector
        assert vector == pytest.approx([0.6, 0.8], abs=1e-6)
        assert vector.dtype == np.float32


def test_uuid7_is_of_version_7_and_sorts_by_time() -> None:
    import uuid

    made = [uuid7() for _ in range(100)]
    assert len(set(made)) == 100
    assert {uuid.UUID(m).version for m in made} == {7}
    assert {uuid.UUID(m).variant for m in made} == {uuid.RFC_4122}
    times = [uuid.UUID(m).int >> 80 for m in made]
    assert times == sorted(times)


def test_a_batch_ends_early_when_its_texts_are_long() -> None:
    from semmem.write.plan import batches

    items = enumerate([{"text": "a" * 12_000_000}, {"text": "b" * 12_000_000}, {"text": "c"}, 5])
    assert [[at for at, _ in batch] for batch in batches(items, 3)] == [[0, 1], [2, 3]]


def test_an_empty_stream_is_a_report_of_nothing() -> None:
    report = ingest().remember_many([], namespace="n", batch_size=5, on_error="abort", progress=None)
    assert (report.remembered, report.unchanged, report.rejected, report.read) == (0, 0, (), 0)
    assert isinstance(report, IngestReport)


def test_an_id_that_an_interface_made_is_an_id_that_nobody_gave() -> None:
    made, named = (drafted(0, {"text": "The ferry leaves.", "id": id}, "demo") for id in (MadeId("x"), "x"))
    assert (made.memory.id, named.memory.id) == ("x", "x")
    assert (made.made_id, named.made_id) == (True, False)
    assert [given_id({"id": id}) for id in (MadeId("x"), "x", 7, None)] == ["x", "x", None, None]
    with pytest.raises(InvalidInput, match=r"^Line 2 is not JSON\.$"):
        drafted(0, NoItem("Line 2 is not JSON."), "demo")


def test_ids_of_one_millisecond_sort_by_their_time() -> None:
    start = 1_800_000_000_123_000_000
    ids = [uuid7(start + 1_000 * microsecond) for microsecond in range(1_000)]
    assert ids == sorted(ids)
    assert {id[:13] for id in ids} == {"01a3185c-507b"}
    assert {id[14] + id[19] for id in ids} <= {"78", "79", "7a", "7b"}
    assert (ids[0][15:18], ids[500][15:18], ids[999][15:18]) == ("000", "800", "ffb")
