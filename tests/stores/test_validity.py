"""The times from when and until when a memory holds, over every store there is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.errors import InvalidInput, NotFound
from semmem.stores.postgres import upkeep as postgres_upkeep
from semmem.stores.sqlite import upkeep as sqlite_upkeep
from tests.stores.expiry import let_expire, texts

DAY = timedelta(days=1)


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
    assert mem.restore_memory("a") == rewritten


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
    with semmem.connect(f"sqlite://{tmp_path / 'notes.db'}", embedder="none") as mem:
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
