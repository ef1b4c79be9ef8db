"""Where a result comes from: its command, its commit, its vectors, and how its set stands to what was tuned."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval.commands.experiments import in_a_clone
from eval.datasets import KNOWN_SHA256, SEALED, DatasetError, known_questions, load, shared_with
from eval.datasets.known_questions import known_question
from eval.experiments.evidence import held_out
from eval.experiments.evidence.provenance import COMMIT, TUNED_ON, clean, commit_of, role
from eval.experiments.vector_cache import KeptVectors, keeping
from semmem.embedders import load as load_embedder

ROOT = Path(__file__).resolve().parents[2]


class Counting:
    """The hashing embedder, and how many texts it was asked for."""

    def __init__(self) -> None:
        self.inner = load_embedder("hashing", path=None)
        self.name, self.dimensions, self.max_tokens = self.inner.name, self.inner.dimensions, self.inner.max_tokens
        self.fingerprint = self.inner.fingerprint
        self.asked: list[str] = []

    def count_tokens(self, text: str) -> int:
        return self.inner.count_tokens(text)

    def embed(self, texts: Sequence[str]) -> Any:
        self.asked += texts
        return self.inner.embed(texts)


def test_a_vector_is_made_once_and_outlives_the_process(tmp_path: Path) -> None:
    first, second = Counting(), Counting()
    made = KeptVectors(first, tmp_path / "v.sqlite").embed(["a boat", "a pier", "a boat"])
    assert first.asked == ["a boat", "a pier"]
    vectors = KeptVectors(second, tmp_path / "v.sqlite")
    again = vectors.embed(["a pier", "a boat", "a gull"])
    assert np.array_equal(again[:2], made[[1, 0]])
    assert np.array_equal(again[2:], first.inner.embed(["a gull"]))
    assert second.asked == ["a gull"]
    assert vectors.embed([]).shape == (0, vectors.dimensions)


def test_the_vectors_used_say_who_made_them_when_and_what_they_hash_to(tmp_path: Path) -> None:
    one, other = (KeptVectors(Counting(), tmp_path / f"{n}.sqlite") for n in ("a", "b"))
    one.embed(["a boat"])
    one.embed(["a pier"])
    other.embed(["a pier", "a boat"])
    origin = one.origin()
    assert origin == other.origin()  # whatever the order in which they were asked for
    assert (origin["used"], origin["made at"]) == (2, {COMMIT or "": 2})
    assert re.fullmatch(r"[0-9a-f]{64}", origin["sha256"])
    other.embed(["a gull"])
    assert other.origin()["sha256"] != origin["sha256"]


def test_kept_vectors_of_two_models_lie_in_two_files(tmp_path: Path) -> None:
    assert isinstance(keeping("hashing", tmp_path), KeptVectors)
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("hashing")
    assert keeping("none", tmp_path) == "none"


def test_the_commit_is_asked_with_the_code_and_a_dirty_tree_is_not_clean() -> None:
    assert COMMIT is None or re.fullmatch(r"[0-9a-f]{12}(-dirty)?", COMMIT)
    assert clean("60a65d7aaaaa")
    assert not clean("60a65d7aaaaa-dirty")
    assert not clean(None)


def test_a_result_or_a_record_that_was_written_makes_no_code_doubtful(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True, timeout=30)

    git("init")
    assert commit_of(tmp_path) is None  # nothing is committed
    for name in ("semmem", "eval/results", "tests/rank_cap", "adr"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "one.txt").write_text("as it is", encoding="utf-8")
    differential = tmp_path / "tests" / "rank_cap" / "differential.json"
    differential.write_text("{}", encoding="utf-8")
    git("add", "-A")
    git("commit", "-m", "one")
    commit = commit_of(tmp_path)
    assert re.fullmatch(r"[0-9a-f]{12}", commit or "")
    (tmp_path / "eval" / "results" / "one.txt").write_text("another", encoding="utf-8")
    (tmp_path / "eval" / "mutants-drawn.json").write_text("{}", encoding="utf-8")  # the record of one room
    (tmp_path / "adr" / "two.txt").write_text("another", encoding="utf-8")
    differential.unlink()  # as it is before all cases are gone through again
    assert commit_of(tmp_path) == commit
    (tmp_path / "semmem" / "two.txt").write_text("new, and in no commit", encoding="utf-8")
    assert commit_of(tmp_path) == f"{commit}-dirty"


def test_a_set_is_told_by_its_bytes_and_a_copy_of_another_name_does_not_hide_it() -> None:
    toy = load(ROOT / "eval" / "data" / "toy")
    assert role(toy) == "written for this project, not tuned on"
    assert role(load(ROOT / "eval" / "data" / "harbour")).endswith("the curve of confidence was fitted on it too")
    assert role(replace(toy, name="mine")) == "not known to this project"
    assert role(replace(toy, name="mine", sha256=KNOWN_SHA256["musique100"])) == "tuning set"
    assert role(replace(toy, name="agentnotes_c")) == "held out, looked at twice"


def test_a_tuning_set_with_another_name_and_another_byte_is_known_by_its_questions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    toy = replace(load(ROOT / "eval" / "data" / "toy"), name="mine", sha256="0" * 64)
    assert (role(toy), shared_with(toy.queries)) == ("not known to this project", None)
    marks = [known_question(f" {query.text.upper()}  ") for query in toy.queries]
    assert len(marks) == 40
    monkeypatch.setattr(known_questions, "_known", lambda: {"vaswani": frozenset(marks[:5]), "locomo3": frozenset()})
    assert role(toy) == "shares 5 questions with the tuning set vaswani"
    monkeypatch.setattr(held_out, "load", lambda path, sealed: toy)
    with pytest.raises(
        DatasetError, match="mine shares 5 questions with the tuning set vaswani, so it is not held out"
    ):
        held_out.look(tmp_path, tmp_path, lambda *_: None, out=tmp_path)  # type: ignore[arg-type,return-value]
    monkeypatch.setattr(known_questions, "_known", lambda: {"vaswani": frozenset(marks[:4])})  # no more than a tenth
    assert role(toy) == "not known to this project"


def test_the_questions_of_each_tuning_set_and_each_sealed_set_are_known() -> None:
    assert {name: len(marks) for name, marks in known_questions._known().items()} == {
        "agentnotes_a": 110, "hotpotqa100": 100, "locomo3": 494, "longmemeval_mini": 20, "musique100": 100,
        "vaswani": 93, "helpdesk": 100, "family": 100,
    }  # fmt: skip
    assert tuple(known_questions._known()) == (*TUNED_ON, *SEALED)


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (str(ROOT / "eval" / "data" / "toy"), "eval/data/toy"),
        ("musique100", "musique100"),
        (str(ROOT / "tests"), "tests"),
    ],
)
def test_a_command_names_data_as_anybody_may_write_it(given: str, written: str) -> None:
    assert in_a_clone(given) == written


def test_a_command_names_a_set_of_ones_own_without_the_place_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert in_a_clone(str(tmp_path / "mine")) == "mine"
