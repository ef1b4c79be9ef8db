"""Keys of a server: shown once, stored hashed, each for some namespaces and to read or to write."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from semmem.doors.http.keys import Keys, authorise
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
    assert text.rpartition("_")[2] not in stored
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
    with pytest.raises(InvalidInput, match="a key named laptop already"):
        keys.add("laptop")
    with pytest.raises(InvalidInput, match="name of each namespace"):
        keys.add("other", namespaces=[])
    with pytest.raises(InvalidInput, match="read or write"):
        keys.add("other", right="admin")  # type: ignore[arg-type]


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
