"""`remember` names the older memories that a new one may outdate: those that the rules link, then the nearest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.model.errors import StoreError
from semmem.stores.postgres import nearest


@pytest.fixture
def mem(store_url: str) -> Iterator[semmem.Semmem]:
    with semmem.connect(store_url, embedder="none", pool_size=2) as opened:
        yield opened


def named(memory: semmem.Memory) -> list[str]:
    return [one.id for one in memory.older]


@pytest.mark.parametrize("index_from", [10_000, 1])
def test_the_two_nearest_older_memories_are_named_nearest_first(
    mem: semmem.Semmem, monkeypatch: pytest.MonkeyPatch, index_from: int
) -> None:
    monkeypatch.setattr(nearest, "INDEX_FROM", index_from)
    mem.remember("Ada keeps owls.", id="owls", vector=[1, 0, 0])
    mem.remember("Ada keeps hens.", id="hens", vector=[4, 3, 0])
    mem.remember("Ada keeps bees.", id="bees", vector=[3, 4, 0])
    mem.remember("Ada rows.", id="rows", vector=[0, 0, 1])
    mem.remember("Ada keeps cats.", namespace="other", id="cats", vector=[1, 0, 0])
    new = mem.remember("Ada keeps no birds.", id="none", vector=[5, 1, 0], created_at="2040-01-01")
    assert named(new) == ["owls", "hens"]
    assert [one.text for one in new.older] == ["Ada keeps owls.", "Ada keeps hens."]
    assert new.older[0].created_at == mem.get("owls").created_at
    assert mem.get("none") == new
    assert mem.get("none").older == ()


def test_a_memory_that_is_further_away_newer_expired_or_the_same_one_is_not_named(mem: semmem.Semmem) -> None:
    mem.remember("Ada keeps a boat.", vector=[49, 87, 0])  # a cosine of .491
    mem.remember("Ada keeps owls.", vector=[1, 0, 0], created_at="2041-01-01")
    mem.remember("Ada keeps hens.", vector=[1, 0, 0], expires_at="2039-01-01")
    mem.store.run(lambda c: c.execute("UPDATE memory SET expires_at = now() WHERE expires_at IS NOT NULL"))  # type: ignore[attr-defined]
    assert mem.remember("Ada keeps cats.", vector=[1, 0, 0], created_at="2040-01-01").older == ()
    mem.remember("Ada keeps a dog.", id="dog", vector=[51, 86, 0], created_at="2040-01-01")  # a cosine of .510
    again = mem.remember("Ada keeps bees.", id="bees", vector=[1, 0, 0], created_at="2040-01-02")
    assert [one.text for one in again.older] == ["Ada keeps cats.", "Ada keeps a dog."]
    assert mem.remember("Ada keeps bees.", id="bees", vector=[1, 0, 0], created_at="2040-01-02").older == ()


def test_a_long_memory_is_named_once_by_its_own_id_with_the_beginning_of_the_nearest_part(store_url: str) -> None:
    with semmem.connect(store_url, embedder="hashing") as mem:
        text = " ".join(f"The {word} of the old mill in Norrbeck is kept by Ada." for word in ("wheel", "door") * 60)
        mem.remember(text, id="mill")
        new = mem.remember("The wheel of the old mill in Norrbeck is kept by Bo.", id="new")
        (one,) = new.older
        assert one.id == "mill"
        assert (len(one.text), one.text[-1]) == (120, "…")


@pytest.mark.parametrize("kind", ["postgres", "sqlite"])
def test_what_the_rules_link_stands_first_also_where_there_are_no_vectors(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = request.getfixturevalue("store_url") if kind == "postgres" else f"sqlite:{tmp_path}/notes.db"
    with semmem.connect(url, embedder="none") as mem:
        mem.remember("Ana lives in Lisbon.", id="lisbon")
        mem.remember("The gate is red.", id="gate")
        new = mem.remember("Ana moved to Porto.", id="porto")
        assert (new.contradicts, named(new)) == (("lisbon",), ["lisbon"])


def test_a_turn_a_sensitive_memory_many_at_once_and_the_setting_name_none(store_url: str) -> None:
    near: dict[str, Any] = {"vector": [1, 0]}
    with semmem.connect(store_url, embedder="none") as mem:
        mem.remember("Ada keeps owls.", **near)
        assert named(mem.remember("Ada keeps hens.", **near)) != []
        assert mem.remember("Ada keeps cats.", session="s", position=1, **near).older == ()
        assert mem.remember("Ada keeps bees.", sensitive=True).older == ()
    for off in ({"name_older": False}, {"on_contradiction": "ignore"}):
        with semmem.connect(store_url, embedder="none", **off) as mem:
            assert mem.remember(f"Ada keeps {off}.", **near).older == ()


def test_the_turns_of_a_conversation_are_not_named_however_near_they_are(mem: semmem.Semmem) -> None:
    for n in range(20):
        mem.remember(f"Ada keeps {n} owls.", session="s", position=n, vector=[1, 0, 0])
    mem.remember("Ada keeps hens.", id="hens", vector=[4, 3, 0])
    assert named(mem.remember("Ada keeps no birds.", vector=[5, 1, 0])) == ["hens"]


def test_a_store_that_cannot_be_asked_names_none_and_has_the_memory(
    mem: semmem.Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.remember("Ada keeps owls.", vector=[1, 0])

    def refuses(*_: Any, **__: Any) -> Any:
        raise StoreError("No.")

    monkeypatch.setattr(type(mem.store.vectors), "nearest_memories", refuses)
    assert mem.remember("Ada keeps hens.", id="hens", vector=[1, 0]).older == ()
    assert mem.get("hens").text == "Ada keeps hens."
