"""Keys of a server: shown once, stored hashed, each for some namespaces and to read or to write."""

from __future__ import annotations

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from semmem.interfaces.http.keys import Key, Keys, Right, authorise, principal
from semmem.model.errors import AccessDenied, InvalidInput, KeyRequired, NotFound


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path / "settings" / "keys.json")


def test_a_key_is_found_by_its_text_and_the_file_holds_no_secret(keys: Keys) -> None:
    made, text = keys.add("laptop", right="write", namespaces=["team", "team", "notes"])
    assert made.namespaces == ("team", "notes")
    assert keys.find(f"Bearer {text}") == made
    assert keys.find(f"bearer  {text} ") == made
    stored = keys.file.read_text(encoding="utf-8")
    assert text.split("_", 2)[2] not in stored
    assert stat.S_IMODE(keys.file.stat().st_mode) == 0o600


def test_a_key_that_is_not_known_is_refused_and_none_is_wanted_where_there_are_none(keys: Keys) -> None:
    assert not keys
    assert keys.find(None) is None
    assert keys.find("Bearer whatever") is None
    _, text = keys.add("laptop")
    assert keys
    id, secret = text.split("_")[1], text.split("_", 2)[2]
    for wrong in (None, "", text, "Bearer", "Basic " + text, "Bearer " + text[:-1], f"Bearer semmem_{id}_{'A' * 43}"):
        with pytest.raises(KeyRequired) as raised:
            keys.find(wrong)
        assert secret not in str(raised.value)


def test_a_key_that_was_removed_is_refused_by_whoever_has_read_it(keys: Keys) -> None:
    _, text = keys.add("laptop")
    keys.add("other")
    reader = Keys(keys.file)
    assert reader.find(f"Bearer {text}") is not None
    assert keys.remove("laptop").name == "laptop"
    with pytest.raises(KeyRequired):
        reader.find(f"Bearer {text}")
    assert [key.name for key in reader.list()] == ["other"]
    with pytest.raises(NotFound, match="no key named 'laptop'; there are other"):
        keys.remove("laptop")


def test_many_who_add_a_key_at_once_all_have_theirs(keys: Keys) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: Keys(keys.file).add(f"key{n}"), range(16)))
    assert len(keys.list()) == 16


@pytest.mark.parametrize("name", ["", "a b", "x" * 101, "ä\n", None])
def test_a_name_that_cannot_be_shown_in_a_list_is_refused(keys: Keys, name: str) -> None:
    with pytest.raises(InvalidInput, match="name of a key"):
        keys.add(name)


def test_a_second_key_of_one_name_or_for_no_namespace_is_refused(keys: Keys) -> None:
    keys.add("laptop")
    with pytest.raises(InvalidInput, match="A key named laptop already exists"):
        keys.add("laptop")
    with pytest.raises(InvalidInput, match="name of each namespace"):
        keys.add("other", namespaces=[])
    with pytest.raises(InvalidInput, match="read, write or admin"):
        keys.add("other", right="rule")  # type: ignore[arg-type]


def test_a_broken_file_lets_nobody_in(keys: Keys) -> None:
    keys.add("laptop")
    row = json.loads(keys.file.read_text(encoding="utf-8"))["keys"][0]
    changes: list[dict[str, object]] = [
        {"digest": 5}, {"x": 1}, {"namespaces": "team"}, {"namespaces": []}, {"right": "all"},
    ]  # fmt: skip
    damaged = [{"keys": 5}, *({"keys": [one]} for one in (5, {"name": "x"}, *(row | change for change in changes)))]
    for broken in ("", "[]", "{", "[" * 100_000, *map(json.dumps, damaged)):
        keys.file.write_text(broken, encoding="utf-8")
        with pytest.raises(
            InvalidInput, match=r"is damaged and cannot be used; put an earlier copy in its place, or re"
        ):
            keys.find("Bearer x")
        with pytest.raises(InvalidInput, match="is damaged"):
            bool(keys)


