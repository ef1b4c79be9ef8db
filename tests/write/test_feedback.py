"""The log of recalls, off unless it is wanted, and judgments: labels that change no ranking."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import semmem
from eval.datasets import load
from semmem.model.store import Keep
from semmem.write.access import unlogged


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., semmem.Semmem]:
    """A function that opens one store with settings; it holds two memories about a ferry, and one in namespace me."""
    url = f"sqlite:{tmp_path}/log.db" if request.param == "sqlite" else request.getfixturevalue("store_url")
    with semmem.connect(url, embedder="none") as mem:
        mem.remember("The ferry leaves at nine.", id="nine")
        mem.remember("The ferry costs two crowns.", id="crowns")
        mem.remember("My ferry is late.", id="late", namespace="me")
    return lambda **settings: semmem.connect(url, embedder="none", **settings)


@pytest.fixture
def mem(opened: Callable[..., semmem.Semmem]) -> Iterator[semmem.Semmem]:
    with opened(recall_log=True) as logged:
        yield logged


def test_nothing_is_logged_unless_it_is_wanted(opened: Callable[..., semmem.Semmem]) -> None:
    with opened() as quiet:
        assert quiet.recall("ferry").id is None
        assert quiet.context("ferry").recall_id is None
        with pytest.raises(
            semmem.NotFound, match="There is no recall 'none' in the log of 'default'; recalls are logged"
        ):
            quiet.feedback("none", useful=["nine"])
        assert quiet.judgments() == []


def test_what_was_judged_is_a_label_and_changes_no_ranking(mem: semmem.Semmem, tmp_path: Path) -> None:
    found = mem.recall("when does the ferry leave?")
    before = [(hit.id, hit.score) for hit in found]
    assert found.id is not None
    assert mem.feedback(found.id, useful=["nine"], not_useful=["crowns"], made_by="ada") == 2
    said = mem.judgments()
    assert [(one.id, one.useful, one.question, one.made_by, one.recall_id) for one in said] == [
        ("crowns", False, "when does the ferry leave?", "ada", found.id),
        ("nine", True, "when does the ferry leave?", "ada", found.id),
    ]
    assert [(hit.id, hit.score) for hit in mem.recall("when does the ferry leave?")] == before
    assert mem.feedback(found.id, useful=["crowns"]) == 1  # the last word counts
    assert {one.id: (one.useful, one.made_by) for one in mem.judgments()} == {
        "nine": (True, "ada"),
        "crowns": (True, None),
    }
    labels = tmp_path / "judged.jsonl"
    labels.write_text("".join(json.dumps(one.as_dict()) + "\n" for one in said), encoding="utf-8")
    (query,) = load(labels).queries
    assert (query.text, query.gold, query.namespace) == ("when does the ferry leave?", ("nine",), "default")


def test_an_id_is_looked_for_in_the_namespaces_of_the_recall(mem: semmem.Semmem) -> None:
    mem.remember("A ferry of mine.", id="nine", namespace="me")
    found = mem.recall("ferry late", namespace=["me", "default"])
    assert found.id is not None
    assert mem.feedback(found.id, useful=["late", "crowns"], namespace=["default", "me"]) == 2
    assert [one.id for one in mem.judgments()] == ["crowns"]
    assert [one.id for one in mem.judgments(namespace="me")] == ["late"]
    with pytest.raises(semmem.NotFound, match="no recall"):
        mem.feedback(found.id, useful=["late"], namespace="elsewhere")


@pytest.mark.parametrize(
    ("said", "error", "sentence"),
    [
        ({}, semmem.InvalidInput, "No memory is judged; pass ids"),
        (
            {"useful": ["nine"], "not_useful": ["nine"]},
            semmem.InvalidInput,
            "'nine' is in useful and in not_useful",
        ),
        (
            {"useful": ["none", "nine"]},
            semmem.NotFound,
            "There is no memory 'none' in namespace 'default'; no judgment",
        ),
        ({"useful": [3]}, semmem.InvalidInput, "useful must be"),
        ({"useful": ["nine"], "namespace": []}, semmem.NotFound, "There is no recall"),
    ],
)
def test_what_says_nothing_or_names_what_is_not_there_is_refused_whole(
    mem: semmem.Semmem, said: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    found = mem.recall("ferry")
    assert found.id is not None
    with pytest.raises(error, match=sentence):
        mem.feedback(found.id, **said)
    assert mem.judgments() == []


def test_a_log_that_cannot_be_written_leaves_the_answer(mem: semmem.Semmem, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(type(mem.store.life), "note_recall", fail)
    found = mem.recall("ferry")
    assert ({hit.id for hit in found}, found.id) == ({"nine", "crowns"}, None)
    assert found.degraded["log"] == "OSError: the disk is full"


def test_maintain_sweeps_recalls_that_nobody_judged(mem: semmem.Semmem) -> None:
    judged, other = mem.recall("ferry").id, mem.recall("crowns").id
    assert judged is not None
    assert other is not None
    mem.feedback(judged, useful=["nine"])
    assert "recalls" not in mem.maintain()
    assert mem.store.maintain(Keep(recall_log_days=0))["recalls"] == 1
    assert mem.feedback(judged, not_useful=["crowns"]) == 1
    with pytest.raises(semmem.NotFound, match="There is no recall"):
        mem.feedback(other, useful=["nine"])


def test_what_is_forgotten_is_judged_no_more(mem: semmem.Semmem) -> None:
    found = mem.recall("ferry")
    assert found.id is not None
    mem.feedback(found.id, useful=["nine", "crowns"])
    mem.forget("nine")
    assert [one.id for one in mem.judgments()] == ["crowns"]


def test_a_recall_that_is_made_anew_to_explain_one_is_not_logged(mem: semmem.Semmem) -> None:
    with unlogged():
        assert mem.recall("ferry").id is None
    assert mem.recall("ferry").id is not None
