"""A question answered by one recipe after another: the lists of its legs are kept while no memory changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.client.reweigh import reweigh
from tests.interfaces.http.test_routes import problem
from tests.serving import serving
from tests.stores.expiry import let_end, let_expire

ASKED = {"query": "Where does the ferry sail?", "namespace": "team"}


@pytest.fixture(params=["postgres", "sqlite"])
def mem(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Semmem]:
    url = request.getfixturevalue("store_url") if request.param == "postgres" else f"sqlite://{tmp_path}/notes.db"
    with semmem.connect(url, embedder="hashing", recall_log=True) as mem:
        for id, text in (
            ("a", "The ferry sails to Quarley."),
            ("b", "The ferry is green."),
            ("c", "Ana sails a boat."),
        ):
            mem.remember(text, id=id, namespace="team")
        yield mem


def test_a_recall_reweighed_fuses_the_kept_lists_until_a_memory_changes_and_logs_nothing(mem: Semmem) -> None:
    with serving(mem) as url, httpx.Client(base_url=url, trust_env=False, timeout=60) as http:
        first = http.post("/v1/recall/reweigh", json=ASKED).json()
        assert {"lexical", "dense", "graph", "total"} <= set(first["timings"])
        lexical = {**first["plan"], "weights": {"lexical": 1, "dense": 0, "graph": 0}, "reserve": {}}
        again = http.post("/v1/recall/reweigh", json={**ASKED, "recipe": lexical}).json()
        assert set(again["timings"]) == {"total"}  # no leg was asked
        anew = http.post("/v1/recall", json={**ASKED, "recipe": lexical}).json()
        assert again["hits"] == anew["hits"]
        assert (first["id"], again["id"], anew["id"] is None) == (None, None, False)
        mem.remember("The ferry sails at noon.", id="d", namespace="team")
        after = http.post("/v1/recall/reweigh", json={**ASKED, "recipe": lexical}).json()
        assert "lexical" in after["timings"]
        assert "d" in {hit["id"] for hit in after["hits"]}


def test_a_recall_reweighed_after_a_memory_expired_or_ended_to_be_valid_answers_as_a_recall_does(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("semmem.client.reweigh._LOOK_S", 0.0)

    def ids(**arguments: object) -> list[str]:
        return [hit.id for hit in reweigh(mem, **ASKED, recipe="default", **arguments)]

    assert sorted(ids()) == sorted(ids(filters={"sensitive": False})) == ["a", "b", "c"]
    let_expire(mem, "a")
    assert sorted(ids()) == sorted(ids(filters={"sensitive": False})) == ["b", "c"]
    first = ids()[0]
    let_end(mem, first)
    assert ids() == [hit.id for hit in mem.recall(**ASKED, recipe="default")] == [*({"b", "c"} - {first}), first]


def test_the_paths_of_a_question_are_the_steps_of_the_graph_leg_to_each_hit(mem: Semmem) -> None:
    mem.remember("The Kestrel belongs to Ana Roth.", id="k", title="Kestrel", namespace="team")
    mem.remember("Ana Roth was born in Quarley.", id="q", title="Ana Roth", namespace="team")
    asked = {"query": "Where was the owner of the Kestrel born?", "namespace": "team", "limit": 3}
    with serving(mem) as url, httpx.Client(base_url=url, trust_env=False, timeout=60) as http:
        paths = {one["id"]: one for one in http.post("/v1/recall/paths", json=asked).json()["paths"]}
    assert paths["q"]["title"] == "Ana Roth"
    assert [(step["start"], step["to"]) for step in paths["q"]["steps"]] == [("question", "k"), ("k", "q")]


def test_a_recipe_that_needs_other_lists_asks_the_legs_and_a_wrong_one_is_refused(mem: Semmem) -> None:
    with serving(mem) as url, httpx.Client(base_url=url, trust_env=False, timeout=60) as http:
        plan = http.post("/v1/recall/reweigh", json=ASKED).json()["plan"]
        far = http.post("/v1/recall/reweigh", json={**ASKED, "recipe": {**plan, "graph": {**plan["graph"], "hops": 2}}})
        assert "graph" in far.json()["timings"]
        same = {**plan, "reserve": {"lexical": 1, "dense": 1}}
        refused = http.post("/v1/recall/reweigh", json={**ASKED, "recipe": same})
        assert problem(refused) == (422, "InvalidInput")
        assert refused.json()["detail"] == "Each leg of the reserve needs a place of its own, 1 or more."
