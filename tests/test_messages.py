"""What an error says stays a sentence, however long the values in it, and names what was passed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import semmem
from semmem.model.errors import InvalidInput, NotFound, SemmemError
from semmem.model.filters import checked_filters


def test_a_long_message_keeps_its_beginning_and_what_to_do() -> None:
    said = str(SemmemError(f"There is no memory {'x' * 140_000!r}; `list` shows what is stored."))
    assert len(said) <= 1000
    assert said.startswith("There is no memory 'xxx")
    assert said.endswith("xxx'; `list` shows what is stored.")


def test_a_long_value_in_quotes_is_cut_and_the_words_around_it_stay() -> None:
    said = f"There is no memory {'x' * 1000!r} in namespace 'a'; `semmem list` shows what is stored."
    cut = f"'{'x' * 50} … {'x' * 25}'"
    assert str(NotFound(said)) == f"There is no memory {cut} in namespace 'a'; `semmem list` shows what is stored."
    for name in ("it's" * 300, 'it\'s "q" ' * 300, "back\\slash" * 300):
        words = str(NotFound(f"Here is {name!r}, which this source's own memories' texts name; look at 'b'."))
        assert len(words) < 160
        assert words.startswith("Here is ")
        assert words.endswith(", which this source's own memories' texts name; look at 'b'.")
    for plain in (f"'a' and {'more words ' * 30}and 'b'.", f"One quote ' and {'more words ' * 30}", f"{'y' * 120!r}"):
        assert str(NotFound(plain)) == plain


def test_a_long_id_is_never_repeated_whole() -> None:
    id = "x" * 1000
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        mem.remember("The key is red.", id=id)
        calls: list[Callable[[], object]] = [
            lambda: mem.remember("The key is blue.", id=id),
            lambda: mem.get(f"{id}y"),
            lambda: mem.update(id, text="Blue.", expected_version=7),
            lambda: mem.forget(f"{id}y"),
            lambda: mem.link(id, "supersedes", id),
            lambda: mem.remember_many([{"text": "Blue.", "id": id}]),
        ]
        for call in calls:
            with pytest.raises(SemmemError) as refused:
                call()
            assert len(str(refused.value)) < 300
        (row,) = mem.remember_many([{"text": "Blue.", "id": id}], on_error="skip").rejected
        assert (len(row.reason) < 150, row.id) == (True, id)


@pytest.mark.slow
def test_a_filter_that_is_nested_too_deeply_is_refused_in_a_sentence() -> None:
    for levels in (101, 900, 5000, 100_000):
        value: dict[str, object] = {}
        for _ in range(levels - 1):
            value = {"a": value}
        with pytest.raises(InvalidInput, match="nested deeper than 100 levels"):
            checked_filters({"metadata": value})
    assert checked_filters({"metadata": {"a": ["[" * 300]}}).metadata == {"a": ["[" * 300]}


def test_odd_values_are_told_as_what_they_are() -> None:
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        mem.remember("The key is red.", id="a")
        found = mem.recall("key")
        for id in (3, None, b"a", "a\x00", "a\ud800"):
            with pytest.raises(InvalidInput, match="id"):
                found.explain(id)  # type: ignore[arg-type]  # what a caller may pass all the same
        with pytest.raises(NotFound, match="no memory 'b'"):
            found.explain("b")
