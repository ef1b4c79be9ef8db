"""The model of many namespaces: its arithmetic by hand, its inputs with sources, and a node that is measured."""

from __future__ import annotations

import json

import pytest

from eval.scale_model import COSTS, DEMANDS, Costs, Demand, harmonic, made, main, needed, read_costs, sizes

SMALL = Costs(
    disk_kb_per_memory=10,
    disk_kb_per_namespace=100,
    resident_kb_per_memory=4,
    recall_ms=10,
    write_ms=50,
    most_memories_of_a_namespace=500,
    node_processors=1,
    node_memory_gb=0.01,
    node_disk_gb=0.01,
    node_connections=10,
    node_dollars_a_month=7,
    used=0.5,
)


def test_four_namespaces_of_zipf_sizes_share_2500_memories() -> None:
    assert sizes(4, 2_500) == pytest.approx([1_200, 600, 400, 300])  # 1 + 1/2 + 1/3 + 1/4 = 25/12


def test_the_series_of_the_harmonic_numbers_meets_their_sum() -> None:
    assert harmonic(4) == pytest.approx(25 / 12)
    assert harmonic(1_001) == pytest.approx(harmonic(1_000) + 1 / 1_001)
    assert harmonic(1_000_000) == pytest.approx(14.392726722865)


def test_the_nodes_are_those_that_the_scarcest_resource_asks_for() -> None:
    need = needed(Demand(4, 2_500, recalls_per_s=100, writes_per_s=10, active=0.5, processes=3), SMALL)
    assert need.disk_gb == pytest.approx(0.0254)  # 2,500 · 10 KB + 4 · 100 KB
    assert need.resident_gb == pytest.approx(0.005)  # half of 2,500 · 4 KB
    assert (need.processors, need.connections) == (1.5, 24)  # 100 · 10 ms + 10 · 50 ms; 3 · 8
    assert need.poolers  # each node sees all 24 connections, and 5 of its 10 may be used
    assert need.nodes == {"disk": 6, "memory": 1, "processors": 3}  # of each node half is used
    assert (need.bound, need.most_nodes) == ("disk", 6)
    assert (need.largest_namespace, need.too_large) == (pytest.approx(1_200), 2)  # 1,200 and 600 of at most 500


def test_every_cost_has_its_source_and_the_million_its_answer() -> None:
    rows = json.loads(COSTS.read_text(encoding="utf-8"))
    assert [name for name, row in rows.items() if not row["source"]] == []
    need = needed(DEMANDS[-1], read_costs())
    assert need.nodes == {"disk": 4, "memory": 6, "processors": 51}
    assert [needed(demand, read_costs()).poolers for demand in DEMANDS] == [False, False, True, True]
    assert need.too_large == 69


def test_each_namespace_that_is_made_holds_a_memory_at_least() -> None:
    held = [item["namespace"] for item in made(10, 12)]
    assert [held.count(f"n{rank}") for rank in range(1, 11)] == [4, 2, 1, 1, 1, 1, 1, 1, 1, 1]


def test_a_number_below_one_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["measure", "--namespaces", "0"])
    assert "--namespaces, --memories and --questions must be 1 or more." in capsys.readouterr().err


@pytest.mark.slow
def test_a_node_is_filled_and_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "--namespaces", "3", "--memories", "11", "--questions", "2"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["namespaces"], answer["memories"]) == (3, 11)  # 6, 3 and 2
    assert answer["bytes_maintained"] > answer["bytes_empty"] > 0
