"""Concepts are made anew from the texts, and the work goes on where it was interrupted."""

from __future__ import annotations

import random
import shlex
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import semmem
from semmem.embedders.hashing import Hashing
from semmem.extractors import Rules
from semmem.interfaces.cli.app import run
from semmem.write import rebuild
from tests.stores.audit import sql
from tests.stores.test_graph_hash import emptied
from tests.write.other_embedder import Other, notes, semmem_json

pytestmark = pytest.mark.usefixtures("small_batches")


# ---------------------------------------------------------------------- concepts


def people(count: int) -> list[dict[str, Any]]:
    names = ("Ada Lovelace", "Charles Babbage", "Mary Somerville", "Ada", "Lovelace")
    return [
        {"id": f"p{n}", "text": f"{names[n % 5]} met {names[(n * 3 + 1) % 5]} in {n}", "created_at": "2026-01-31",
         "title": names[n % 5] if n % 4 == 0 else None}
        for n in range(count)
    ]  # fmt: skip


class Nothing(Rules):
    """An extractor that finds the words and no name."""

    name = "nothing"

    def extract(self, text: str, title: str | None = None) -> Any:
        return super().extract(text.lower(), None)


def test_reading_everything_again_goes_on_where_it_was_interrupted(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild, "BATCH", 10)
    with semmem.connect(store_url, embedder="none", extractor=Nothing()) as mem:
        for namespace in ("a", "b"):
            mem.remember_many(people(35), namespace=namespace)
        poor = mem.graph_hash(namespace="a")

    def until(most: int) -> Callable[[int], None]:
        def progress(done: int) -> None:
            if done >= most:
                raise KeyboardInterrupt

        return progress

    with semmem.connect(store_url, embedder="none") as mem:
        with pytest.raises(KeyboardInterrupt):
            mem.rebuild(extract=True, progress=until(20))
        found = mem.recall("Who met Babbage?", namespace=["a", "b"])
        assert found.degraded.keys() == {"dense"}
        mem.remember("The lovelace of the story.", id="late", namespace="a", title="Met", created_at="2026-01-31")
        with pytest.raises(KeyboardInterrupt):
            mem.rebuild(extract=True, progress=until(56))  # 36 in a, the first 20 in b
        seen: list[int] = []
        done = mem.rebuild(extract=True, progress=seen.append)
        assert (done.skipped, done.read, seen) == (56, 15, [66, 71])
        assert [key for (key,) in sql(mem, "SELECT key FROM meta")] == []
        mem.remember_many(people(35), namespace="fresh", batch_size=3)
        assert mem.graph_hash(namespace="b") != poor
        assert mem.graph_hash(namespace="b") == mem.graph_hash(namespace="fresh")
        mem.remember("The lovelace of the story.", id="late", namespace="fresh", title="Met", created_at="2026-01-31")
        mem.maintain()
        assert mem.graph_hash(namespace="a") == mem.graph_hash(namespace="fresh")
        with pytest.raises(KeyboardInterrupt):
            mem.rebuild(extract=True, progress=until(10))
    with semmem.connect(store_url, embedder="none", extractor=Nothing()) as mem:
        done = mem.rebuild(extract=True)
        assert (done.dropped, done.skipped, done.read) == ("rules", 0, 107)
        assert mem.graph_hash(namespace="b") == poor


@pytest.mark.slow
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 999), batch_size=st.integers(1, 9))
def test_the_same_memories_in_any_order_have_the_same_hash_after_a_rebuild(
    store_url: str, seed: int, batch_size: int
) -> None:
    items = people(20)
    shuffled = items.copy()
    random.Random(seed).shuffle(shuffled)
    with semmem.connect(emptied(store_url), embedder="none", extractor=Nothing(), pool_size=2) as mem:
        mem.remember_many(shuffled, namespace="one", batch_size=batch_size)
    with semmem.connect(store_url, embedder="none", pool_size=2) as mem:
        mem.remember_many(items, namespace="two")
        mem.maintain()
        fresh = mem.graph_hash(namespace="two")
        assert mem.graph_hash(namespace="one") != fresh
        assert mem.rebuild(extract=True).changed >= 20
        assert mem.graph_hash(namespace="one") == mem.graph_hash(namespace="two") == fresh


# ---------------------------------------------------------------------- on the command line


def test_the_command_tells_what_it_did_and_the_hash_of_each_namespace(
    store_url: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild, "BATCH", 4)
    with semmem.connect(store_url, embedder=Other()) as mem:
        mem.remember_many(notes(10))
        mem.remember_many(people(5), namespace="another")
        mem.maintain()
        hashes = {name: mem.graph_hash(namespace=name) for name in ("another", "default")}
    embed, calls = Hashing.embed, list[int]()

    def interrupted(self: Hashing, texts: Sequence[str]) -> Any:
        calls.append(len(texts))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return embed(self, texts)

    monkeypatch.setattr(Hashing, "embed", interrupted)
    monkeypatch.setenv("SEMMEM_URL", store_url)
    assert run(shlex.split("rebuild --embedder hashing")) == 130
    out, err = capfd.readouterr()
    assert (out, err) == ("", "Stopped. The work so far (8) is stored; the same command continues from there.\n")
    assert run(shlex.split("rebuild --embedder hashing")) == 0
    out, err = capfd.readouterr()
    assert out.splitlines() == [
        "Made 7 vectors with hashing. 8 were made by a call that was interrupted.",
        f"{hashes['another']}  another",
        f"{hashes['default']}  default",
    ]
    assert err == ""
    assert run(shlex.split("rebuild --extract --json")) == 0
    told = semmem_json(capfd)
    assert told == {"embedded": 0, "kept": 0, "dropped": None, "read": 15, "skipped": 0, "changed": 0,
                    "embedder": "hashing", "graph_hashes": hashes}  # fmt: skip
    assert list(told["graph_hashes"]) == ["another", "default"]
    assert run(shlex.split("rebuild --extract --embedder hashing")) == 2
    assert "one after the other" in capfd.readouterr().err
