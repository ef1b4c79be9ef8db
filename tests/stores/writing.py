"""What no writing verb may do in any store: lose a memory, or change something and then raise. Properties.

A class of tests over a ``store`` fixture that a subclass gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from semmem.client.memory import Semmem
from semmem.embedders.hashing import Hashing
from semmem.extractors import Rules
from semmem.model.errors import InvalidInput
from semmem.model.exchange import Extraction
from semmem.model.store import Store
from semmem.model.types import Filters
from tests.stores.bringing import opened, texts

__all__ = ["WritingProperties"]

ANY = Filters()
BOOM = "boom"
IDS = ("a", "b", "c", "d", "e")
OWNED: Mapping[str, tuple[Mapping[str, Any], Callable[[Any], bool]]] = {
    "author": ({"authors": ["Ada"]}, lambda memory: memory.author == "Ada"),
    "session": ({"sessions": ["s"]}, lambda memory: memory.session == "s"),
    "tags": ({"tags": ["x", "y"]}, lambda memory: {"x", "y"} <= set(memory.tags)),
    "metadata": ({"metadata": {"file": "f"}}, lambda memory: memory.metadata.get("file") == "f"),
    "two": ({"authors": ["Ada"], "tags": ["x"]}, lambda memory: memory.author == "Ada" and "x" in memory.tags),
}
_often = settings(
    max_examples=30,
    deadline=None,
    database=None,  # the stores run the same function, and what one of them fails on is no example of another
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)


class Flaky(Hashing):
    """The hashing embedder, but for texts that hold "boom"."""

    def embed(self, texts: Sequence[str]) -> Any:
        """Return vectors, or fail."""
        if any(BOOM in text for text in texts):
            raise RuntimeError("the embedder is broken")
        return super().embed(texts)


class Moody(Rules):
    """The rules, but that they fail on texts that hold one of ``dislikes``."""

    dislikes: tuple[str, ...] = ()

    def extract(self, text: str, *more: Any, **named: Any) -> Extraction:
        """Return what the rules find, or fail."""
        if any(word in text for word in self.dislikes):
            raise RuntimeError("the extractor is broken")
        return super().extract(text, *more, **named)


def fields(text: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"id": st.sampled_from(IDS), "text": text},
        optional={
            "author": st.sampled_from(["Ada", "Bob"]),
            "session": st.sampled_from(["s", "t"]),
            "tags": st.lists(st.sampled_from(["x", "y", "z"]), unique=True),
            "metadata": st.sampled_from([{"file": "f"}, {"file": "g"}]),
            "title": st.just("Engine of Babbage"),
            "importance": st.sampled_from([0.2, 0.9]),
        },
    )


GOOD = st.sampled_from(
    ["Tea at four.", "Rum at five.", "It is said that parts of the Engine of babbage were kept.", "Gin. " * 400]
)
ANY_TEXT = GOOD | st.sampled_from(["", f"It goes {BOOM}.", "a\x00b"])
VECTORS = st.sampled_from([None, None, [1, 0, 0], [0, 3, 4], [1, 0], [0, 0, 0]])
STORED = st.lists(fields(GOOD), max_size=5, unique_by=lambda item: item["id"])
COMING = st.lists(
    st.tuples(fields(ANY_TEXT), VECTORS).map(lambda pair: pair[0] | ({"vector": pair[1]} if pair[1] else {})),
    min_size=1,
    max_size=6,
)


TEA = {"id": "a", "text": "Tea at four.", "author": "Ada"}
PARTS = {"id": "a", "text": "It is said that parts of the Engine of babbage were kept."}


def state(mem: Semmem) -> Any:
    """Return all that people could notice of a store: memories, counts, vectors, graph, and who fills it."""
    spaces = mem.store.namespaces()
    held = {space: [memory.as_dict() for memory in mem.list(namespace=space, limit=1000)] for space in spaces}
    stats = mem.stats()
    hashes = dict(mem.hashes()) if mem.store.kind == "PostgreSQL" else None
    return held, stats.memories, stats.parts, stats.vectors, hashes, mem.store.vectors and mem.store.vectors.embedder()


def fresh(store: Store, stored: Sequence[dict[str, Any]], fill: str) -> tuple[Semmem, Moody]:
    """Return a Semmem on the emptied store, filled anew: with vectors of an embedder, with given ones, or with none."""
    for space in store.namespaces():
        for memory in list(store.list(space, ANY, 1000, None)):
            store.forget(space, memory.id, ANY, dry_run=False)
    if store.vectors is not None:
        store.vectors.release_embedder()
    moody = Moody()
    dense = "dense" in store.capabilities
    mem = opened(store, embedder=Flaky() if fill == "embedder" else "none", extractor=moody)
    given = {"vector": [0, 1, 0]} if fill == "given" and dense else {}
    mem.remember_many([item | given for item in stored])
    return mem, moody


class WritingProperties:
    """Subclass it, and give a fixture ``store``: an empty store."""

    @_often
    @example([TEA], [{"id": "a", "text": f"It goes {BOOM}."}], "embedder", "author", True, False, "abort", 3)
    @example([TEA], [{"id": "a", "text": "Rum.", "vector": [1, 0]}], "given", "author", True, False, "skip", 3)
    @given(
        stored=STORED, coming=COMING, fill=st.sampled_from(["embedder", "given", "none"]),
        owned=st.sampled_from(sorted(OWNED)), replace=st.booleans(), prune=st.booleans(),
        on_error=st.sampled_from(["abort", "skip"]), batch_size=st.sampled_from([1, 2, 100]),
    )  # fmt: skip
    def test_whatever_is_brought_in_what_is_neither_pruned_nor_replaced_is_there_with_its_text(
        self, store: Store, stored: list[dict[str, Any]], coming: list[dict[str, Any]], fill: str, owned: str,
        replace: bool, prune: bool, on_error: Any, batch_size: int,
    ) -> None:  # fmt: skip
        mem, _ = fresh(store, stored, fill)
        before = {memory.id: memory for memory in mem.list(limit=1000)}
        filters, mine = OWNED[owned]
        offered = {(item["id"], item["text"]) for item in coming}
        try:
            report = mem.import_items(
                coming, owned=filters, replace=replace, prune=prune, on_error=on_error, batch_size=batch_size
            )
        except Exception:
            report = None
        after = texts(mem)
        gone = set(report.gone) if report is not None and prune else set()
        assert set(before) - set(after) == gone & set(before)
        assert all(mine(before[id]) for id in gone & set(before))
        changed = {id for id in before if id in after and after[id] != before[id].text}
        assert all(replace and mine(before[id]) and (id, after[id]) in offered for id in changed)
        if report is not None:
            assert report.read == len(coming)
            assert len(changed) <= report.replaced
            assert report.pruned == len(gone)

    @_often
    @example([], [{"id": "a", "text": "Tea.", "vector": [1, 0, 0]}, {"id": "b", "text": ""}], "none", "many", ())
    @example([], [{"id": "a", "text": "Tea.", "vector": [1, 0, 0]}, {"id": "b", "text": ""}], "none", "import", ())
    @example([], [{"id": "a", "text": f"It goes {BOOM}."}], "embedder", "one", ())
    @example([PARTS], [{"id": "b", "text": "Tea.", "title": "Engine of Babbage"}], "none", "one", ("parts",))
    @example([TEA], [{"id": "a", "text": f"It goes {BOOM}."}], "embedder", "import", ())
    @example([TEA], [{"id": "a", "text": f"It goes {BOOM}."}], "embedder", "update", ())
    @given(
        stored=STORED, coming=COMING, fill=st.sampled_from(["embedder", "given", "none"]),
        verb=st.sampled_from(["one", "many", "update", "stale", "import"]),
        dislikes=st.sampled_from([(), ("parts",), ("Rum",)]),
    )  # fmt: skip
    def test_a_writing_verb_that_raises_has_changed_nothing(
        self, store: Store, stored: list[dict[str, Any]], coming: list[dict[str, Any]], fill: str, verb: str,
        dislikes: tuple[str, ...],
    ) -> None:  # fmt: skip
        mem, moody = fresh(store, stored, fill)
        before = state(mem)
        moody.dislikes = dislikes
        do: Mapping[str, Callable[[], Any]] = {
            "one": lambda: mem.remember(**coming[0]),
            "many": lambda: mem.remember_many(coming, on_error="abort"),
            "update": lambda: mem.update(**coming[0]),
            "stale": lambda: mem.update(**coming[0], expected_version=2),
            "import": lambda: mem.import_items(coming, owned={"authors": ["Ada"]}, replace=True, on_error="abort"),
        }
        try:
            do[verb]()
        except Exception:
            assert state(mem) == before
        mem.maintain()  # nothing that happened keeps it from being done later
        moody.dislikes = ()
        mem.maintain()

    @pytest.mark.needs("dense")
    def test_a_vector_that_is_refused_leaves_the_store_to_every_embedder(self, store: Store) -> None:
        mem, _ = fresh(store, [{"id": "a", "text": "Tea."}], "none")
        for verb in (
            lambda: mem.remember("Rum.", id="a", vector=[1, 0, 0]),
            lambda: mem.remember_many([{"text": "Rum.", "vector": [1, 0, 0]}, {"text": ""}]),
            lambda: mem.import_items([{"text": "Rum.", "id": "a", "vector": [1, 0, 0]}], on_error="abort"),
        ):
            with pytest.raises(Exception, match=r"another text and vector|other content|empty"):
                verb()
            assert store.vectors.embedder() is None
        assert opened(store, embedder="hashing").remember("Gin.").version == 1
        assert store.vectors.embedder()["name"] == "hashing"  # type: ignore[index]
        assert np.isfinite(opened(store, embedder="hashing").recall("gin")[0].score)

    @_often
    @example([datetime(9999, 12, 31, 23, 59, 59, 999_999)])
    @example([datetime(1, 1, 1)])
    @given(times=st.lists(st.datetimes() | st.just(datetime.max) | st.just(datetime.min), min_size=1, max_size=4))
    def test_everything_is_everything_whatever_the_times_are(self, store: Store, times: list[datetime]) -> None:
        mem = opened(store)
        items = [{"id": str(n), "text": f"Note {n}.", "created_at": at} for n, at in enumerate(times)]
        mem.remember_many([*items, {"id": "now", "text": "Now."}])
        mem.remember("Elsewhere.", id="kept", namespace="other")
        assert len(list(mem.export())) == len(mem.list()) == len(times) + 1
        if "graph" in store.capabilities:
            assert sum(kind == "memory" for _, kind in mem.graph().nodes(data="kind")) == len(times) + 1
        assert mem.forget(everything=True, dry_run=True) == len(times) + 1
        assert mem.forget(everything=True) == len(times) + 1
        assert list(mem.list()) == []
        assert (mem.stats(namespace="default").memories, texts(mem, "other")) == (0, {"kept": "Elsewhere."})
        with pytest.raises(InvalidInput, match="everything is the whole namespace"):
            mem.forget("a", everything=True)