@pytest.mark.parametrize(
    ("right", "namespaces", "asked", "where", "allowed"),
    [
        ("read", None, "read", ["any"], True),
        ("read", None, "read", None, True),
        ("read", None, "write", ["any"], False),
        ("write", None, "write", None, True),
        ("write", ["a", "b"], "read", ["a"], True),
        ("write", ["a", "b"], "write", ["a", "b"], True),
        ("write", ["a", "b"], "write", ["a", "c"], False),
        ("read", ["a"], "read", None, False),
    ],
)
def test_a_key_allows_what_it_was_made_for(
    keys: Keys, right: str, namespaces: list[str] | None, asked: str, where: list[str] | None, allowed: bool
) -> None:
    key, _ = keys.add("laptop", right=right, namespaces=namespaces)  # type: ignore[arg-type]
    authorise(None, "write", None)
    if allowed:
        authorise(key, asked, where)  # type: ignore[arg-type]
        return
    with pytest.raises(AccessDenied) as raised:
        authorise(key, asked, where)  # type: ignore[arg-type]
    assert not isinstance(raised.value, KeyRequired)
    assert "laptop" in str(raised.value)


def test_a_file_that_changed_is_read_again_where_its_size_and_one_other_mark_are_the_same(keys: Keys) -> None:
    keys.add("one")
    status, before = keys.file.stat(), keys.file.read_bytes()
    assert [key.name for key in keys.list()] == ["one"]
    keys.file.write_bytes(before.replace(b'"one"', b'"two"'))  # the same inode
    os.utime(keys.file, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert [key.name for key in keys.list()] == ["two"]
    other = keys.file.with_name("other.json")
    other.write_bytes(before.replace(b'"one"', b'"six"'))
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns + 1))  # the same time
    other.replace(keys.file)
    assert [key.name for key in keys.list()] == ["six"]


def test_a_right_holds_what_is_below_it() -> None:
    rights: list[Right] = ["read", "write", "admin"]
    for place, right in enumerate(rights):
        key = Key("laptop", "1", "", right, None, "")
        assert [key.allows(wanted, None) for wanted in rights] == [n <= place for n in range(3)]
    with pytest.raises(AccessDenied, match="may only read and write, and this needs the right admin"):
        authorise(Key("laptop", "1", "", "write", None, ""), "admin", None)
    with pytest.raises(AccessDenied, match="works only in these namespaces: team"):
        authorise(Key("laptop", "1", "", "admin", ("team",), ""), "admin", None)


def test_a_key_of_an_earlier_version_is_read(keys: Keys) -> None:
    _, text = keys.add("laptop", right="write")
    rows = json.loads(keys.file.read_text(encoding="utf-8"))
    for name in ("expires_at", "principal"):
        del rows["keys"][0][name]
    keys.file.write_text(json.dumps(rows), encoding="utf-8")
    found = Keys(keys.file).find(f"Bearer {text}")
    assert found is not None
    assert (found.right, found.expires_at, principal(found)) == ("write", None, found.id)


def two_hours_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the clock of keys forward."""
    monkeypatch.setattr("semmem.interfaces.http.keys._now", lambda: datetime.now(UTC) + timedelta(hours=2))


def test_a_key_is_refused_when_its_time_is_over(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    key, text = keys.add("laptop", lasting=timedelta(hours=1))
    assert keys.find(f"Bearer {text}") == key
    two_hours_later(monkeypatch)
    with pytest.raises(KeyRequired, match="The key laptop expired at "):
        keys.find(f"Bearer {text}")
    with pytest.raises(KeyRequired, match="requires a key"):  # it does not open the server
        keys.find(None)
    with pytest.raises(InvalidInput, match="has expired"):
        keys.rotate("laptop", overlap=timedelta(days=1))


def test_of_a_key_that_is_rotated_the_old_one_goes_on_for_the_overlap(
    keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, old_text = keys.add("laptop", right="write", namespaces=["team"])
    old, new, text = keys.rotate("laptop", overlap=timedelta(hours=1), lasting=timedelta(days=90))
    assert (old.id, new.right, new.namespaces, principal(new)) == (first.id, "write", ("team",), principal(first))
    assert [key.id for key in keys.list()] == [new.id, old.id]
    found = [keys.find(f"Bearer {one}") for one in (old_text, text)]
    assert [one.id for one in found if one] == [old.id, new.id]
    two_hours_later(monkeypatch)
    with pytest.raises(KeyRequired, match="expired"):
        keys.find(f"Bearer {old_text}")
    _, third, last = keys.rotate("laptop", overlap=timedelta(0))
    assert [key.id for key in keys.list()] == [third.id]
    assert keys.find(f"Bearer {last}") == third
    with pytest.raises(NotFound, match="no key named 'other'; there are laptop"):
        keys.rotate("other", overlap=timedelta(0))
