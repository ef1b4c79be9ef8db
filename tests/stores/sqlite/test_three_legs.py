"""A SQLite file answers with three legs as the embedded PostgreSQL store does: the same hits, the same scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import eval.datasets as datasets
import semmem
from eval.datasets.corpus import Corpus, Query
from semmem.model.errors import Conflict
from semmem.stores.sqlite import resident
from semmem.text.passages import term_key
from tests.stores.resident.trio import QUESTIONS, change, new_space

TOY = Path(__file__).parents[3] / "eval" / "data" / "toy"
RECIPES = ("default", "rank-scaled", "seed", "dense", "graph")
ASKED = 20
"""The most questions of a tuning set that are asked."""


def answer(mem: semmem.Semmem, query: Query, recipe: str, **asked: Any) -> tuple[Any, ...]:
    found = mem.recall(query.text, namespace=query.namespace, recipe=recipe, limit=20, **asked)
    hits = [(hit.id, hit.memory.text, hit.score, dict(hit.components), hit.part) for hit in found]
    return hits, found.total, found.total_is_exact, found.confidence, dict(found.degraded), found.regime


def assert_alike(corpus: Corpus, queries: Sequence[Query], file: Path, url: str) -> None:
    """Prove that both stores answer ``queries`` alike, over the memories of ``corpus``."""
    with (
        semmem.connect(f"sqlite://{file}", embedder="hashing") as small,
        semmem.connect(url, embedder="hashing", pool_size=2) as large,
    ):
        for mem in (small, large):
            assert mem.remember_many(corpus.memories).remembered == len(corpus.memories)
            mem.maintain()
        for namespace in corpus.namespaces:
            assert small.graph_hash(namespace=namespace) == large.graph_hash(namespace=namespace)
        for query in queries:
            for _ in range(3):  # from then on PostgreSQL answers from memory
                large.recall(query.text, namespace=query.namespace)
            for recipe in RECIPES:
                assert answer(small, query, recipe) == answer(large, query, recipe)


@pytest.mark.slow
def test_toy_questions_have_the_hits_and_scores_that_postgresql_gives(tmp_path: Path, store_url: str) -> None:
    corpus = datasets.load(TOY)
    assert_alike(corpus, corpus.queries, tmp_path / "toy.db", store_url)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["agentnotes_a", "hotpotqa100", "locomo3", "musique100"])
def test_the_questions_of_a_tuning_set_have_the_hits_and_scores_that_postgresql_gives(
    name: str, tmp_path: Path, store_url: str
) -> None:
    folder = datasets.data_root() / name
    if not folder.is_dir():
        pytest.skip(f"the set {name} is not beside this checkout")
    corpus = datasets.load(folder)
    assert_alike(corpus, corpus.queries[:: max(1, len(corpus.queries) // ASKED)], tmp_path / "set.db", store_url)


def said(mem: semmem.Semmem, query: str = "Where is the Crane Gate?", **asked: Any) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in mem.recall(query, **asked)]


def fill(mem: semmem.Semmem) -> None:
    """Remember four memories of which two name the third."""
    mem.remember("The Crane Gate stands by the quay.", id="gate", title="Crane Gate", session="s", position=1)
    mem.remember("Mila painted the Crane Gate.", id="mila", author="ada", session="s", position=2)
    mem.remember("The quay was swept on Monday.", id="quay")
    mem.remember("Nobody painted the mole.", id="mole")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/notes.db"


def test_a_store_beside_it_sees_each_write_at_its_next_recall(url: str) -> None:
    with semmem.connect(url, embedder="hashing") as one, semmem.connect(url, embedder="hashing") as other:
        fill(one)
        changes: tuple[Callable[[], Any], ...] = (
            lambda: one.remember("The Crane Gate was sold to Mila.", id="sold"),
            lambda: one.update("gate", text="The Crane Gate stands by the mole."),
            lambda: one.forget("mila"),
            lambda: one.restore_memory("mila"),
            lambda: one.link("sold", "supersedes", "gate"),
            lambda: one.merge_concepts("Crane Gate", "Mila"),
            lambda: one.remember_many([{"id": f"m{n}", "text": f"The Crane Gate, day {n}."} for n in range(3)]),
            lambda: one.forget("m1", hard=True),
            lambda: one.rebuild(extract=True),
            lambda: one.maintain(),
        )
        answers = [said(other)]
        for change in changes:
            change()
            one.store.models.clear()  # read anew
            assert said(other) == said(one)
            answers.append(said(other))
        assert len({tuple(answer) for answer in answers}) > 5


def test_an_answer_inside_a_transaction_that_is_undone_stays_in_no_memory(url: str) -> None:
    with semmem.connect(url, embedder="hashing") as mem:
        fill(mem)
        before, burnt = said(mem), term_key("burnt")

        def work() -> str:
            mem.remember("The Crane Gate burnt down.", id="burnt")
            assert len(mem.store.postings(["default"], [burnt])["default"].keys) == 1
            raise ValueError

        with pytest.raises(ValueError):
            mem.store.serving.once(b"k", b"r", work, together=True, keep_days=1.0)
        assert said(mem) == before
        assert len(mem.store.postings(["default"], [burnt])["default"].keys) == 0
        mem.remember("The Crane Gate was washed.", id="washed")  # takes the sequence number that was undone
        assert set(dict(said(mem))) == {*dict(before), "washed"}


def test_what_takes_the_number_of_a_change_that_was_undone_is_found_though_nobody_asked_between(url: str) -> None:
    with semmem.connect(url, embedder="none") as mem:
        mem.remember("The Crane Gate is old.", id="old")
        burnt, washed = term_key("burnt"), term_key("wash")

        def found() -> list[int]:
            return [len(mem.store.postings(["default"], [key])["default"].keys) for key in (burnt, washed)]

        assert found() == [0, 0]

        def work() -> str:
            mem.remember("The Crane Gate was burnt.", id="burnt")
            assert found() == [1, 0]
            raise ValueError

        with pytest.raises(ValueError):
            mem.store.serving.once(b"k", b"r", work, together=True, keep_days=1.0)
        mem.remember("The Crane Gate was washed.", id="washed")  # as long, so that the states have equal numbers
        assert found() == [0, 1]


def test_a_copy_of_a_namespace_and_one_renamed_answer_as_it_did(url: str) -> None:
    with semmem.connect(url, embedder="hashing") as mem:
        fill(mem)
        before, digest = said(mem), mem.graph_hash()
        assert mem.copy_namespace("default", "copy") == mem.rename_namespace("default", "moved") == 4
        for namespace in ("copy", "moved"):
            assert said(mem, namespace=namespace) == before
            assert mem.graph_hash(namespace=namespace) == digest
        assert mem.drop_namespace("copy") == 4
        assert said(mem, namespace="moved") == before
        assert mem.stats().vectors == 4


def test_a_namespace_that_is_too_large_keeps_the_lexical_leg_and_says_why(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with semmem.connect(url, embedder="hashing") as mem:
        fill(mem)
        lexical = said(mem, recipe="lexical")
        monkeypatch.setattr(resident, "MOST", 3)
        why = (
            "SQLite answers this up to 3 memories in a namespace, and 'default' has 4; move to PostgreSQL with semmem "
            "export and semmem import jsonl."
        )
        found = mem.recall("Where is the Crane Gate?")
        assert found.degraded == {"dense": why, "graph": why}
        assert [hit.id for hit in found] == [id for id, _ in lexical]
        assert said(mem, recipe="lexical") == lexical
        assert mem.remember("The quay is dry.").older == ()


def test_a_second_rebuild_is_refused_while_one_runs(url: str) -> None:
    with semmem.connect(url, embedder="hashing") as one, semmem.connect(url, embedder="hashing") as other:
        fill(one)
        with one.store.vectors.rebuilding():
            for mem in (one, other):
                with pytest.raises(Conflict, match=r"^Another process rebuilds this store; wait"):
                    mem.rebuild()
        assert other.rebuild().embedded == 0


def test_another_embedder_takes_the_place_of_the_first_and_the_hits_are_its_own(url: str) -> None:
    with semmem.connect(url, embedder="none") as mem:
        fill(mem)
        assert mem.stats().vectors == 0
        assert mem.recall("quay").degraded.keys() == {"dense"}
    with semmem.connect(url, embedder="hashing") as mem:
        assert mem.rebuild().embedded == 4
        made = said(mem, recipe="dense")
        assert (len(made), mem.stats().embedder) == (4, "hashing")
        assert mem.rebuild(embedder=Letters()).embedded == 4
        assert (mem.stats().embedder, mem.stats().vectors) == ("letters", 4)
        assert said(mem, recipe="dense") != made


class Letters:
    """An embedder that counts three letters."""

    name, dimensions, fingerprint, max_tokens = "letters", 3, "1", 100

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def embed(self, texts: Sequence[str]) -> Any:
        rows = np.array([[1 + text.count(letter) for letter in "aem"] for text in texts], dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_a_recall_of_an_earlier_time_has_the_vectors_and_concepts_of_then(url: str) -> None:
    with semmem.connect(url, embedder="hashing") as mem:
        mem.remember("Ana lives in Lisbon.", id="ana", created_at="2020-01-01", title="Ana")
        mem.remember("Bo lives in Bern.", id="bo", created_at="2020-01-01")
        mem.update("ana", text="Ana lives in Porto.", valid_from="2022-01-01")
        then = mem.recall("Who lives in Lisbon?", as_of="2021-01-01")
        assert then[0].text == "Ana lives in Lisbon."
        assert {"lexical", "dense"} <= set(then[0].components)
        mem.forget("ana")
        mem.restore_memory("ana")
        assert mem.stats().vectors == 2


STEPS = ("few", "few", "update", "forget", "take back", "link", "many", "sensitive", "maintain", "merge", "drop")


@pytest.mark.slow
@settings(
    max_examples=5, suppress_health_check=list(HealthCheck), deadline=None, phases=[Phase.explicit, Phase.generate]
)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 200)), min_size=2, max_size=7))
def test_after_the_same_writes_a_file_and_postgresql_have_the_same_hits(
    both: tuple[semmem.Semmem, semmem.Semmem], steps: list[tuple[str, int]]
) -> None:
    space = new_space()
    for at, step in enumerate([("many", 0), *steps]):
        for mem in both:
            change(mem, space, step)
        small, large = (said(mem, QUESTIONS[at % 4], namespace=space, limit=20) for mem in both)
        assert small == large, step
    small, large = (mem.graph_hash(namespace=space) for mem in both)
    assert small == large


@pytest.fixture(scope="module")
def both(module_url: str) -> Iterator[tuple[semmem.Semmem, semmem.Semmem]]:
    with (
        semmem.connect("sqlite::memory:", embedder="hashing") as small,
        semmem.connect(module_url, embedder="hashing", pool_size=2) as large,
    ):
        yield small, large


@pytest.mark.slow
def test_bounded_expired_and_sensitive_memories_count_as_in_postgresql(
    both: tuple[semmem.Semmem, semmem.Semmem],
) -> None:
    now, space = datetime.now(UTC), new_space()
    at = now - timedelta(days=3)
    for mem in both:
        change(mem, space, ("many", 0))
        mem.remember("The pin of the ferry is 4711.", id="pin", sensitive=True, namespace=space, created_at=at)
        for number in range(12):
            how = (
                {"valid_to": now - timedelta(days=1)}, {"valid_from": now + timedelta(days=1)},
                {"expires_at": now + timedelta(days=1)},
            )[number % 3]  # fmt: skip
            text = f"Grace Hopper took the ferry number {number}."
            mem.remember(text, id=f"b{number}", namespace=space, created_at=at, **how)  # type: ignore[arg-type]
            mem.link(f"b{number}", "supersedes", f"m{number}", namespace=space)
    for question in QUESTIONS:
        for how in ({}, {"filters": {"tags": ["few"]}}, {"exclude": ["m1", "b2"]}, {"recipe": "hybrid"}):
            small, large = (said(mem, question, namespace=space, limit=30, **how) for mem in both)
            assert small == large, (question, how)
            assert "pin" not in dict(small)


def test_a_renamed_namespace_too_large_for_memory_is_found_by_its_words(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resident, "MOST", 0)
    with semmem.connect(url, embedder="none", recipe="lexical") as mem:
        mem.remember("The heron stands in the reeds.", id="other", namespace="other")
        mem.remember("The heron nests on the roof.", id="a", namespace="old")
        mem.rename_namespace("old", "new")
        assert [hit.id for hit in mem.recall("heron", namespace="new")] == ["a"]
        assert mem.copy_namespace("new", "copy") == 1
        assert [hit.id for hit in mem.recall("heron", namespace="copy")] == ["a"]


def test_a_process_that_writes_to_ever_more_namespaces_notes_so_many_of_them_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resident, "_MOST_NOTED", 3)
    with semmem.connect(f"sqlite://{tmp_path}/notes.db", embedder="hashing") as mem:
        models, noted = mem.store.models, []
        for number in range(5):
            for hour in ("nine", "ten"):  # the second is compared with what is nearest to it
                mem.remember(f"The ferry to the island leaves at {hour}.", namespace=f"n{number}")
            noted.append(len(models._vectors_read))
        assert noted == [1, 2, 3, 1, 2]
