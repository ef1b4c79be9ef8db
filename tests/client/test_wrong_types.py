"""An argument of a wrong type is answered with one sentence, whatever takes it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import semmem

any_: Any = semmem


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: any_.recipe("default", graph=5), "graph must be a table of settings, not 5"),
        (lambda: any_.recipe("default", lexical="x"), "lexical must be a table of settings, not 'x'"),
        (
            lambda: any_.recipe("default", conversation=3),
            "conversation must be true, false, or a table of settings, not 3",
        ),
        (
            lambda: any_.recipe("default", regime_weights=3),
            "regime_weights must be a mapping from the name of a regime",
        ),
        (lambda: any_.recipe("default", regime_weights={"named": 3}), "regime_weights.named must be a mapping from"),
        (
            lambda: any_.recipe("default", weights=5),
            "weights must be a mapping from the name of a leg to a number from 0 to 100, not 5; write weights={'graph'",
        ),
        (
            lambda: any_.connect("sqlite::memory:", recipe={"weights": {"graph": 2}}),
            "or make one with semmem.recipe('default', weights=…).",
        ),
        (lambda: any_.connect(""), "The store URL is empty; leave it out for the embedded server, or write one of"),
        (lambda: any_.reach("defualt"), "There is no recipe named 'defualt'"),
        (lambda: any_.reach("default", "10"), "The cut-off k must be 1 or more, not '10'"),
        (
            lambda: any_.connect("sqlite::memory:", legs=5),
            "legs must be a mapping from a name to the factory of the leg",
        ),
        (lambda: any_.connect("sqlite::memory:", embedder=5), "this int has no name"),
        (lambda: any_.connect("sqlite::memory:", embedder=object()), "this object has no name"),
        (lambda: any_.connect("sqlite::memory:", extractor=5), "this int has no name"),
        (lambda: any_.connect("sqlite::memory:", pool_size=True), "pool_size must be a whole number, not True"),
        (lambda: any_.fuse("abc"), "Fusing takes a list of lists, not str"),
        (lambda: any_.fuse(["abc"]), "Fusing takes a list of semmem.list_fusion.Entry, not str"),
        (lambda: any_.fuse_scores([[1]]), "and one in it is int"),
        (lambda: any_.fuse_rows(5), "fuse_rows takes a list of lists of rows, not int"),
        (lambda: any_.fuse_rows([["a"]]), "fuse_rows takes a list of rows, each a mapping, and one in it is str"),
        (lambda: any_.dedup(None), "dedup takes a list of semmem.list_fusion.Entry, not NoneType"),
    ],
)
def test_a_wrong_type_is_refused_in_one_sentence(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises((semmem.InvalidInput, semmem.UnknownRecipe)) as raised:
        call()
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("wrong", ["5", 2.5, None, True])
def test_a_limit_that_is_no_whole_number_is_refused_with_an_example(wrong: Any) -> None:
    with semmem.connect("sqlite::memory:") as mem:
        for verb, most, example in ((mem.recall, 1000, 10), (mem.list, 10_000, 100), (mem.changes, 10_000, 100)):
            with pytest.raises(semmem.InvalidInput) as refused:
                verb(*["ferry"] * (verb == mem.recall), limit=wrong)  # type: ignore[operator]
            sentence = f"limit must be from 1 to {most}, not {wrong!r}; write a whole number, such as limit={example}."
            assert str(refused.value) == sentence


@pytest.mark.parametrize("wrong", ["false", "no", 0, 1, None, []])
def test_a_switch_that_is_neither_true_nor_false_is_refused_and_not_taken_for_true(wrong: Any) -> None:
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        for name, call in (
            ("fold_parts", lambda: mem.recall("ferry", fold_parts=wrong)),
            ("vectors", lambda: mem.export(vectors=wrong)),
            ("sensitive", lambda: mem.export(sensitive=wrong)),
            ("exact", lambda: mem.stats(exact=wrong)),
            ("reveal", lambda: mem.list(reveal=wrong)),
            ("then", lambda: mem.replay_recall("none", then=wrong)),
        ):
            with pytest.raises(
                semmem.InvalidInput, match=rf"^{name} must be True or False, not {re.escape(repr(wrong))}\.$"
            ):
                call()


def test_weights_given_as_one_number_to_a_namespace_are_refused_with_how_to_write_them() -> None:
    with semmem.connect("sqlite::memory:") as mem:
        with pytest.raises(
            semmem.InvalidInput, match=r"weights must be a mapping .* write weights={'graph': …}, or wei"
        ):
            mem.configure(weights=5)
        with pytest.raises(semmem.InvalidInput, match="namespace must be a string, not int"):
            mem.stats(namespace=5)  # type: ignore[arg-type]
        with pytest.raises(semmem.InvalidInput, match="session must be a name, not 5"):
            mem.remember_messages([], session=5)  # type: ignore[arg-type]
        assert mem.settings_of() == {}


def test_reach_takes_the_name_of_a_recipe() -> None:
    assert semmem.reach("default") == semmem.reach(semmem.recipe("default"))


def test_one_string_is_no_list_of_items_to_bring_in() -> None:
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        for wrong in ("abc", {"text": "ferry"}, 5):
            with pytest.raises(semmem.InvalidInput, match="import_items takes a list or a stream of items, not one"):
                mem.import_items(wrong)  # type: ignore[arg-type]
        assert mem.stats().memories == 0


@pytest.mark.parametrize("vector", [[True], [10**400], [float("nan")], ["x"], [[1.0]], []])
def test_a_vector_of_a_question_that_is_none_is_refused_without_a_warning(vector: list[Any]) -> None:
    with semmem.connect("sqlite::memory:") as mem, pytest.raises(semmem.InvalidInput, match="vector must "):
        mem.recall("ferry", vector=vector)


@pytest.mark.parametrize("port", ["notaport", "99999"])
def test_a_port_of_the_environment_that_is_none_is_not_blamed_on_the_host(
    monkeypatch: pytest.MonkeyPatch, port: str
) -> None:
    monkeypatch.setenv("PGPORT", port)
    with pytest.raises(
        semmem.StoreUnavailable, match=r"^The port of the database server is no number .* correct PGPORT"
    ):
        semmem.connect("postgresql://u:p@localhost/db")
