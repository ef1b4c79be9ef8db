"""A store on several nodes is filled with copies of a namespace that grew, and measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import semmem
from eval.scale_model import cut_sizes
from eval.scale_nodes import Ladder, fill, main
from semmem.client.memory import Semmem
from tests.stores.postgres.nodes import Cluster, wants_citus


def test_zipf_sizes_above_the_largest_are_cut_and_the_others_rise_until_all_are_stored() -> None:
    # 1,200 / i for i = 1, 2, 3, 4, the first cut to 600
    assert cut_sizes(4, 1_900, 600) == pytest.approx([600, 600, 400, 300])


def test_a_ladder_rises_by_one_factor_and_gives_each_namespace_the_step_that_is_nearest() -> None:
    ladder = Ladder.of([400, 190, 160, 140, 100], steps=3)
    assert ladder.steps == (100, 200, 400)
    assert ladder.namespaces == {"n1": 400, "n2": 200, "n3": 200, "n4": 100, "n5": 100}
    assert ladder.memories == 1_000


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--memories", "0"], "must be 1 or more"),
        (["--namespaces", "3", "--memories", "31", "--largest", "10"], "--largest is too small"),
    ],
)
def test_sizes_that_cannot_be_are_refused(
    given: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["postgresql://127.0.0.1:1/none", "--out", str(tmp_path / "out.json"), *given])
    assert (left.value.code, says in capsys.readouterr().err) == (2, True)


class TestOnThreeNodes:
    """With Citus alone."""

    pytestmark = wants_citus

    def test_each_copy_has_the_hash_and_the_answers_of_what_grew(self, citus: Cluster) -> None:
        url = citus.database("copies")[0]
        with semmem.connect(url, embedder="none") as mem:
            said: list[str] = []
            fill(url, Ladder((5, 20), {"a": 20, "b": 5, "c": 20, "d": 5}), said.append)
            assert [line.split(" stored")[0] for line in said] == ["5 memories: 5", "20 memories: 15"]
            assert {one.name: one.memories for one in mem.namespaces()} == {"a": 20, "b": 5, "c": 20, "d": 5}
            hashes = mem.hashes()
            assert (hashes["a"], hashes["b"]) == (hashes["c"], hashes["d"])
            assert hashes["a"].memories == 20
            first = mem.list(namespace="a", limit=1).memories[0]
            asked = [mem.recall(first.text, namespace=name, vector=[1.0] + [0.0] * 383) for name in ("a", "c")]
            assert [(hit.id, hit.score) for hit in asked[0]] == [(hit.id, hit.score) for hit in asked[1]] != []
            mem.remember("A copy takes new memories.", namespace="c", vector=[1.0] + [0.0] * 383)
            fill(url, Ladder((5, 20), {"a": 20, "b": 5, "c": 20, "d": 5}), said.append)
            assert (len(said), mem.stats(namespace="c").memories) == (2, 21)

    def test_what_ends_before_the_namespace_that_grew_is_dropped_drops_it_when_it_goes_on(
        self, citus: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        url, ladder = citus.database("ended")[0], Ladder((2,), {"a": 2})

        def end(self: Semmem, namespace: str) -> int:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Semmem, "drop_namespace", end)
            with pytest.raises(KeyboardInterrupt):
                fill(url, ladder, lambda _: None)
        fill(url, ladder, lambda _: None)
        with semmem.connect(url, embedder="none") as mem:
            assert [one.name for one in mem.namespaces()] == ["a"]

    def test_a_filled_store_is_measured(self, citus: Cluster, tmp_path: Path) -> None:
        out = tmp_path / "scale.json"
        sizes = ["--namespaces", "4", "--memories", "60", "--largest", "24", "--questions", "3"]
        assert main([citus.database("measured")[0], "--out", str(out), *sizes]) == 0
        result = json.loads(out.read_text(encoding="utf-8"))
        assert (result["namespaces"], len(result["bytes"])) == (4, 2)
        assert set(result["round_trips"]) == {"recall, from memory", "recall, from the nodes", "remember"}
        for row in result["by_size"].values():
            assert row["recall, from the nodes"]["nodes_ms"] > 0
            assert row["resident_kb_per_memory"] > 0
        assert result["connections"]["coordinator"] == 8
