"""The command probe: its table, its JSON, its exit code."""

from __future__ import annotations

import json

import pytest

from semmem.interfaces import wire
from tests.interfaces.cli.program import Call, in_process


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], store_url: str, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setenv("SEMMEM_URL", store_url)
    monkeypatch.setenv("SEMMEM_EMBEDDER", "hashing")
    return in_process(capfd)


def test_seed_is_exit_code_3_with_the_stage_and_default_is_0(call: Call) -> None:
    code, out, err = call("probe", "--recipe", "seed", "-k", "10", "--leg", "graph")
    assert code == wire.EXIT_REACH == 3
    assert "boost-only" in out
    assert err.startswith("graph (any) was dropped at the stage fused: graph has it at rank 1, and the fusion cannot")
    assert max(map(len, out.splitlines())) <= 100

    code, out, err = call("probe", "--recipe", "default", "-k", "10", "--leg", "graph", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert (told["recipe"], told["k"], told["left_out"]) == ("default", 10, {})
    assert [(one["leg"], one["regime"], one["returned"]) for one in told["probed"]] == [
        ("graph", "named", True),
        ("graph", "anchored", True),
    ]
    assert told["probed"][0]["passed"][-1] == "returned"


def test_a_witness_of_ones_own_and_filters_go_through_too(call: Call) -> None:
    own = ("probe", "--recipe", "hybrid", "--leg", "lexical", "--question", "brass lantern")
    assert call(*own, "--text", "The lantern is made of brass.")[0] == 0
    code, _, err = call(*own, "--text", "The lantern is made of brass.", "--tag", "kept")
    assert (code, "stage scope" in err) == (3, True)
    code, _, err = call(*own)
    assert (code, err.strip()) == (
        2,
        "--question and --text go together: give the question and the memory that answers it.",
    )
