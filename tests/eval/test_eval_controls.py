"""Controls of an ablation of the graph: which they are, and that a random graph is random and of like degrees."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import semmem
from eval.cli import app
from eval.datasets import load
from eval.experiments.conditions import named
from eval.experiments.ingredients import of_ingredients
from eval.experiments.lists import ask_all
from eval.experiments.other_edges.random_graph import Places, Rewired, dealt, rewired
from eval.experiments.plan import of_ablation, of_history
from eval.experiments.runner import ingest
from tests.snapshots import snapshot

TOY = Path(__file__).resolve().parents[2] / "eval" / "data" / "toy"
pytestmark = pytest.mark.filterwarnings("ignore:The leg:UserWarning")


def test_an_ablation_of_the_graph_stands_beside_its_four_controls() -> None:
    conditions, comparisons = of_ablation("default", ["graph"])
    by_name = {c.name: c for c in conditions}
    assert [(c.base, c.other, c.control) for c in comparisons] == [
        ("default~graph", "default", None),
        ("default, no edges", "default", "no edges"),
        ("default, seeds only", "default", "seeds only"),
        ("default, random graph", "default", "random graph"),
        ("default~graph, convex", "default", "convex"),
        ("default~graph", "default, seeds only", "re-voting"),
    ]
    bare, seeds = by_name["default, no edges"].recipe.graph, by_name["default, seeds only"].recipe.graph
    usual = named("default").recipe.graph
    assert (bare.about, bare.co_mention, bare.neighbour, bare.related) == (0, 0, 0, 0)
    assert (bare.subject_share, bare.concept_share, bare.anchor_share) == (
        usual.subject_share,
        usual.concept_share,
        usual.anchor_share,
    )
    assert (seeds.subject_share, seeds.concept_share, seeds.anchor_share) == (0, 0, 0)
    assert (seeds.about, seeds.co_mention, seeds.neighbour) == (0, 0, 0)
    assert (seeds.seeds, seeds.seed_share) == (usual.seeds, usual.seed_share)
    convex = by_name["default~graph, convex"].recipe
    assert (convex.fusion, dict(convex.weights), dict(convex.reserve)) == ("convex", {"lexical": 0.5, "dense": 0.5}, {})
    assert by_name["default, random graph"].recipe == by_name["default"].recipe
    assert by_name["default, random graph"].rewired == 0


def test_only_an_ablation_of_the_graph_has_controls() -> None:
    assert [c.control for c in of_ablation("default", ["dense"])[1]] == [None]
    assert [c.control for c in of_ablation("hybrid", ["lexical"])[1]] == [None]
    assert len(of_ablation("default", ["graph"], controls=())[1]) == 1
    # in the history, of the evaluation that had reach
    assert [c.other for c in of_history()[1] if c.control == "no edges"] == ["default"]
    assert sum(c.control is not None for c in of_ingredients("default")[1]) == 5
    # without a third leg there are no two to be fused by convex
    assert "convex" not in {c.control for c in of_ablation("seed~dense", ["graph"])[1]}


@given(st.lists(st.integers(0, 50), max_size=80), st.integers(0, 5))
def test_places_are_dealt_among_like_degrees_and_nobody_keeps_its_own(degrees: list[int], seed: int) -> None:
    takes = dealt(degrees, seed).tolist()
    assert sorted(takes) == list(range(len(degrees)))
    if len(degrees) > 1:
        assert all(place != at for at, place in enumerate(takes))
    # within a bin of ten, or eleven at the end, in the order of degrees
    order = sorted(degrees)
    for at, place in enumerate(takes):
        low, high = sorted((degrees[at], degrees[place]))
        between = sum(low < d < high for d in order)
        assert between <= 9


@pytest.mark.slow
def test_a_random_graph_keeps_its_shape_and_the_other_legs_keep_their_lists(store_url: str) -> None:
    toy = load(TOY)
    recipe = named("default").recipe
    with semmem.connect(store_url, embedder="hashing") as mem:
        ingest(mem, toy)
        own = mem._here.legs["graph"]
        plain, _ = ask_all(mem, toy.queries, [recipe])
        with rewired(mem, 0):
            chance, _ = ask_all(mem, toy.queries, [recipe])
        with rewired(mem, 0):
            again, _ = ask_all(mem, toy.queries, [recipe])
        assert mem._here.legs["graph"] is own
        store = mem.store
        dice = Rewired(snapshot(mem, "toy"), Places(store, store.graph, 0))
        row_ids = [row_id for row_id, _ in store.indexed_after("toy", -1, 1_000)]
        real = store.graph.forwards(["toy"], row_ids)
        dealt_, _, _ = dice.forwards("toy", row_ids, neighbours=True)
        keys = sorted(set(real.entries["key"].tolist()))
        of_real, (of_dealt,) = store.postings(["toy"], keys)["toy"], dice.postings("toy", (keys, None))
    assert len(row_ids) == 60
    for id, asked in plain.items():
        assert asked.legs["lexical"] == chance[id].legs["lexical"]
        assert asked.legs["dense"] == chance[id].legs["dense"]
        assert chance[id].legs == again[id].legs
    assert sum(asked.legs["graph"] != chance[id].legs["graph"] for id, asked in plain.items()) > 30

    def held(forwards: object) -> Counter[tuple[int, ...]]:
        ends = forwards.sizes.cumsum().tolist()  # type: ignore[attr-defined]
        sizes = forwards.sizes.tolist()  # type: ignore[attr-defined]
        entries = forwards.entries["key"].tolist()  # type: ignore[attr-defined]
        return Counter(tuple(sorted(entries[end - size : end])) for size, end in zip(sizes, ends, strict=True))

    # the same sets of concepts, and each concept mentioned as often, by other memories
    assert held(real) == held(dealt_)
    assert of_real.sizes.tolist() == of_dealt.sizes.tolist()
    pairs = {(key, int(row["ord"])) for key, rows in of_dealt.items() for row in rows}
    ends = dealt_.sizes.cumsum().tolist()
    for row_id, size, end in zip(dealt_.row_ids.tolist(), dealt_.sizes.tolist(), ends, strict=True):
        for key in dealt_.entries["key"][end - size : end].tolist():
            assert (key, row_id) in pairs
    assert {(k, int(r["ord"])) for k, rows in of_real.items() for r in rows} != pairs


def test_a_random_graph_does_not_depend_on_the_order_in_which_memories_were_stored(store_url: str) -> None:
    texts = {f"m{number:02}": f"Ada met {'Bo and Cy and' if number % 3 else ''} Dan in Oslo" for number in range(12)}
    texts["long"] = "Ada lived in Oslo. " * 200  # it is split, so its parts have places, too
    with semmem.connect(store_url, embedder="hashing") as mem:
        for namespace, ids in (("onward", sorted(texts)), ("backward", sorted(texts, reverse=True))):
            for id in ids:
                mem.remember(texts[id], id=id, namespace=namespace)
        deals = []
        for namespace in ("onward", "backward"):
            places, _ = Places(mem.store, mem.store.graph, 0).of(namespace)
            ids_of = {row_id: memory.id for row_id, memory in mem.store.indexed_after(namespace, -1, 1_000)}
            deals.append({ids_of[row_id]: ids_of[place] for row_id, place in places.items()})
            assert len(ids_of) > 13
    assert deals[0] == deals[1]


@pytest.mark.slow
def test_the_report_of_an_ablation_has_the_controls_and_leg_only_gold(store_url: str, tmp_path: Path) -> None:
    given = ["--data", str(TOY), "--store", store_url, "--embedder", "hashing", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, ["ablate", "--leg", "graph", *given, "--metric", "R@10"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    rows = [c for c in result["comparisons"] if c["group"] == "headline"]
    assert [c["control"] for c in rows] == [None, "no edges", "seeds only", "random graph", "convex", "re-voting"]
    assert all("paired" in c for c in rows)
    assert rows[0]["paired"]["base"] == rows[5]["paired"]["base"]  # both are over the recipe without the graph
    # six comparisons were asked, so the least p is six times the raw one at most, and never below it
    assert all(c["paired"]["p"] <= c["paired"]["p_holm"] <= 6 * c["paired"]["p"] for c in rows)
    moved = rows[0]["turnover"]
    parts = rows[0]["finds"]["parts"]
    assert sum(part["entered"] for part in parts) == moved["leg-only"]
    assert sum(part["gold entered"] for part in parts) == moved["leg-only gold"]
    total = sum(part["found"] for part in parts)
    assert f"of {total:,} finds arithmetic guarantees " in done.output
    assert "class at its rank" in done.output
    assert "## What each leg found" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    told = done.output.split("\n", 2)[2].splitlines()  # behind the first sentence, which a terminal wraps
    assert [line for line in told if len(line) > 100 and not line.startswith("/")] == []
    assert result["conditions"]["default, random graph"]["rewired"] == 0
    assert result["line"] == ("python -m eval ablate --leg graph --data eval/data/toy --embedder hashing --metric R@10")
    assert result["corpus"]["standing"] == "written for this project, not tuned on"
    assert result["draws"] == {"unit": "document", "units": 31, "questions": 34}
    assert len(result["environment"]["vectors"]["stored sha256"]) == 64
    assert done.output.lstrip().startswith("On toy, the graph leg in default")
    assert "Of 6 comparisons" in done.output
