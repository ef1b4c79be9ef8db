"""The versions of memories, over every store there is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import semmem
from semmem.client.memory import Semmem
from semmem.embedders.hashing import Hashing
from semmem.model.errors import Conflict, InvalidInput, NotFound
from semmem.model.store import Keep
from tests.stores.expiry import texts


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
    mem.update("bo", valid_to="2031-01-31")
    before, now = mem.history("bo")
    assert now.diff(before) == "valid_to: None -> 2031-01-31T00:00:00+00:00"
    assert [one.version for one in (before, now)] == [1, 2]


def test_the_versions_of_a_long_text_are_whole_ones(mem: Semmem) -> None:
    texts = [" ".join(f"Sentence {n} of version {v} stands here." for n in range(150)) for v in (1, 2)]
    mem.remember(texts[0], id="long")
    mem.update("long", text=texts[1])
    mem.update("long", text="Short.")
    assert [one.memory.text for one in mem.history("long")] == [*texts, "Short."]


def test_an_update_of_a_long_text_leaves_as_many_memories_to_ask_as_there_are(mem: Semmem) -> None:
    def asked() -> int:
        return mem.store.scope(("default",), semmem.Filters(), ()).size

    mem.remember("Tea is at four.", id="b")
    mem.remember(" ".join(f"Sentence number {n} is here." for n in range(150)), id="a")
    assert asked() == 1 + len(mem.store.row_ids_of("default", "a")) > 3
    mem.update("a", text="Supper is at six.")
    assert asked() == 2
    mem.update("a", text="Supper is at seven o'clock.")
    assert asked() == 2


def test_what_an_import_replaces_is_kept_too(mem: Semmem) -> None:
    mem.import_items([{"id": "a", "text": "Tea.", "author": "Ada"}])
    mem.import_items([{"id": "a", "text": "Rum.", "author": "Ada"}], owned={"authors": "Ada"}, replace=True)
    assert [one.memory.text for one in mem.history("a")] == ["Tea.", "Rum."]


def test_of_many_versions_the_last_are_kept_and_a_page_says_what_its_first_one_changed(mem: Semmem) -> None:
    mem.remember("Text 1.", id="a")
    mem.remember("Other.", id="b")
    mem.update("b", text="Another.")
    for n in range(2, 8):
        mem.update("a", text=f"Text {n}.", changed_by=f"clerk {n}")
    whole = mem.history("a")
    assert [one.version for one in whole] == [1, 2, 3, 4, 5, 6, 7]
    pages = [mem.history("a", limit=3, offset=at) for at in (0, 3, 6, 9)]
    assert [one for page in pages for one in page] == whole
    assert [len(page) for page in pages] == [3, 3, 1, 0]
    assert mem.history("a", offset=5) == whole[5:]
    swept = mem.store.maintain(Keep(versions=2))
    assert swept["versions"] == 4
    assert "versions" not in mem.store.maintain(Keep(versions=2))
    assert texts(mem, "a") == ["Text 5.", "Text 6.", "Text 7."]
    assert texts(mem, "b") == ["Other.", "Another."]
    mem.forget("a", forgotten_by="Ada")
    assert mem.store.maintain(Keep(versions=0))["versions"] == 1  # of b; those of a go with it, or come back with it
    assert texts(mem, "b") == ["Another."]
    assert [one.forgotten_by for one in mem.history("a", limit=2)] == [None, None]
    assert [one.forgotten_by for one in mem.history("a", limit=2, offset=1)] == [None, "Ada"]
    assert mem.restore_memory("a").version == 7
    assert mem.update("a", text="Text 8.").version == 8


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ({"limit": 0}, "limit must be from 1 to 10000, not 0"),
        ({"limit": True}, "limit must be from 1 to 10000, not True"),
        ({"offset": -1}, "offset must be a whole number from 0, not -1"),
        ({"offset": "1"}, "offset must be a whole number from 0, not '1'"),
    ],
)
def test_a_page_of_versions_that_is_none_is_refused(tmp_path: Path, page: Any, said: str) -> None:
    with semmem.connect(f"sqlite://{tmp_path / 'notes.db'}", embedder="none", keep_versions=0) as mem:
        mem.remember("Tea.", id="a")
        with pytest.raises(InvalidInput, match=said):
            mem.history("a", **page)
        with pytest.raises(NotFound):
            mem.history("b", offset=7)
        mem.update("a", text="Rum.")
        assert texts(mem, "a") == ["Rum."]
        assert "versions" not in mem.maintain()


def test_who_does_something_has_a_name_as_short_as_an_author(mem: Semmem) -> None:
    long, said = "x" * 201, "has 201 characters; at most 200 are stored"
    mem.remember("Tea.", id="a", author="x" * 200)
    mem.remember("Rum.", id="b")
    for name, verb in (
        ("author", lambda: mem.remember("Gin.", author=long)),
        ("changed_by", lambda: mem.update("a", text="Gin.", changed_by=long)),
        ("forgotten_by", lambda: mem.forget("a", forgotten_by=long)),
        ("made_by", lambda: mem.link("a", "see-also", "b", made_by=long)),
        ("made_by", lambda: mem.feedback("r", useful=["a"], made_by=long)),
    ):
        with pytest.raises(InvalidInput, match=f"{name} {said}"):
            verb()
    assert (texts(mem, "a"), mem.links("a")) == (["Tea."], [])
    assert mem.update("a", text="Gin.", changed_by="x" * 200).version == 2


def test_an_update_that_came_too_late_changes_no_history(mem: Semmem) -> None:
    mem.remember("Tea.", id="a")
    mem.update("a", text="Rum.")
    with pytest.raises(Conflict, match=r"at version 2, not 1: its text is now 'Rum\.', and yours is 'Gin\.'"):
        mem.update("a", text="Gin.", expected_version=1)
    assert [one.memory.text for one in mem.history("a")] == ["Tea.", "Rum."]


@pytest.mark.parametrize("expected", ["version", "tag"])
def test_an_update_for_a_memory_that_went_for_good_is_none_for_its_successor(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch, expected: str
) -> None:
    before = mem.remember("Tea.", id="a", created_at="2026-01-31")
    write, others = mem.store.write, [lambda: mem.forget("a", hard=True), lambda: mem.remember("Rum.", id="a")]

    def late(rows: Any, **how: Any) -> Any:
        while others and rows[0].replaces is not None:
            others.pop(0)()
        return write(rows, **how)

    monkeypatch.setattr(mem.store, "write", late)
    wanted = before.version if expected == "version" else before.tag
    with pytest.raises(Conflict, match=r"'a' was stored anew since, .* its text is now 'Rum\.', and yours is 'Gin\.'"):
        mem.update("a", text="Gin.", expected_version=wanted)
    with pytest.raises(Conflict, match="'a' was stored anew since"):
        mem.update("a", text="Gin.", expected_version=before.tag)
    assert texts(mem, "a") == ["Rum."]
    now = mem.get("a")
    assert (now.version, now.tag[:2], now.tag == before.tag) == (1, "1-", False)
    assert mem.update("a", text="Gin.", expected_version=now.tag).version == 2


def test_the_tag_of_a_sensitive_memory_is_the_same_whether_its_text_is_shown_or_not(mem: Semmem) -> None:
    given = {"id": "a", "sensitive": True, "created_at": "2026-01-31"}
    tag = mem.remember("The key lies under the mat.", **given).tag
    assert mem.get("a", reveal=True).tag == mem.get("a").tag == tag
    mem.forget("a", hard=True)
    assert mem.remember("The key hangs on the wall.", **given).tag == tag  # nothing of the text is hashed
    with pytest.raises(
        InvalidInput, match="expected_version must be a whole number, 1 or more, or the tag of a memory"
    ):
        mem.update("a", title="Key", expected_version="1-xyz")


def test_history_asked_wrong_says_what_to_do(mem: Semmem) -> None:
    with pytest.raises(NotFound, match="no memory 'nobody' in namespace 'default'; `semmem list`"):
        mem.history("nobody")
    with pytest.raises(InvalidInput, match="id must be a string, not int"):
        mem.history(3)  # type: ignore[arg-type]
    mem.remember("Tea.", id="a")
    with pytest.raises(InvalidInput, match="changed_by must be a string, not int"):
        mem.update("a", text="Rum.", changed_by=3)  # type: ignore[arg-type]
    assert mem.get("a").text == "Tea."


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_an_update_keeps_as_many_versions_as_the_setting_says_and_takes_few_away_at_a_time(
    request: pytest.FixtureRequest, tmp_path: Path, store: str
) -> None:
    url = f"sqlite://{tmp_path / 'notes.db'}" if store == "sqlite" else request.getfixturevalue("store_url")
    with semmem.connect(url, embedder="none", pool_size=2) as mem:
        mem.remember("Text 1.", id="a")
        mem.remember("Other.", id="b")
        mem.update("b", text="Another.")
        for n in range(2, 41):
            mem.update("a", text=f"Text {n}.")
        assert len(mem.history("a")) == 40
    with semmem.connect(url, embedder="none", pool_size=2, keep_versions=3) as mem:
        mem.update("a", text="Text 41.")
        assert [one.version for one in mem.history("a")] == list(range(21, 42))  # 20 of them are gone
        mem.update("a", importance=0.9)
        assert [one.version for one in mem.history("a")] == [39, 40, 41, 42]
        mem.import_items([{"id": "a", "text": "Text 43."}], owned={"created_after": "2000-01-01"}, replace=True)
        mem.forget("a")
        assert mem.restore_memory("a").version == mem.history("a")[-1].version
        assert len(mem.history("a")) == 4
        mem.remember_many([{"id": f"c{n}", "text": f"Cup {n}."} for n in range(40)])
        assert texts(mem, "b") == ["Other.", "Another."]
        assert "versions" not in mem.maintain()


def test_an_update_answers_the_version_that_it_wrote_although_another_follows_at_once(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.remember("The gate is red.", id="gate")
    write = type(mem.store).write
    followed: list[int] = []

    def followed_by_another(self: Any, *given: Any, **how: Any) -> Any:
        written = write(self, *given, **how)
        if not followed:
            followed.append(1)
            followed.append(mem.update("gate", text="The gate is blue.").version)
        return written

    monkeypatch.setattr(type(mem.store), "write", followed_by_another)
    answer = mem.update("gate", text="The gate is green.", expected_version=1)
    assert (answer.version, answer.text, followed) == (2, "The gate is green.", [1, 3])


class Fallible(Hashing):
    """The hashing embedder, which knows no number for a text about the heron."""

    name = "fallible"
    fingerprint = "fallible-1"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.where(["heron" in one for one in texts], np.nan, super().embed(texts).T).T.astype(np.float32)


def test_a_memory_that_cannot_be_embedded_when_it_comes_back_is_named_by_its_id_and_stays_forgotten(
    tmp_path: Path,
) -> None:
    url = f"sqlite://{tmp_path / 'notes.db'}"
    with semmem.connect(url, embedder="none", keep_forgotten_days=30) as mem:
        mem.remember("A heron stands there.", id="a")
        mem.forget("a")
    with semmem.connect(url, embedder=Fallible(), keep_forgotten_days=30) as mem:
        mem.remember("Tea is at four.")
        with pytest.raises(semmem.EmbedderUnavailable, match=r"not finite \(NaN or infinity\) for memory 'a'\.$"):
            mem.restore_memory("a")
        assert [one.memory.id for one in mem.forgotten()] == ["a"]
