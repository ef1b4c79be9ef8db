"""Encoders of more than 2,000 dimensions behind a real endpoint, through every verb that reads or moves vectors."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semmem
from semmem.interfaces.cli.app import run
from semmem.model.errors import InvalidInput
from tests.misbehaving import Handler, Server, serving

WORDS = ("The ferry leaves the pier at nine.", "A heron stands in the mill pond.", "Bread is baked before dawn.")


def vector(text: str, size: int) -> list[float]:
    """Return the sum of a random direction for each word, so that texts with common words are near each other."""
    directions = np.array([direction(word, size) for word in text.lower().rstrip(".?").split()])
    return [float(number) for number in directions.sum(axis=0)]


@cache
def direction(word: str, size: int) -> Any:
    """Return the direction of a word, the same at each call."""
    seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
    return np.random.default_rng(seed).normal(size=size)


def wide(handler: Handler) -> None:
    """Answer with vectors of as many dimensions as the name of the model says."""
    size = int(handler.asked["model"].removeprefix("wide-"))
    data = [{"index": i, "embedding": vector(text, size)} for i, text in enumerate(handler.asked["input"])]
    handler.reply(json.dumps({"data": data}).encode())


def connected(url: str, server: Server, size: int, **options: Any) -> Any:
    given: dict[str, Any] = {"embedder": "endpoint", "embedder_url": server.url, "embedder_model": f"wide-{size}"}
    return semmem.connect(url, **{**given, **options})


@pytest.fixture(params=["sqlite", "postgres"])
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """The URLs of two empty stores of one kind."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path}/one.db", f"sqlite:{tmp_path}/two.db"
    return request.getfixturevalue("store_url"), request.getfixturevalue("other_url")


@pytest.mark.parametrize("size", [3_072, 4_096])
def test_a_wide_encoder_fills_a_store_and_its_vectors_are_exported(urls: tuple[str, str], size: int) -> None:
    with serving(wide) as server:
        with connected(urls[0], server, size) as mem:
            mem.remember_many({"id": str(n), "text": text} for n, text in enumerate(WORDS))
            found = mem.recall("when does the ferry leave the pier", recipe="dense")
            assert (found[0].memory.id, found.degraded) == ("0", {})
            rows = list(mem.export(vectors=True))
        server.received.clear()
        with connected(urls[1], server, size) as mem:
            assert mem.import_items(rows).remembered == 3
            assert [body for _, _, body in server.received if {*body["input"]} & {*WORDS}] == []  # vectors come along
            assert mem.recall("a heron stands", recipe="dense")[0].memory.id == "1"
            assert list(mem.export(vectors=True)) == rows


def test_wide_vectors_are_given_and_asked_for(urls: tuple[str, str]) -> None:
    with semmem.connect(urls[0], embedder="none") as mem:
        mem.remember_many({"id": str(n), "text": text, "vector": vector(text, 4_096)} for n, text in enumerate(WORDS))
        found = mem.recall("a question", vector=vector("a heron stands", 4_096), recipe="dense")
        assert (found[0].memory.id, found.degraded) == ("1", {})
        assert {len(row["vector"]) for row in mem.export(vectors=True)} == {4_096}


@pytest.mark.parametrize("size", [2_560, 4_096])
def test_a_rebuild_goes_to_a_wide_encoder_and_a_copy_keeps_it(
    urls: tuple[str, str], size: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with semmem.connect(urls[0], embedder="hashing") as mem:
        mem.remember_many({"id": str(n), "text": text} for n, text in enumerate(WORDS))
    with serving(wide) as server:
        monkeypatch.setenv("SEMMEM_EMBEDDER_URL", server.url)
        monkeypatch.setenv("SEMMEM_EMBEDDER_MODEL", f"wide-{size}")
        assert run(["rebuild", "--embedder", "endpoint", "--url", urls[0]]) == 0
        capfd.readouterr()
        assert run(["doctor", "--url", urls[0], "--json"]) == 0
        found = {one["what"]: one for one in json.loads(capfd.readouterr().out)["findings"]}
        assert f"endpoint:wide-{size}" in found["embedding model"]["detail"]
        assert found["vectors"]["detail"] == f"3, made by endpoint:wide-{size}"
        with semmem.connect(urls[0]) as mem:
            assert mem.recall("the mill pond", recipe="dense")[0].memory.id == "1"
        if urls[0].startswith("postgresql"):
            assert semmem.copy(*urls).memories == 3
            with semmem.connect(urls[1]) as mem:
                assert mem.recall("the mill pond", recipe="dense")[0].memory.id == "1"


def test_more_dimensions_than_postgresql_can_hold_are_refused_before_anything_is_stored(tmp_path: Path) -> None:
    says = "The dimensions of the embedder endpoint:wide-16001 must be a whole number from 1 to 16,000, not 16001"
    with serving(wide) as server, connected(f"sqlite:{tmp_path}/notes.db", server, 16_001) as mem:
        with pytest.raises(InvalidInput, match=says):
            mem.remember(WORDS[0])
        assert mem.stats().memories == 0
