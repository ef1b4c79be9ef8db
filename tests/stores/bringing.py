"""What bringing in does in every store: a class of tests over a ``store`` fixture that a subclass gives."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from semmem.client.connection import Connection
from semmem.client.memory import Semmem, StoreSemmem
from semmem.config import Settings
from semmem.embedders.hashing import Hashing
from semmem.extractors import Rules
from semmem.model.errors import Conflict, InvalidInput, NotFound
from semmem.model.recipe import recipe as find_recipe
from semmem.model.store import Store

__all__ = ["BringingConformance", "opened", "texts"]

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def opened(store: Store, **how: Any) -> Semmem:
    """Return a Semmem on ``store``; by default without an embedder."""
    given: dict[str, Any] = {"embedder": "none", "extractor": "rules"} | how
    return StoreSemmem(Connection(store, recipe=find_recipe("default"), settings=Settings.load(), **given))


def texts(mem: Semmem, namespace: str = "default") -> dict[str, str]:
    return {memory.id: memory.text for memory in mem.list(namespace=namespace, limit=1000)}


class BringingConformance:
    """Subclass it, and give a fixture ``store``: an empty store."""

    @pytest.fixture(autouse=True)
    def _declared(self, request: pytest.FixtureRequest, store: Store) -> None:
        for mark in request.node.iter_markers("needs"):
            if mark.args[0] not in store.capabilities:
                pytest.skip(f"a {store.kind} store does not declare the capability {mark.args[0]!r}")

    @pytest.fixture
    def mem(self, store: Store) -> Iterator[Semmem]:
        """A Semmem on the empty store; the store is closed by its own fixture."""
        return opened(store)

    @pytest.mark.parametrize(
        ("owned", "field"),
        [
            ({"authors": "Ada"}, {"author": "Ada"}),
            ({"sessions": "s1"}, {"session": "s1"}),
            ({"tags": ["x", "y"]}, {"tags": ["y", "x", "z"]}),
            ({"metadata": {"from": {"file": "a"}}}, {"metadata": {"from": {"file": "a", "line": 3}}}),
            ({"created_after": NOON, "created_before": "2026-03-02"}, {"created_at": NOON}),
        ],
        ids=["author", "session", "tags", "metadata", "time"],
    )
    def test_only_what_the_filters_of_owned_match_is_replaced(
        self, mem: Semmem, owned: dict[str, Any], field: dict[str, Any]
    ) -> None:
        mem.remember("By hand.", id="hand", author="Bob", session="s2", tags=["x"], created_at="2026-02-01")
        mem.remember("From the source.", id="source", **field)
        items = [{"id": id, "text": "Changed."} for id in ("hand", "source")]
        report = mem.import_items(items, owned=owned, replace=True)
        assert texts(mem) == {"hand": "By hand.", "source": "Changed."}
        assert (report.replaced, [row.id for row in report.rejected]) == (1, ["hand"])

    def test_a_bad_item_takes_no_links_from_an_item_of_the_same_id_elsewhere(self, mem: Semmem) -> None:
        links = [{"type": "see-also", "to": "other"}]
        items = [
            {"id": "one", "text": "", "namespace": "here", "links": links},
            {"id": "one", "text": "one", "namespace": "there", "links": links},
            {"id": "other", "text": "two", "namespace": "there"},
        ]
        report = mem.import_items(items)
        assert ([row.position for row in report.rejected], report.linked, report.unlinked) == ([0], 1, ())
        assert [link.key for link in mem.links("one", namespace="there")] == [("one", "see-also", "other")]

    def test_what_is_brought_in_without_an_id_is_not_pruned_by_the_same_call(self, mem: Semmem) -> None:
        owned = {"tags": ["own"]}
        items = [{"id": "1", "text": "one", "tags": ["own"]}, {"text": "only copy", "tags": ["own"]}]
        report = mem.import_items(items, owned=owned, prune=True)
        assert (report.remembered, report.gone, report.pruned) == (2, (), 0)
        assert set(texts(mem).values()) == {"one", "only copy"}
        report = mem.import_items([{"text": "another", "tags": ["own"]}], owned=owned, prune=True)
        assert (report.remembered, report.pruned) == (1, 2)
        assert set(texts(mem).values()) == {"another"}

    def test_what_another_import_of_the_source_stores_meanwhile_is_not_pruned(self, mem: Semmem) -> None:
        owned = {"tags": ["own"]}
        one, two, old = ({"id": id, "text": f"Text {id}.", "tags": ["own"]} for id in ("one", "two", "old"))
        mem.import_items([one, old], owned=owned)
        mem.remember("Dated.", id="dated", tags=["own"])

        def source() -> Iterator[dict[str, Any]]:
            mem.import_items([one, two, old], owned=owned)  # of a newer state than the one read here
            mem.forget("dated")
            yield one

        report = mem.import_items(source(), owned=owned, prune=True)
        assert (report.gone, report.pruned, set(texts(mem))) == (("old",), 1, {"one", "two"})
        report = mem.import_items([one], owned=owned, prune=True)
        assert (report.gone, set(texts(mem))) == (("two",), {"one"})

    def test_a_namespace_that_is_no_string_makes_a_bad_row_and_no_more(self, mem: Semmem) -> None:
        items = [{"id": "1", "text": "one"}, {"id": "2", "text": "two", "namespace": ["a"]}]
        report = mem.import_items(items, on_error="skip")
        assert (report.remembered, [row.reason for row in report.rejected]) == (
            1,
            ["namespace must be a string, not list; write str(…) around it."],
        )

    def test_the_rows_of_an_export_are_brought_in_as_they_are(self, mem: Semmem) -> None:
        mem.remember("Tea.", id="a", namespace="team", metadata={"k": 1}, created_at=NOON)
        mem.remember("Rum.", id="b", namespace="team")
        before = texts(mem, "team")
        rows = list(mem.export(namespace="team"))
        report = mem.import_items(rows, namespace="team2")
        assert (report.unchanged, report.rejected) == (2, ())  # each has the namespace it came from
        moved = [{name: row[name] for name in row if name != "namespace"} for row in rows]
        assert mem.import_items(moved, namespace="team2").remembered == 2
        assert texts(mem, "team") == texts(mem, "team2") == before
        assert mem.get("a", namespace="team2").metadata == {"k": 1}

    def test_forget_takes_no_word_for_a_yes_or_a_no(self, mem: Semmem) -> None:
        mem.remember("Tea.", id="a")
        for given in ({"everything": "no"}, {"id": "a", "dry_run": 0}, {"id": "a", "hard": "yes"}):
            with pytest.raises(InvalidInput, match=r"must be True or False, not .*; nothing was forgotten"):
                mem.forget(**given)
        assert texts(mem) == {"a": "Tea."}

    @pytest.mark.needs("dense")
    @pytest.mark.parametrize("number", [float("nan"), 0.0, float("inf"), 1e30])
    def test_a_vector_that_travels_and_is_none_is_made_anew(self, store: Store, number: float) -> None:
        mem = opened(store, embedder=Hashing())
        mem.remember("Tea.", id="a")
        mem.remember("Rum.", id="b")
        names = [("default", id) for id in "ab"]
        before = store.vectors.stored_vectors(names)
        rows = list(mem.export(vectors=True))
        raw = base64.b64encode(np.full(Hashing().dimensions, number, dtype="<f4").tobytes()).decode()
        rows[0]["vectors"] = dict.fromkeys(rows[0]["vectors"], raw)
        mem.forget(everything=True)
        assert mem.import_items(rows, on_error="abort").remembered == 2
        after = store.vectors.stored_vectors(names)
        assert all(np.array_equal(before[key], after[key]) for key in before)

    # ------------------------------------------------------------------ update

    def test_an_update_changes_what_is_given_and_keeps_the_rest(self, mem: Semmem) -> None:
        before = mem.remember(
            "Tea at four.", id="a", title="Tea", author="Ada", tags=["x"], metadata={"k": 1}, created_at=NOON
        )
        mem.remember("Rum at five.", id="b")
        after = mem.update("a", text="Gin at six.", title=None, importance=0.9)
        assert after == replace(
            before, text="Gin at six.", title=None, importance=0.9, version=2, updated_at=after.updated_at
        )
        assert after.updated_at is not None
        assert after.updated_at > NOON
        assert mem.get("a") == after
        assert [hit.memory.id for hit in mem.recall("gin")] == ["a"]
        assert [hit.memory.id for hit in mem.recall("tea", recipe="lexical")] == []
        assert mem.update("a", tags=["y", "z"], metadata={}).tags == ("y", "z")
        assert (mem.get("a").version, mem.get("a").metadata, mem.stats().memories) == (3, {}, 2)

    def test_an_update_that_changes_nothing_writes_nothing(self, mem: Semmem) -> None:
        before = mem.remember("Tea at four.", id="a", title="Tea", metadata={"k": [1, 2.5]})
        assert mem.update("a") == before
        assert mem.update("a", text="Tea at four.", title="Tea", metadata={"k": [1, 2.5]}, expected_version=1) == before
        assert mem.get("a") == before

    def test_a_version_that_is_not_the_expected_one_is_a_conflict_with_both_texts(self, mem: Semmem) -> None:
        mem.remember("Tea at four.", id="a")
        mem.update("a", text="Rum at five.")
        with pytest.raises(Conflict, match=r"at version 2, not 1: its text is now 'Rum.*', and yours is 'Gin at six"):
            mem.update("a", text="Gin at six.", expected_version=1)
        assert mem.get("a").text == "Rum at five."
        assert mem.update("a", text="Gin at six.", expected_version=2).version == 3

    def test_an_update_that_cannot_be_is_refused_in_one_sentence(self, mem: Semmem) -> None:
        before = mem.remember("Tea at four.", id="a")
        with pytest.raises(NotFound, match="no memory 'b' in namespace 'default'; nothing was changed"):
            mem.update("b", text="Rum.")
        for changes, says in [
            ({"colour": "red"}, "'colour' cannot be changed; update takes text, title"),
            ({"text": " "}, "The text is empty"),
            ({"importance": 2}, "importance must be a number from 0 to 1"),
            ({"expected_version": "1"}, "expected_version must be a whole number"),
        ]:
            with pytest.raises(InvalidInput, match=says):
                mem.update("a", **changes)
        assert mem.get("a") == before

    def test_what_was_updated_is_remembered_again_without_a_change_or_a_conflict(self, mem: Semmem) -> None:
        mem.remember("Tea at four.", id="a")
        after = mem.update("a", title="Tea")
        assert mem.remember("Tea at four.", id="a", title="Tea") == after
        with pytest.raises(Conflict):
            mem.remember("Tea at four.", id="a")

    def test_a_long_memory_that_becomes_short_leaves_no_part_behind(self, mem: Semmem) -> None:
        mem.remember(" ".join(f"Sentence number {n} is here." for n in range(200)), id="a")
        assert mem.stats().parts > 3
        mem.update("a", text="Tea at four.")
        assert (mem.stats().memories, mem.stats().parts) == (1, 0)
        mem.update("a", text=" ".join(f"Sentence number {n} is here." for n in range(200)))
        assert mem.stats().parts > 3
        assert mem.recall("sentence number 77", recipe="lexical")[0].memory.text.startswith("Sentence number 0")

    @pytest.mark.needs("dense")
    def test_an_update_embeds_a_new_text_and_nothing_else(self, store: Store) -> None:
        class Counting(Hashing):
            embedded = 0

            def embed(self, texts: Any) -> Any:
                self.embedded += len(texts)
                return super().embed(texts)

        counting = Counting()
        mem = opened(store, embedder=counting)
        mem.remember("Tea at four.", id="a")
        mem.update("a", importance=0.9)
        assert (counting.embedded, mem.stats().vectors) == (1, 1)
        mem.update("a", text="Rum at five.")
        assert (counting.embedded, mem.stats().vectors) == (2, 1)
        names = [("default", "a")]
        assert store.vectors.stored_vectors(names)["default", "a", 0] == pytest.approx(
            Hashing().embed(["Rum at five."])[0]
        )

    @pytest.mark.needs("dense")
    def test_a_given_vector_stays_with_its_text_and_another_one_is_a_change(self, mem: Semmem) -> None:
        given = {"id": "a", "text": "Tea at four."}
        mem.remember(**given, vector=[1, 0, 0])
        assert mem.remember(**given, vector=[2, 0, 0]).version == 1  # the same direction
        with pytest.raises(Conflict):
            mem.remember(**given, vector=[0, 1, 0])
        assert [row.id for row in mem.import_items([given | {"vector": [0, 1, 0]}]).rejected] == ["a"]
        assert mem.update("a", importance=0.9).version == 2
        assert mem.recall("x", vector=[1, 0, 0], recipe="dense")[0].memory.id == "a"
        with pytest.raises(InvalidInput, match="vector of 'a' was given with its old text"):
            mem.update("a", text="Rum at five.")
        assert mem.update("a", text="Rum at five.", vector=[0, 1, 0]).version == 3
        assert mem.update("a", vector=[0, 1, 0]).version == 3
        assert mem.update("a", vector=[0, 0, 1]).version == 4

    @pytest.mark.needs("graph")
    def test_a_name_that_an_update_brings_and_takes_again_changes_no_other_memory(self, mem: Semmem) -> None:
        mem.remember("It is said that parts of the Engine of babbage were kept.", id="old")
        mem.remember("It was never finished.", id="title")
        plain = mem.graph_hash()
        mem.update("title", title="Engine of Babbage")
        assert {c.name: (c.df, c.subjects) for c in mem.concepts()}["Engine of Babbage"] == (1, 1)
        mem.update("title", title=None)
        assert mem.graph_hash() == plain

    def test_many_who_change_one_memory_at_once_all_have_their_turn(self, mem: Semmem) -> None:
        mem.remember("Tea.", id="a")

        def change(who: int) -> None:
            for turn in range(8):
                mem.update("a", metadata={"who": who, "turn": turn})

        with ThreadPoolExecutor(12) as pool:
            list(pool.map(change, range(12)))
        assert mem.get("a").version == 1 + 12 * 8

    # ------------------------------------------------------------------ what an item does not say

    def test_an_import_compares_and_overwrites_only_what_an_item_gives(self, mem: Semmem) -> None:
        mem.remember("Tea.", id="a", author="Ada", importance=0.9, tags=["x"], metadata={"k": 1}, created_at=NOON)
        owned = {"authors": "Ada"}
        assert mem.import_items([{"id": "a", "text": "Tea."}], owned=owned, replace=True).unchanged == 1
        assert mem.import_items([{"id": "a", "text": "Rum.", "tags": []}], owned=owned, replace=True).replaced == 1
        after = mem.get("a")
        assert (after.text, after.tags, after.importance, after.metadata) == ("Rum.", (), 0.9, {"k": 1})
        assert (after.created_at, after.version, after.author) == (NOON, 2, "Ada")

    def test_a_conflict_names_the_namespace_of_the_item(self, mem: Semmem) -> None:
        mem.remember("Tea.", id="a", namespace="other")
        with pytest.raises(Conflict) as caught:
            mem.import_items([{"id": "a", "text": "Rum.", "namespace": "other"}], namespace="mine", on_error="abort")
        assert caught.value.names == {("other", "a")}

    def test_a_source_that_says_two_things_of_one_id_is_told_whatever_the_batches(self, mem: Semmem) -> None:
        items = [{"id": "a", "text": "Tea.", "author": "Ada"}, {"id": "a", "text": "Rum.", "author": "Ada"}]
        for size in (1, 2):
            report = mem.import_items(items, owned={"authors": "Ada"}, replace=True, batch_size=size)
            assert [row.position for row in report.rejected] == [1]
            assert texts(mem) == {"a": "Tea."}

    # ------------------------------------------------------------------ how a text is read

    def test_a_text_is_split_at_1400_characters_whatever_the_embedder_could_take(self, store: Store) -> None:
        class Patient(Hashing):
            max_tokens = 8192

        mem = opened(store, embedder=Patient())
        text = "Tea at four o'clock. " * 357
        mem.remember(text, id="ascii")
        parts = mem.stats().parts
        assert len(text) == 7497
        assert parts >= 6
        mem.remember(text.replace("clock", "clöck"), id="umlaut")
        assert mem.stats().parts == 2 * parts

    @pytest.mark.needs("graph")
    def test_an_extractor_that_asks_a_model_is_asked_about_a_batch_together_and_about_no_older_memory(
        self, store: Store
    ) -> None:
        class Asking(Rules):
            asked: list[int]

            def prepare(self, memories: Any) -> None:
                self.asked.append(len(list(memories)))

        asking = Asking()
        asking.asked = []
        mem = opened(store, extractor=asking)
        mentions = [{"text": f"It is said that parts of the Engine of babbage were kept, {n}."} for n in range(25)]
        mem.remember_many(mentions)
        assert asking.asked == [25]
        mem.remember("It was never finished.", title="Engine of Babbage")
        mem.maintain()
        assert asking.asked == [25]
