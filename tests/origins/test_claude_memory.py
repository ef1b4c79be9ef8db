"""Statements 11 to 20 of our origins: the fusion ADR of claude-memory, each with numbers worked out by hand."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import semmem
from eval.datasets import load
from eval.experiments.conditions import named, sweep
from eval.statistics.significance import paired
from eval.statistics.verdict import Standing, judge
from semmem import embedders
from semmem.fusion import rank
from semmem.model.recipe import RECIPES
from semmem.model.types import LINK_TYPES
from semmem.write.ingest import MAX_CHARS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def mem(store_url: str) -> Iterator[semmem.Semmem]:
    with semmem.connect(store_url, embedder="hashing") as opened:
        yield opened


def ids(found: Any) -> list[str]:
    return [hit.memory.id for hit in found]


def test_11_the_score_is_the_sum_of_weight_over_sixty_plus_rank_with_weights_one_one_and_point_three_five() -> None:
    seed = RECIPES["seed"]
    lists = {"lexical": ["a", "b"], "dense": ["b", "c"], "graph": ["c"]}
    fused = {
        f.key: f.score for f in rank(lists, weights=seed.weights, rank_constants=seed.constants(), planned=seed.legs)
    }
    most = 1 / 61 + 1 / 61 + 0.35 / 61  # a first place in every leg, the divisor of all scores
    assert fused == pytest.approx(
        {"b": (1 / 62 + 1 / 61) / most, "c": (1 / 62 + 0.35 / 61) / most, "a": (1 / 61) / most}, abs=1e-12
    )
    assert (seed.fusion, seed.reserve, seed.exact_bonus) == ("rrf", {}, 0.0)


def test_12_importance_multiplies_after_fusion_by_point_seven_plus_point_three_times_it() -> None:
    lists = {"lexical": ["a", "b", "c"]}
    ranked = rank(
        lists,
        weights={"lexical": 1.0},
        rank_constants={"lexical": 60},
        planned=["lexical"],
        importance={"a": 0.0, "b": 1.0, "c": 0.5},
    )
    # divisor 1/61: a: .7; b: 61/62 x 1 = .983871; c: 61/63 x .85 = .823016
    assert [(f.key, f.score) for f in ranked] == [
        ("b", pytest.approx(61 / 62)),
        ("c", pytest.approx(0.85 * 61 / 63)),
        ("a", pytest.approx(0.7)),
    ]
    assert ranked[1].components == {"lexical": pytest.approx(0.85 * 61 / 63)}
    # a factor, not a fourth list: what it changed beside importance .5 is told by itself
    assert [set(f.components) for f in (ranked[0], ranked[2])] == [{"lexical", "importance"}] * 2


def test_12_sort_by_takes_relevance_importance_created_and_updated(mem: semmem.Semmem) -> None:
    mem.remember_many(
        [
            {"id": "a", "text": "lantern lantern lantern", "importance": 0.5, "created_at": "2026-01-02"},
            {"id": "b", "text": "lantern lantern and oil", "importance": 0.1, "created_at": "2026-01-03"},
            {"id": "c", "text": "lantern and oil and wick", "importance": 0.9, "created_at": "2026-01-01"},
        ]
    )
    plain = semmem.recipe("lexical", prior=False)
    assert ids(mem.recall("lantern", recipe=plain)) == ["a", "b", "c"]
    assert ids(mem.recall("lantern", recipe=plain, sort_by="importance")) == ["c", "a", "b"]
    assert ids(mem.recall("lantern", recipe=plain, sort_by="created")) == ["b", "a", "c"]
    assert ids(mem.recall("lantern", recipe=plain, sort_by="updated")) == ["b", "a", "c"]
    with pytest.raises(semmem.InvalidInput, match="sort_by must be"):
        mem.recall("lantern", sort_by="newest")  # type: ignore[arg-type]  # that is the point


def test_13_a_missing_leg_is_a_clean_zero_and_with_the_lexical_leg_alone_its_order_stands() -> None:
    seed = RECIPES["seed"]
    plan: dict[str, Any] = {"weights": seed.weights, "rank_constants": seed.constants(), "planned": seed.legs}
    words = ["d", "a", "c", "b"]
    alone = rank({"lexical": words, "dense": [], "graph": []}, **plan)
    assert [f.key for f in alone] == words
    # 1/(60 + r) over 2.35/61, and nothing else
    assert [f.score for f in alone] == pytest.approx([61 / 2.35 / (60 + r) for r in (1, 2, 3, 4)])
    assert [f.components for f in rank({"lexical": words}, **plan)] == [f.components for f in alone]


def test_13_sqlite_runs_the_same_code_and_gives_the_lexical_order_exactly(mem: semmem.Semmem, tmp_path: Path) -> None:
    notes = [{"id": f"m{n}", "text": "lantern " * (n % 4 + 1) + f"and oil number {n}"} for n in range(8)]
    mem.remember_many(notes)
    lexical = ids(mem.recall("lantern oil", recipe="lexical"))
    with semmem.connect(f"sqlite:///{tmp_path / 'notes.db'}", embedder="none") as small:
        small.remember_many(notes)
        found = small.recall("lantern oil", recipe="lexical")
        assert ids(found) == lexical
        assert {tuple(hit.components) for hit in found} == {("lexical",)}
        assert set(small.recall("lantern oil", recipe="seed").degraded) == {"dense"}


def test_14_the_lexical_leg_asks_for_all_terms_and_broadens_to_any_when_too_few_have_them_all(
    mem: semmem.Semmem,
) -> None:
    mem.remember_many({"id": f"both{n}", "text": f"lantern oil {n}"} for n in range(9))
    mem.remember("only a lantern", id="one")
    settings = {"lexical": {"match": "auto"}}
    auto, every = semmem.recipe("lexical", **settings), semmem.recipe("lexical", lexical={"match": "all"})
    # nine memories have both terms, one less than is enough: the tenth comes in last
    assert ids(mem.recall("lantern oil", recipe=auto))[-1] == "one"
    assert len(mem.recall("lantern oil", recipe=auto)) == 10
    assert "one" not in ids(mem.recall("lantern oil", recipe=every))
    mem.remember("lantern oil nine", id="both9")
    assert "one" not in ids(mem.recall("lantern oil", recipe=auto, limit=20))


def test_15_an_exact_bonus_brings_back_what_the_fusion_costs_the_exact_match() -> None:
    lists = {"lexical": ["exact", "x", "y"], "dense": ["x", "y"]}
    plan: dict[str, Any] = {
        "weights": {"lexical": 1, "dense": 1}, "rank_constants": {"lexical": 60, "dense": 60},
        "planned": ["lexical", "dense"],
    }  # fmt: skip
    # without: 1/61 = .0164 against 1/62 + 1/61 = .0325; with one first place more: 2/61 = .0328
    assert [f.key for f in rank(lists, **plan)] == ["x", "y", "exact"]
    with_bonus = rank(lists, **plan, exact=["exact"], exact_bonus=1.0)
    assert [f.key for f in with_bonus] == ["exact", "x", "y"]
    assert with_bonus[0].components == pytest.approx({"lexical": 1 / 3, "exact": 1 / 3})  # of 3/61 that can be had


def test_15_the_bonus_was_measured_and_the_measurement_says_what_is_shipped() -> None:
    record = next(ROOT.glob("adr/*exact-bonus*.md")).read_text(encoding="utf-8")
    assert re.search(r"decided_by: .*sweep exact_bonus", record)
    assert "exact stratum" in record
    assert {recipe.exact_bonus for recipe in RECIPES.values()} == {0.0}


@pytest.mark.parametrize("name", ["convex", "tm2c2", "rank-scaled"])
def test_16_the_challengers_of_the_fusion_are_run(mem: semmem.Semmem, name: str) -> None:
    mem.remember_many([{"id": "a", "text": "brass lantern"}, {"id": "b", "text": "green lantern"}])
    found = mem.recall("brass lantern", recipe=name)
    assert (found.degraded, ids(found)) == ({}, ["a", "b"])
    assert {"lexical", "dense"} <= set(found[0].components)
    assert semmem.reach(semmem.recipe(name), 10).recipe == name


def test_16_the_rank_constant_is_swept_and_a_cross_encoder_is_a_stage_of_its_own_that_is_off() -> None:
    turned = sweep(named("seed"), "k=0,8,60")
    assert [c.recipe.rank_constants["graph"] for c in turned] == [0, 8, 60]
    assert {recipe.rerank for recipe in RECIPES.values()} == {None}
    second = semmem.recipe("default", rerank="cross_encoder:some-folder", rerank_depth=20)
    assert (second.rerank, second.rerank_depth, RECIPES["default"].rerank_depth) == (
        "cross_encoder:some-folder",
        20,
        30,
    )


def test_17_results_that_are_committed_hold_aggregates_and_no_text_of_a_memory_or_query() -> None:
    # that no tracked file quotes a corpus is tests/eval/test_eval_privacy.py; here: what the harness itself writes down
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    assert any("runs" in line for line in ignored)  # the runs, question by question, stay out
    toy = load(ROOT / "eval" / "data" / "toy")  # synthetic examples may be there
    texts = {q.text for q in toy.queries} | {str(m["text"]) for m in toy.memories}
    for path in (ROOT / "eval" / "results").rglob("*.json"):
        held = path.read_text(encoding="utf-8")
        assert not any(json.dumps(text)[1:-1] in held for text in texts), path.name


def test_18_a_memory_is_bounded_at_1400_characters_and_a_longer_text_is_split(store_url: str) -> None:
    assert MAX_CHARS == 1_400
    with semmem.connect(store_url, embedder="none") as mem:
        mem.remember("word " * 280, id="fits")  # 1,400 characters
        mem.remember(" ".join(f"Lantern {n}." for n in range(300)), id="long")  # 3,789
        assert (len(mem.store.row_ids_of("default", "fits")), mem.get("long").parent_id) == (1, None)
        parts = mem.recall("lantern", recipe="lexical", fold_parts=False)
        assert sorted(hit.part for hit in parts) == [1, 2, 3]
        assert all(len(hit.passage.text) <= 1_400 for hit in parts)


def test_18_links_have_types() -> None:
    assert {"supersedes", "resolved-by", "part-of", "see-also"} <= set(LINK_TYPES)
    words = (ROOT / "CONTEXT.md").read_text(encoding="utf-8")
    assert f"a typed tie between two memories: {', '.join(LINK_TYPES)}" in words


def test_18_nothing_is_embedded_outside_this_machine(mem: semmem.Semmem, monkeypatch: pytest.MonkeyPatch) -> None:
    assert embedders.NAMES == (
        "minilm",
        "hashing",
        "endpoint",
    )  # the last sends texts, and nothing chooses it by itself
    local = socket.socket.connect

    def refuse(self: socket.socket, address: Any) -> Any:
        if self.family != socket.AF_UNIX:
            raise AssertionError(f"something left the machine for {address}")
        return local(self, address)

    monkeypatch.setattr(socket.socket, "connect", refuse)
    mem.remember("The code of the safe is known to two people.", id="secret", tags=["sensitive"])
    assert ids(mem.recall("safe code", recipe="dense")) == ["secret"]


def test_19_the_benchmark_has_strata() -> None:
    strata = {query.stratum for query in load(ROOT / "eval" / "data" / "toy").queries}
    assert {"exact", "paraphrase", "multi-hop"} <= strata


def test_19_a_comparison_says_whether_the_difference_is_significant() -> None:
    base, better = [0.0] * 30, [1.0] * 20 + [0.0] * 10
    told = judge(Standing(10), paired(base, better))
    # twenty of thirty questions better and none worse: by the sign test alone p = 2 / 2^20
    assert (told.kind, told.refused) == ("helps", False)
    assert told.paired is not None
    assert told.paired.p < 0.001
    assert judge(Standing(10), paired([0.0, 1.0] * 15, [1.0, 0.0] * 15)).kind == "not separated"


def test_19_what_the_arithmetic_barred_is_never_called_no_effect() -> None:
    reach = semmem.reach(RECIPES["seed"], 10).regimes["any"].legs["graph"].class_
    told = judge(Standing(10, "graph", {"any": reach}), paired([0.0] * 30, [0.0] * 30))
    # .35/61 = .00574 never clears 1/70 = .01429, so equal results say nothing about the graph
    assert (reach, told.kind, told.refused, told.paired) == ("boost-only", "ruled out", True, None)
    assert "no difference" not in told.sentence
    assert "no effect" not in told.sentence


def test_20_the_words_are_in_context_md_and_decisions_are_records() -> None:
    words = (ROOT / "CONTEXT.md").read_text(encoding="utf-8")
    for word in ("memory", "namespace", "leg", "rank constant", "fusion", "component", "reach", "recipe", "prior"):
        assert re.search(rf"^\| \*\*[^|]*{word}[^|]*\*\*", words, re.MULTILINE), word
    records = sorted(ROOT.glob("adr/[0-9]*.md"))
    assert len(records) >= 13
    for record in records:
        assert re.match(r"---\nstatus: \w+", record.read_text(encoding="utf-8")), record.name
