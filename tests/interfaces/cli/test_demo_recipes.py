"""Every recipe on the committed story in one table: the literal classes of reach, and where the answers stand."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import semmem
from semmem.interfaces.cli.app import run
from semmem.interfaces.cli.context import CommandLine
from semmem.interfaces.cli.demo.show import show_compared

G, P, B = "guaranteed", "possible", "boost-only"
BOTH = {"lexical": P, "dense": P}
REACH = {
    "default": {
        regime: {"lexical": G, "dense": G, "graph": G} for regime in ("anchored", "described", "named", "unnamed")
    },
    "two-regimes": {
        "named": {"lexical": G, "dense": G, "graph": G},
        "unnamed": {"lexical": G, "dense": G, "graph": G},
    },
    "default-0.1": {
        "named": {"lexical": G, "dense": G, "graph": G},
        "unnamed": {"lexical": G, "dense": G, "graph": G},
    },
    "seed": {"any": {**BOTH, "graph": B}},  # .35/61 < 1/70
    "hybrid": {"any": BOTH},
    "lexical": {"any": {"lexical": G}},
    "dense": {"any": {"dense": G}},
    "graph": {"any": {"graph": G}},
    "convex": {"any": BOTH},
    "tm2c2": {"any": BOTH},
    "rank-scaled": {"any": {**BOTH, "graph": P}},  # 1/(60 + 1/.35 - 1) = .0162 > 1/69 = .0145
    "scored": {"named": {"lexical": B, "dense": B, "graph": G}, "unnamed": {**BOTH, "graph": P}},
    "memini": {"any": BOTH},
    "nexus": {"any": BOTH},
}


@pytest.fixture
def _own_store(store_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SEMMEM_EMBEDDER", "hashing")
    yield
    with semmem.connect(store_url) as mem:
        assert mem.stats().memories == 0  # nothing is left behind


@pytest.mark.usefixtures("_own_store")
def test_every_recipe_is_in_one_table_with_the_answers_ranks_and_its_reach(
    store_url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["--url", store_url, "demo", "--recipes", "--json"]) == 0
    rows = {row["recipe"]: row for row in json.loads(capfd.readouterr().out)}
    assert list(rows) == list(semmem.RECIPES)
    assert {name: rows[name]["reach"] for name in REACH} == REACH
    assert all(row["degraded"] == {} for row in rows.values())
    # every answer is in a note that its question does not name: only a graph that may bring one in finds all five
    answered = {name: row["answered"] for name, row in rows.items()}
    with_graph = {"default": 5, "two-regimes": 5, "default-0.1": 5, "graph": 5, "scored": 5}
    assert answered == dict.fromkeys(REACH, 0) | {"lexical": 1, "rank-scaled": 1} | with_graph
    assert rows["default"]["ranks"] == [1, 3, 2, 3, 2]  # by the hashing embedder; test_demo.py has the model

    show_compared(CommandLine(), list(rows.values()))
    shown = capfd.readouterr().out
    assert max(map(len, shown.splitlines())) <= 100
    lines = {line.split()[0]: line.split() for line in shown.splitlines() if line.strip()}
    assert lines["seed"][-3:] == [P, P, B]
    assert lines["scored"][-4:] == ["named", B, B, G]
    assert lines["default"][:2] == ["default", "rrf"]
