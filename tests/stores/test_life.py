"""What becomes of memories, over every store there is: versions, and what is forgotten softly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.errors import Conflict, InvalidInput, NotFound


@pytest.fixture(params=["sqlite", "postgres"])
def mem(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Semmem]:
    """An empty memory in each store."""
    if request.param == "sqlite":
        with semmem.connect(f"sqlite://{tmp_path / 'notes.db'}") as mem:
            yield mem
    else:
        with semmem.connect(request.getfixturevalue("store_url"), embedder="hashing", pool_size=2) as mem:
            yield mem


# ---------------------------------------------------------------------- versions


def test_an_update_keeps_the_version_that_was_there_with_what_when_and_by_whom(mem: Semmem) -> None:
    first = mem.remember("Ana lives in Lisbon.", id="ana", tags=["people"], created_at="2026-01-31")
    mem.remember("Bo lives in Bern.", id="bo")
    second = mem.update("ana", text="Ana lives in Porto.", changed_by="clerk")
    third = mem.update("ana", tags=["people", "moved"], importance=0.9)
    found = mem.history("ana")
    assert [one.memory for one in found] == [first, second, third]
    assert [(one.version, one.changed, one.changed_by) for one in found] == [
        (1, (), None),
        (2, ("text",), "clerk"),
        (3, ("tags", "importance"), None),
    ]
    assert [one.changed_at for one in found] == [first.updated_at, second.updated_at, third.updated_at]
    assert found[1].diff(found[0]).splitlines() == [
        "--- version 1", "+++ version 2", "@@ -1 +1 @@", "-Ana lives in Lisbon.", "+Ana lives in Porto.",
    ]  # fmt: skip
    assert found[2].diff(found[1]) == "tags: ('people',) -> ('people', 'moved')\nimportance: 0.5 -> 0.9"
    assert mem.update("ana", importance=0.9).version == 3  # nothing changes
    assert len(mem.history("ana")) == 3
    assert [one.version for one in mem.history("bo")] == [1]


def test_the_versions_of_a_long_text_are_whole_ones(mem: Semmem) -> None:
    texts = [" ".join(f"Sentence {n} of version {v} stands here." for n in range(150)) for v in (1, 2)]
    mem.remember(texts[0], id="long")
    mem.update("long", text=texts[1])
    mem.update("long", text="Short.")
    assert [one.memory.text for one in mem.history("long")] == [*texts, "Short."]


def test_what_an_import_replaces_is_kept_too(mem: Semmem) -> None:
    mem.bring_in([{"id": "a", "text": "Tea.", "author": "Ada"}])
    mem.bring_in([{"id": "a", "text": "Rum.", "author": "Ada"}], owned={"authors": "Ada"}, replace=True)
    assert [one.memory.text for one in mem.history("a")] == ["Tea.", "Rum."]


def test_an_update_that_came_too_late_changes_no_history(mem: Semmem) -> None:
    mem.remember("Tea.", id="a")
    mem.update("a", text="Rum.")
    with pytest.raises(Conflict, match=r"at version 2, not 1: its text is now 'Rum\.', and yours is 'Gin\.'"):
        mem.update("a", text="Gin.", expected_version=1)
    assert [one.memory.text for one in mem.history("a")] == ["Tea.", "Rum."]


def test_history_asked_wrong_says_what_to_do(mem: Semmem) -> None:
    with pytest.raises(NotFound, match="no memory 'nobody' in namespace 'default'; `semmem list`"):
        mem.history("nobody")
    with pytest.raises(InvalidInput, match="id must be a string, not int"):
        mem.history(3)  # type: ignore[arg-type]
    mem.remember("Tea.", id="a")
    with pytest.raises(InvalidInput, match="changed_by must be a string, not int"):
        mem.update("a", text="Rum.", changed_by=3)  # type: ignore[arg-type]
    assert mem.get("a").text == "Tea."
