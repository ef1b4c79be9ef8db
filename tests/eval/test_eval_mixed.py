"""Readers and writers at once in many namespaces: each system keeps them apart, and a run goes on where it stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from eval.bench.generator import made_vector
from eval.bench.measures import percentiles
from eval.bench.mixed import Load, mixed
from eval.bench.mixed_systems import SYSTEMS, Note, absent
from eval.cli import app
from eval.datasets import DatasetError
from eval.reports.charts import under_load


def test_the_percentiles_are_those_that_are_asked_for() -> None:
    assert percentiles([n / 1000 for n in range(1, 101)], (95, 99)) == {"p50_ms": 50.5, "p95_ms": 96, "p99_ms": 100}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--beside", "grep"], "There is no system 'grep'; there are LanceDB hybrid,"),
        (["--out", "nowhere/scale.json"], "There is no folder nowhere for the result"),
    ],
)
def test_bad_input_of_a_mixed_load_is_one_sentence(given: list[str], says: str) -> None:
    done = CliRunner().invoke(app, ["bench", "mixed", *given])
    assert done.exit_code == 2
    assert says in " ".join(done.output.split())


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_finds_what_it_stored_in_its_namespace_alone(name: str, tmp_path: Path) -> None:
    if (why := absent(name)) is not None:
        pytest.skip(why)
    texts = {f"m{n}": f"Note {n} about the harbour and lamp {n}." for n in range(30)}
    notes = [Note(id, f"n{int(id[1:]) % 2}", text, made_vector(text)) for id, text in texts.items()]
    with SYSTEMS[name].opened(tmp_path) as system:
        system.fill(notes)
        if system.persistent:
            system.fill(notes)  # as after an interruption
        system.finish()
        assert sorted(system.ask("n1", texts["m3"], made_vector(texts["m3"])))[0] == "m1"
        found = system.ask("n1", texts["m3"], made_vector(texts["m3"]))
        assert (next(iter(found)), len(set(found)), len(found)) == ("m3", 10, 10)
        assert {int(id[1:]) % 2 for id in found} == {1}
        system.store(Note("new", "n1", "A heron at the quay.", made_vector("A heron at the quay.")))
        assert "new" in system.ask("n1", "A heron at the quay.", made_vector("A heron at the quay."))
        assert system.persistent == bool(system.bytes())


@pytest.mark.slow
def test_a_mixed_load_counts_its_calls_and_is_not_measured_twice(tmp_path: Path) -> None:
    load, said = Load(memories=120, namespaces=5, minutes=0.05, readers=2, writers=1), list[str]()
    result = mixed(load, tmp_path, [], said.append)
    row = result["systems"]["semmem"]
    assert row["recall"]["calls"] > 0 < row["remember"]["calls"]
    assert (row["recall"]["errors"], row["remember"]["errors"]) == ({}, {})
    assert row["found"] > 0.7
    assert mixed(load, tmp_path, [], said.append)["systems"] == result["systems"]
    assert said[-1] == "semmem: measured already"
    assert under_load(result).count("<svg") == 1
    with pytest.raises(DatasetError, match="holds a run of another load; name another folder"):
        mixed(Load(memories=121, namespaces=5, minutes=0.05), tmp_path, [])
