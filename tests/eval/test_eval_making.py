"""Questions for a store of one's own: proposed, pooled blind, judged key by key, and resumable."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import semmem
from eval.cli import app
from eval.commands import own
from eval.datasets import load
from eval.experiments.runner import ingest
from eval.labels.desk import Desk, needed, pool, propose, sample
from eval.labels.terminal import label_all, take_paraphrases
from semmem.model.types import Memory

TOY = Path(__file__).resolve().parents[2] / "eval" / "data" / "toy"
NOTES = [
    Memory("a", "n", "Error TB-2207 means the token has expired."),
    Memory("b", "n", "Orla Finch looks after Heron boxes."),
    Memory("c", "n", "Heron boxes are built on Plover."),
    Memory("d", "n", "Lunch is at noon."),
]


def test_exact_questions_come_from_codes_and_chains_from_shared_names() -> None:
    proposed = propose(NOTES)
    assert ("What do we know about TB-2207?", "exact", ("a",)) in proposed
    chains = [(text, about) for text, stratum, about in proposed if stratum == "chain"]
    assert [about for _, about in chains] == [("b", "c")]
    assert "plover" in chains[0][0].lower()


def test_a_code_that_many_memories_hold_asks_nothing_exact() -> None:
    twice = [*NOTES, Memory("e", "n", "TB-2207 again.")]
    assert not [p for p in propose(twice) if p[1] == "exact"]


def test_the_desk_keeps_every_key_and_takes_up_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "n")
    one = desk.ask("Which error?", "exact", ["a"])
    assert desk.ask("Which error?", "exact", ["a"]) is one
    desk.label(one.id, "a", 2)
    with (tmp_path / "labels.jsonl").open("a", encoding="utf-8") as out:
        out.write('{"question": "own-1", "mem')  # cut short
    again = Desk(tmp_path, "n")
    again.label(one.id, "d", 0)
    assert Desk(tmp_path, "n").labels == {one.id: {"a": 2, "d": 0}}
    pools = {one.id: ["d", "a", "c"]}
    assert [memory for _, memory in again.open(pools)] == ["c"]
    assert again.queries(pools) == []  # a pool that is judged in part would count what nobody looked at as wrong
    again.label(one.id, "c", 0)
    (query,) = again.queries(pools)
    assert (query.gold, query.grades) == (("a",), {"a": 2})


def test_a_pool_is_every_recipes_top_and_its_order_says_nothing(store_url: str, tmp_path: Path) -> None:
    with semmem.connect(store_url, embedder="hashing") as mem:
        ingest(mem, load(TOY))
        question = Desk(tmp_path, "toy").ask("What does TB-2207 mean?", "exact", ["t14"])
        recipes = ["lexical", "dense"]
        pooled = pool(mem, "toy", question, recipes)
        tops = [[h.memory.id for h in mem.recall(question.text, namespace="toy", limit=20, recipe=r)] for r in recipes]
        assert set(pooled) == {"t14", *tops[0], *tops[1]}
        assert pooled != list(dict.fromkeys([*tops[0], *tops[1]]))
        assert pooled == pool(mem, "toy", question, list(reversed(recipes)))  # nor which recipe came first


def test_a_person_goes_through_by_single_keys(store_url: str, tmp_path: Path) -> None:
    with semmem.connect(store_url, embedder="hashing") as mem:
        ingest(mem, load(TOY))
        desk = Desk(tmp_path, "toy")
        drawn = sample(mem, "toy", 3)
        assert len({m.id for m in drawn}) == 3
        typed = iter(["Who wakes at night?", "", "q"])
        lines: list[str] = []
        assert take_paraphrases(desk, drawn, lambda prompt: next(typed), lines.append) == 1
        (question,) = desk.questions.values()
        pools = {question.id: ["t08", "t09", "t10"]}
        keys = iter("xgq")
        assert label_all(mem, desk, pools, lambda: next(keys), lines.append) == 1  # x is no key, g is, q stops
        keys = iter("sn")
        assert label_all(mem, Desk(tmp_path, "toy"), pools, lambda: next(keys), lines.append) == 1
        assert not any("lexical" in text or "rank" in text for text in lines)
        rest = Desk(tmp_path, "toy")
        label_all(mem, rest, pools, lambda: "n", lines.append)
        (query,) = rest.queries(pools)
        assert query.gold == ("t08",)
        saved = load(tmp_path / "queries.jsonl")
        assert saved.stored
        assert saved.queries[0].grades == {"t08": 2}
        assert json.loads((tmp_path / "queries.jsonl").read_text())["gold_ids"] == ["t08"]


def test_a_wrong_key_is_taken_back_now_or_another_day(store_url: str, tmp_path: Path) -> None:
    with semmem.connect(store_url, embedder="hashing") as mem:
        ingest(mem, load(TOY))
        desk = Desk(tmp_path, "toy")
        one = desk.ask("Who wakes at night?", "paraphrase", ["t08"])
        pools = {one.id: ["gone", "t08", "t09", "t10"]}
        lines: list[str] = []
        keys = iter("bnybgq")  # nothing to take back; n for t08, y for t09; y is taken back and g given; t10 stays open
        assert label_all(mem, desk, pools, lambda: next(keys), lines.append) == 2
        assert lines.count("There is no key to take back.") == 1
        assert desk.labels[one.id] == {"gone": 0, "t08": 0, "t09": 2}
        again = Desk(tmp_path, "toy")
        assert again.labels == desk.labels
        keys = iter("bbgnq")  # the keys of t09 and of t08 are taken back; t08 is g, t09 is n
        assert label_all(mem, again, pools, lambda: next(keys), lines.append) == 0
        assert Desk(tmp_path, "toy").labels == {one.id: {"gone": 0, "t08": 2, "t09": 0}}
        rest = Desk(tmp_path, "toy")
        assert label_all(mem, rest, pools, lambda: "n", lines.append) == 1
        assert rest.queries(pools)[0].grades == {"t08": 2}


def test_make_says_what_it_will_do_before_it_starts_and_may_be_left(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "keys_can_be_read", lambda: True)
    with semmem.connect(store_url, embedder="hashing") as mem:
        ingest(mem, load(TOY))
    given = ["make", "--own", store_url, "--namespace", "toy", "--embedder", "hashing", "--out", str(tmp_path / "mine")]
    left = CliRunner().invoke(app, [*given, "--items", "2"], input="q\n")
    assert left.exit_code == 0, left.output
    for words in ("2 memories drawn by chance", "b takes a wrong key back", "Your store is only read", "Enter starts"):
        assert words in left.output
    assert not (tmp_path / "mine" / "questions.jsonl").exists()
    stopped = CliRunner().invoke(app, [*given, "--items", "2"], input="\nWho wakes?\nq\nyq")
    assert stopped.exit_code == 0, stopped.output
    assert "Who wakes?" in (tmp_path / "mine" / "questions.jsonl").read_text(encoding="utf-8")
    assert len((tmp_path / "mine" / "labels.jsonl").read_text(encoding="utf-8").splitlines()) == 1


@pytest.mark.slow
def test_how_many_more_are_needed_is_said_from_five_on(store_url: str) -> None:
    with semmem.connect(store_url, embedder="hashing") as mem:
        corpus = load(TOY)
        ingest(mem, corpus)
        assert needed(mem, corpus.queries[:4], ["hybrid", "lexical"], 0.05) is None
        few = needed(mem, corpus.queries, ["hybrid", "lexical"], 0.1)
        many = needed(mem, corpus.queries, ["hybrid", "lexical"], 0.05)
        assert few is not None
        assert many is not None
        assert 3.6 < many / few < 4  # half the effect, four times the questions; fewer of them need a larger t


def test_no_memory_acts_on_the_terminal_of_the_person_who_judges_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "keys_can_be_read", lambda: True)
    url = f"sqlite://{tmp_path}/notes.db"
    with semmem.connect(url, embedder="none") as mem:
        mem.remember("The owl \x1b]0;mine\x07 wakes.", id="owl", title="Owls \x1b[2J")
    given = ["make", "--own", url, "--embedder", "none", "--recipes", "lexical", "--out", str(tmp_path / "mine")]
    done = CliRunner().invoke(app, given, input="\nWho wakes, owl?\nyq")
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.output
    assert "\x07" not in done.output
    assert done.output.count("Owls \\x1b[2J: The owl \\x1b]0;mine\\x07 wakes.") == 2  # to ask about, and to judge
    refused = CliRunner().invoke(app, [*given, "--namespace", "none\u202e"])
    assert refused.exit_code == 2
    assert "\u202e" not in refused.output
    assert "There are no memories in namespace" in refused.output


@pytest.mark.slow
def test_make_without_a_terminal_says_so_before_it_does_anything(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "eval", "make", "--own", f"sqlite://{tmp_path}/notes.db"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: make asks a person and reads single keys: start it in a terminal, not through a pipe.\n"
    )
    assert list(tmp_path.iterdir()) == []
