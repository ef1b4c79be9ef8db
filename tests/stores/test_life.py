"""What becomes of memories, over every store there is: versions, and what is forgotten softly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.errors import Conflict, InvalidInput, NotFound
from semmem.model.store import Keep
from semmem.model.types import Filters
from semmem.stores.postgres import upkeep as postgres_upkeep
from semmem.stores.sqlite import upkeep as sqlite_upkeep


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


def test_what_an_import_replaces_is_kept_too(mem: Semmem) -> None:
    mem.bring_in([{"id": "a", "text": "Tea.", "author": "Ada"}])
    mem.bring_in([{"id": "a", "text": "Rum.", "author": "Ada"}], owned={"authors": "Ada"}, replace=True)
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
    with semmem.connect(f"sqlite://{tmp_path / 'notes.db'}", keep_versions=0) as mem:
        mem.remember("Tea.", id="a")
        with pytest.raises(InvalidInput, match=said):
            mem.history("a", **page)
        with pytest.raises(NotFound):
            mem.history("b", offset=7)
        mem.update("a", text="Rum.")
        assert mem.maintain()["versions"] == 1
        assert texts(mem, "a") == ["Rum."]


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


# ---------------------------------------------------------------------- what is forgotten softly


def texts(mem: Semmem, id: str) -> list[str]:
    return [one.memory.text for one in mem.history(id)]


def test_what_was_forgotten_is_found_nowhere_and_comes_back_as_it_was(mem: Semmem) -> None:
    mem.remember("The heron of Ada Lovelace stands in the reeds.", id="h", title="Heron", tags=["b"], session="s")
    memory = mem.update("h", importance=0.8, changed_by="ada")
    mem.remember("An owl sleeps.", id="o")
    question = "where does the heron of Ada Lovelace stand?"
    before = [(hit.id, hit.score, hit.components) for hit in mem.recall(question)]
    assert mem.forget("h", forgotten_by="clerk") == 1
    assert "h" not in [hit.id for hit in mem.recall(question)]
    assert [one.id for one in mem.list()] == ["o"]
    with pytest.raises(NotFound):
        mem.get("h")
    kept = mem.history("h")
    assert [(one.version, one.changed_by, one.forgotten_by) for one in kept] == [(1, None, None), (2, "ada", "clerk")]
    assert all(isinstance(one.forgotten_at, datetime) for one in kept)
    back = mem.restore_memory("h")
    assert back.last_seen is not None
    assert replace(back, last_seen=None) == memory
    assert mem.get("h") == back
    assert [(hit.id, hit.score, hit.components) for hit in mem.recall(question)] == before
    assert [(one.version, one.forgotten_at) for one in mem.history("h")] == [(1, None), (2, None)]
    given = {"title": "Heron", "tags": ["b"], "session": "s", "importance": 0.8}
    assert mem.remember(memory.text, id="h", **given).version == 2  # the same again
    with pytest.raises(Conflict, match="There is a memory 'h' in namespace 'default': it is not forgotten; nothing"):
        mem.restore_memory("h")


def test_the_history_of_what_was_forgotten_says_who_changed_and_who_forgot_it(mem: Semmem) -> None:
    mem.remember("The first life.", id="a")
    mem.update("a", text="The first life, changed.", changed_by="Bo")
    mem.forget("a", forgotten_by="Ada")
    mem.remember("The second life.", id="a")
    mem.forget("a", forgotten_by="Cy")
    said = [(one.version, one.changed, one.changed_by, one.forgotten_by) for one in mem.history("a")]
    assert said == [(1, (), None, None), (2, ("text",), "Bo", "Ada"), (3, (), None, "Cy")]


def test_a_vector_that_was_given_comes_back(store_url: str) -> None:
    with semmem.connect(store_url, embedder="none") as mem:
        for name, vector in (("a", [1.0, 0.0]), ("b", [0.0, 1.0])):
            mem.remember(f"Text {name}.", id=name, vector=vector)
        before = [row["vector"] for row in mem.export(vectors=True)]
        mem.forget("a")
        mem.restore_memory("a")
        assert [row["vector"] for row in mem.export(vectors=True)] == before
        assert [hit.id for hit in mem.recall("nothing of it", vector=[1.0, 0.0], limit=1)] == ["a"]


def test_an_id_that_is_used_anew_counts_on_and_keeps_both_lives(mem: Semmem) -> None:
    mem.remember("The first life.", id="a")
    mem.update("a", text="The first life, changed.")
    mem.forget("a")
    assert mem.remember("The second life.", id="a").version == 3
    with pytest.raises(Conflict, match="it has been remembered anew since it was forgotten; nothing was changed"):
        mem.restore_memory("a")
    assert mem.update("a", text="The second life, changed.").version == 4
    found = mem.history("a")
    assert [one.memory.text for one in found] == [
        "The first life.", "The first life, changed.", "The second life.", "The second life, changed.",
    ]  # fmt: skip
    assert [one.forgotten_at is None for one in found] == [False, False, True, True]
    assert [one.changed for one in found] == [(), ("text",), (), ("text",)]
    mem.forget("a")
    assert mem.restore_memory("a").text == "The second life, changed."
    assert [one.forgotten_at is None for one in mem.history("a")] == [False, False, True, True]
    assert mem.forget("a", hard=True) == 1
    with pytest.raises(NotFound):
        mem.history("a")


def test_a_dry_run_counts_what_a_hard_forget_by_filter_takes_of_earlier_lives(mem: Semmem) -> None:
    for session in ("s", "t"):
        mem.remember("The key is red.", id="a", session=session)
        mem.remember("The key is blue.", id="b", session="s")
        if session == "s":
            mem.forget("a")
    asked = {"filters": {"sessions": "s"}, "hard": True}
    assert mem.forget(**asked, dry_run=True) == 2  # b, and the life of a that was in the session s
    assert mem.forget(**asked) == 2
    assert [one.id for one in mem.list()] == ["a"]


def test_hard_keeps_nothing_and_takes_what_was_forgotten_before(mem: Semmem) -> None:
    for name in ("a", "b", "c"):
        mem.remember(f"Text {name}.", id=name, session="s")
        mem.update(name, text=f"Text {name} again.")
    mem.forget("a")
    assert mem.forget("a", hard=True, dry_run=True) == 1
    assert texts(mem, "a") == ["Text a.", "Text a again."]
    assert mem.forget("a", hard=True) == 1
    with pytest.raises(NotFound, match="Nothing is kept of a memory 'a' in namespace 'default': there was none, or"):
        mem.restore_memory("a")
    with pytest.raises(NotFound):
        mem.forget("a", hard=True)
    mem.forget("b")
    assert mem.forget(filters={"sessions": "s"}, hard=True, dry_run=True) == 2
    assert mem.forget(filters={"sessions": "s"}, hard=True) == 2  # one that was forgotten, one that was not
    assert mem.forget(filters={"sessions": "s"}, dry_run=True) == 0
    for name in ("b", "c"):
        with pytest.raises(NotFound):
            mem.history(name)


def test_a_filter_forgets_softly_and_a_whole_namespace_for_good(mem: Semmem) -> None:
    for name in ("a", "b"):
        mem.remember(f"Text {name}.", id=name, session="s")
    assert mem.forget(filters={"sessions": "s"}) == 2
    assert [mem.restore_memory(name).id for name in ("a", "b")] == ["a", "b"]
    mem.forget("a")
    assert mem.forget(everything=True, dry_run=True) == 1
    assert mem.forget(everything=True) == 1
    for name in ("a", "b"):
        with pytest.raises(NotFound, match="Nothing is kept"):
            mem.restore_memory(name)


def test_maintain_sweeps_what_nobody_took_back_in_time(mem: Semmem) -> None:
    for name in ("a", "b"):
        mem.remember(f"Text {name}.", id=name)
        mem.update(name, text=f"Text {name} again.")
    mem.forget("a")
    assert "forgotten" not in mem.maintain()
    assert texts(mem, "a") == ["Text a.", "Text a again."]
    assert mem.store.maintain(Keep(forgotten_days=-1))["forgotten"] == 2
    with pytest.raises(NotFound):
        mem.history("a")
    assert texts(mem, "b") == ["Text b.", "Text b again."]  # versions of what is there are no forgotten ones


def test_a_sweep_leaves_what_was_forgotten_again_later(mem: Semmem) -> None:
    mem.remember("Her first life.", id="a")
    mem.remember("A friend.", id="b")
    mem.link("b", "see-also", "a")
    mem.forget("a")
    if mem.store.kind == "SQLite":
        mem.store._run(lambda c: c.execute("UPDATE history SET forgotten_at = 1"))  # type: ignore[attr-defined]
    else:
        mem.store.run(lambda c: c.execute("UPDATE history SET forgotten_at = '2020-01-01'"))  # type: ignore[attr-defined]
    mem.remember("Her second life.", id="a")
    mem.forget("a")
    assert mem.maintain()["forgotten"] == 1
    assert texts(mem, "a") == ["Her second life."]
    assert mem.restore_memory("a").text == "Her second life."
    assert [one.key for one in mem.links("b")] == [("b", "see-also", "a")]


def test_what_was_taken_back_stays_as_long_as_what_was_changed_then(mem: Semmem) -> None:
    for name in ("a", "b"):
        mem.remember("Long ago.", id=name, created_at="2020-01-01")
    mem.namespace_limits("default", keep_days=30)
    mem.forget("a")
    mem.restore_memory("a")
    assert mem.maintain()["kept"] == 1
    assert [one.id for one in mem.list()] == ["a"]
    assert mem.get("a").updated_at == datetime(2020, 1, 1, tzinfo=UTC)


def test_a_hard_forget_by_filter_goes_by_what_a_memory_was_when_it_was_forgotten(mem: Semmem) -> None:
    mem.remember("The first life.", id="a", tags=["draft"])
    mem.remember("Another draft.", id="b", tags=["draft"])
    mem.update("a", tags=["final"])
    mem.forget("a")
    asked = {"filters": {"tags": ["draft"]}, "hard": True}
    assert mem.forget(**asked, dry_run=True) == mem.forget(**asked) == 1
    assert mem.restore_memory("a").tags == ("final",)
    assert texts(mem, "a") == ["The first life.", "The first life."]
    mem.forget("a")
    mem.remember("The second life.", id="a", tags=["draft"])
    mem.update("a", text="The second life, changed.")
    assert mem.forget(**asked, dry_run=True) == mem.forget(**asked) == 1
    assert texts(mem, "a") == ["The first life.", "The first life."]
    mem.remember("The third life.", id="a", tags=["third"])
    assert mem.forget(filters={"tags": ["final"]}, hard=True) == 1
    assert texts(mem, "a") == ["The third life."]
    mem.forget("a", hard=True)
    with pytest.raises(NotFound):
        mem.history("a")


@pytest.mark.parametrize("why", ["expired", "kept"])
def test_a_sweep_leaves_an_earlier_life_that_may_still_be_taken_back(mem: Semmem, why: str) -> None:
    mem.remember("A friend.", id="b")
    mem.remember("The first life.", id="a")
    mem.link("b", "see-also", "a")
    mem.forget("a")
    mem.remember("The second life.", id="a", created_at="2020-01-01")
    mem.update("a", text="The second life, changed.")
    if why == "expired":
        let_expire(mem, "a")
    else:
        mem.namespace_limits("default", keep_days=30)
        table = "memory" if mem.store.kind == "SQLite" else "semmem.memory"
        old = "1" if mem.store.kind == "SQLite" else "'2020-01-01'"
        run = mem.store._run if mem.store.kind == "SQLite" else mem.store.run  # type: ignore[attr-defined]
        run(lambda c: c.execute(f"UPDATE {table} SET updated_at = {old} WHERE id = 'a'"))
    assert mem.maintain()[why] == 1
    assert texts(mem, "a") == ["The first life."]
    assert mem.restore_memory("a").text == "The first life."
    assert [one.key for one in mem.links("a")] == [("b", "see-also", "a")]


def test_what_an_import_prunes_may_be_taken_back(mem: Semmem) -> None:
    items = [{"id": name, "text": f"Note {name}.", "source": "notes", "author": "Ada"} for name in "ab"]
    mem.bring_in(items)
    done = mem.bring_in(items[:1], owned={"authors": "Ada"}, prune=True)
    assert (done.pruned, [one.id for one in mem.list()]) == (1, ["a"])
    assert mem.restore_memory("b").text == "Note b."


def test_where_nothing_is_to_be_kept_forget_forgets_at_once(tmp_path: Path) -> None:
    with semmem.connect(f"sqlite://{tmp_path / 'notes.db'}", keep_forgotten_days=0) as mem:
        mem.remember("Text.", id="a")
        mem.update("a", text="Text again.")
        assert mem.forget("a") == 1
        with pytest.raises(NotFound):
            mem.history("a")


def test_a_store_forgets_for_good_unless_it_is_asked_to_keep(mem: Semmem) -> None:
    mem.remember("Text.", id="a", namespace="n")
    assert mem.store.forget("n", "a", Filters(), dry_run=False) == 1
    with pytest.raises(NotFound):
        mem.history("a", namespace="n")


# ---------------------------------------------------------------------- what holds when


DAY = timedelta(days=1)


def let_expire(mem: Semmem, id: str) -> None:
    """Let the time of a memory be over, as if it had been remembered long ago."""
    if mem.store.kind == "SQLite":
        mem.store._run(lambda c: c.execute("UPDATE memory SET expires_at = 1 WHERE id = ?", (id,)))
    else:
        mem.store.run(lambda c: c.execute("UPDATE memory SET expires_at = now() WHERE id = %s", (id,)))


def test_when_a_memory_holds_and_vanishes_is_stored_changed_and_taken_away(mem: Semmem) -> None:
    made = mem.remember(
        "The heron nests.", id="a", valid_from="2026-01-01", valid_to="2126-02-01", expires_at="2199-01-01", pinned=True
    )
    assert (made.valid_from, made.valid_to) == (datetime(2026, 1, 1, tzinfo=UTC), datetime(2126, 2, 1, tzinfo=UTC))
    assert (made.expires_at, made.pinned, mem.get("a")) == (datetime(2199, 1, 1, tzinfo=UTC), True, made)
    changed = mem.update("a", valid_to="2126-03-01", expires_at=None, pinned=False)
    assert (changed.valid_from, changed.expires_at, changed.pinned) == (made.valid_from, None, False)
    assert mem.update("a", ttl="30d").expires_at is not None
    rewritten = mem.update("a", text="The heron left.")  # begins when it is written; the end, still ahead, stays
    assert (rewritten.valid_from, rewritten.valid_to) == (None, datetime(2126, 3, 1, tzinfo=UTC))
    before, after = datetime.now(UTC) + 11 * DAY, datetime.now(UTC) + 13 * DAY
    for given in (12 * DAY, "12d", 12 * 86_400, "288h"):
        expires = mem.remember("An owl.", ttl=given).expires_at
        assert expires is not None
        assert before < expires < after
    assert [one.memory.pinned for one in mem.history("a")] == [True, False, False, False]
    rows = list(mem.export())
    assert {"valid_to", "expires_at"} <= rows[-1].keys()
    mem.forget("a")
    assert replace(mem.restore_memory("a"), last_seen=None) == rewritten


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"valid_from": "2026-02-01", "valid_to": "2026-01-01"}, r"valid_from \(2026-02-01.* must be before valid_to"),
        ({"valid_from": "soon"}, "valid_from must be an ISO 8601 time such as"),
        ({"expires_at": "2001-01-01"}, "expires_at is in the past"),
        ({"expires_at": "2199-01-01", "ttl": 5}, "Give expires_at or ttl, not both"),
        ({"ttl": "a week"}, "ttl must be a number of seconds, or such as 30d, 12h or 45m"),
        ({"ttl": -1}, "ttl must be more than 0"),
        ({"ttl": -(10**400)}, "ttl must be more than 0"),
        ({"ttl": float("nan")}, "ttl must be a number of seconds"),
        ({"ttl": True}, "ttl must be a number of seconds"),
        ({"pinned": "yes"}, "pinned must be True or False"),
    ],
)
def test_a_time_that_cannot_be_is_refused_in_one_sentence(tmp_path: Path, given: dict[str, object], says: str) -> None:
    with semmem.connect(f"sqlite://{tmp_path / 'notes.db'}") as mem:
        with pytest.raises(InvalidInput, match=says):
            mem.remember("Tea.", **given)  # type: ignore[arg-type]
        mem.remember("Tea.", id="a", valid_from="2026-01-01", valid_to="2026-02-01")
        with pytest.raises(InvalidInput, match=says if "valid_from" not in given else "valid_from"):
            mem.update("a", **given)
        with pytest.raises(InvalidInput, match="must be before"):
            mem.update("a", valid_to="2025-01-01")
        assert mem.get("a").version == 1
        assert mem.stats().memories == 1


def test_what_has_expired_vanishes_at_once_and_is_swept(mem: Semmem) -> None:
    mem.remember("The heron stands in the reeds.", id="a", ttl="1h", session="s")
    mem.update("a", importance=0.7)
    mem.remember("The heron flies over the lake.", id="b", session="s")
    assert {hit.id for hit in mem.recall("heron")} == {"a", "b"}
    let_expire(mem, "a")
    assert [hit.id for hit in mem.recall("heron")] == ["b"]
    assert [hit.id for hit in mem.recall("heron", filters={"sessions": "s"}, exclude=["c"])] == ["b"]
    assert mem.recall("reeds").hits == () or [hit.id for hit in mem.recall("reeds")] == ["b"]
    assert [one.id for one in mem.list()] == ["b"]
    for asked in (mem.get, lambda id: mem.get(id, as_of=datetime.now(UTC)), lambda id: mem.update(id, importance=0.2)):
        with pytest.raises(NotFound):
            asked("a")
    assert mem.remember("Another heron.", id="a").text == "Another heron."
    let_expire(mem, "a")
    let_expire(mem, "b")
    assert mem.maintain()["expired"] == 2
    assert mem.stats().memories == 0
    for id in ("a", "b"):
        with pytest.raises(NotFound):
            mem.history(id)


def test_nothing_comes_back_that_has_expired_or_gives_way_to_what_has(mem: Semmem) -> None:
    for name in ("a", "b"):
        mem.remember("The same heron.", id=name)
        mem.forget(name)
    mem.remember("The same heron.", id="a", ttl="1h")
    let_expire(mem, "a")
    assert mem.restore_memory("a").text == "The same heron."  # the life before the one that has expired
    mem.remember("A heron for an hour.", id="c", ttl="1h")
    let_expire(mem, "c")
    mem.forget("c")
    with pytest.raises(NotFound, match="'c' in namespace 'default' has expired since it was forgotten"):
        mem.restore_memory("c")
    assert texts(mem, "c") == ["A heron for an hour."]
    assert mem.restore_memory("b") == mem.get("b")
    assert mem.stats().memories == 2


def test_what_takes_the_place_of_something_expired_is_stored_however_much_has_expired(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (postgres_upkeep, sqlite_upkeep):
        monkeypatch.setattr(module, "AT_ONCE", 2)
    items = [{"id": name, "text": f"Heron {name}."} for name in "abcde"]
    mem.remember_many([{**one, "ttl": "1h"} for one in items])
    for name in "abcde":
        let_expire(mem, name)
    assert mem.remember("Heron e.", id="e", ttl="1h") == mem.get("e")
    assert mem.remember("Another heron.", id="d").text == mem.get("d").text
    assert mem.remember_many(items[:2]).remembered == 2
    assert [one.id for one in mem.list()] == ["b", "a", "d", "e"]
    assert mem.maintain()["expired"] == 1


@pytest.mark.parametrize("recipe", ["default", "hybrid", "lexical"])
def test_what_is_not_valid_now_ranks_below_what_is(mem: Semmem, recipe: str) -> None:
    if mem.store.kind == "SQLite" and recipe == "hybrid":
        recipe = "lexical"
    now = datetime.now(UTC)
    mem.remember("The red heron eats the red fish.", id="past", valid_to=now - DAY, importance=1.0)
    mem.remember("The red heron eats the red fish, soon.", id="future", valid_from=now + DAY, importance=1.0)
    mem.remember("A heron of some colour eats, and much more happens on that long day.", id="now", importance=0.1)
    found = mem.recall("red heron eats red fish", recipe=recipe)
    assert next(hit.id for hit in found) == "now"
    assert {hit.id for hit in found} == {"past", "future", "now"}
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    for hit in found:
        assert sum(hit.components.values()) == pytest.approx(hit.score, abs=1e-12)
    assert "valid" in str(found.reach)
    mem.update("past", valid_to=None)
    assert next(hit.id for hit in mem.recall("red heron eats red fish", recipe=recipe)) == "past"


def test_get_returns_the_version_that_was_valid_then(mem: Semmem) -> None:
    mem.remember("Ana lives in Lisbon.", id="ana", created_at="2020-01-01")
    mem.update("ana", text="Ana lives in Porto.", valid_from="2022-01-01")
    mem.update("ana", text="Ana lives in Faro.", valid_from="2024-01-01", valid_to="2025-01-01")

    def then(at: str) -> str | None:
        try:
            return mem.get("ana", as_of=at).text.removeprefix("Ana lives in ")
        except NotFound:
            return None

    asked = ("2019-12-31", "2020-01-01", "2021-12-31", "2022-01-01", "2024-06-01", "2025-01-01")
    assert [then(at) for at in asked] == [None, "Lisbon.", "Lisbon.", "Porto.", "Faro.", None]
    assert mem.get("ana").text == "Ana lives in Faro."
    mem.forget("ana")
    assert then("2021-01-01") is None
    mem.restore_memory("ana")
    assert then("2021-01-01") == "Lisbon."
    with pytest.raises(InvalidInput, match="as_of must be an ISO 8601 time"):
        mem.get("ana", as_of="then")
