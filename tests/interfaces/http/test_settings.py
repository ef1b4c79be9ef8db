"""Search settings while a server runs: they count from the next recall on, in every process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import semmem
from semmem import Result, Within
from semmem.interfaces.cli.app import run
from tests.serving import serving


class Counted:
    """A leg that finds everything, and counts how often it is asked."""

    name = "counted"
    calls = 0

    def __init__(self, reader: Any) -> None:
        self.reader = reader

    def search(self, query: str, *, limit: int = 10, offset: int = 0, filters: Within | None = None) -> Any:
        Counted.calls += 1
        found = sorted(memory.id for memory in self.reader.memories(filters or Within()))
        return [Result(id, 1.0) for id in found[offset : offset + limit]], len(found)


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path / 'notes.db'}"


@pytest.fixture
def http(store: str) -> Iterator[httpx.Client]:
    plan = semmem.recipe("lexical", weights={"counted": 1.0}, rank_constants={"counted": 60})
    Counted.calls = 0
    with semmem.connect(store, recipe=plan, legs={"counted": Counted}) as mem:
        mem.remember("The key is red.", id="key", namespace="n")
        with serving(mem) as url, httpx.Client(base_url=url, timeout=60.0, trust_env=False) as client:
            yield client


def legs(http: httpx.Client) -> set[str]:
    found = http.post("/v1/recall", json={"query": "key", "namespace": "n"}).json()
    return set(found["hits"][0]["components"])


def test_a_weight_of_nought_skips_the_call_of_the_leg(http: httpx.Client) -> None:
    assert legs(http) == {"lexical", "counted"}
    assert Counted.calls == 1
    told = http.patch("/v1/settings", params={"namespace": "n"}, json={"weights": {"counted": 0}})
    assert (told.status_code, told.json()) == (200, {"weights.counted": 0})
    assert legs(http) == {"lexical"}
    assert Counted.calls == 1
    http.patch("/v1/settings", params={"namespace": "n"}, json={"weights.counted": 5})
    assert legs(http) == {"lexical", "counted"}
    assert Counted.calls == 2


def test_weights_rank_constants_depths_and_recipe_are_shown_as_they_count(http: httpx.Client) -> None:
    changes = {"weights": {"lexical": 2.5}, "rank_constants": {"lexical": 3}, "depths": {"lexical": 7}}
    http.patch("/v1/settings", params={"namespace": "n"}, json=changes)
    told = http.get("/v1/settings", params={"namespace": "n"}).json()
    own = {"weights.lexical": 2.5, "rank_constants.lexical": 3, "depths.lexical": 7}
    assert (told["settings"], told["used"], told["unused"]) == (own, own, None)
    assert [told["recipe"][name]["lexical"] for name in ("weights", "rank_constants", "depths")] == [2.5, 3, 7]
    assert http.get("/v1/settings", params={"namespace": "other"}).json()["settings"] == {}
    left = http.delete("/v1/settings", params={"namespace": "n", "names": ["depths.lexical", "weights.lexical"]})
    assert left.json() == {"rank_constants.lexical": 3}
    http.patch("/v1/settings", params={"namespace": "n"}, json={"recipe": "hybrid"})
    assert http.post("/v1/recall", json={"query": "key", "namespace": "n"}).json()["recipe"] == "hybrid"
    assert http.delete("/v1/settings", params={"namespace": "n"}).json() == {}
    assert http.delete("/v1/settings", params={"namespace": "n", "name": "weights.lexical"}).status_code == 404


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"weights": {"counted": 5.1}}, "weights.counted must be a number from 0 to 5, not 5.1."),
        ({"weights.counted": -1}, "weights.counted must be a number from 0 to 5, not -1."),
        ({"weights": {"counted": "much"}}, "weights.counted must be a number from 0 to 5, not 'much'."),
        ({"rank_constants": {"lexical": -1}}, "rank_constants.lexical must be a number"),
        ({"depths.lexical": 1.5}, "depths.lexical must be a whole number"),
        ({"recipe": "nope"}, "There is no recipe named 'nope'"),
        ({"colour": "red"}, "There is no search setting 'colour'"),
        ({"weights": {"nobody": 1}, "rank_constants": {"nobody": 1}}, "There is no leg named 'nobody'"),
        ({"rerank": "cross_encoder:x"}, "A cross-encoder is chosen by the settings of the server"),
        ({"rerank": "endpoint"}, "The settings of the server choose whether texts are sent away"),
        ({"rerank_regimes": ["talk"]}, "rerank_regimes has a regime 'talk' that no rank constant names"),
        ({"rerank_regimes": "named"}, "rerank_regimes must be a list of names, not 'named'."),
        ({}, "Give a setting to change"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_and_nothing_is_stored(
    http: httpx.Client, changes: dict[str, Any], said: str
) -> None:
    told = http.patch("/v1/settings", params={"namespace": "n"}, json=changes)
    assert told.status_code == 422
    assert said in told.json()["detail"]
    assert http.get("/v1/settings", params={"namespace": "n"}).json()["settings"] == {}


def test_a_weight_above_five_is_taken_at_no_interface_and_one_that_was_stored_is_used_and_told(
    http: httpx.Client, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "weights.lexical must be a number from 0 to 5, not 50."
    where: dict[str, Any] = {"params": {"namespace": "n"}}
    assert http.patch("/v1/settings", json={"weights": {"lexical": 50}}, **where).json()["detail"] == said
    assert run(["settings", "set", "weights.lexical", "50", "-n", "n", "--url", store]) == 2
    assert capsys.readouterr().err.strip() == said
    with semmem.connect(store) as mem, semmem.connect(str(http.base_url)) as remote:
        for each in (mem, remote):
            with pytest.raises(semmem.InvalidInput, match=said):
                each.configure(namespace="n", weights={"lexical": 50})
            assert each.settings_of(namespace="n") == {}
        mem.store.change_settings("n", {"weights.lexical": 50}, ())  # as earlier versions did
        assert mem.configure(namespace="n", prior=False) == {"weights.lexical": 50, "prior": False}
        assert mem.recall("key", namespace="n").recipe.weights["lexical"] == 50
        assert mem.recall("key", namespace="n").degraded.get("settings") is None
    told = http.get("/v1/settings", **where).json()
    assert told["used"] == {"weights.lexical": 50, "prior": False}
    assert told["unused"] == (
        "namespace n: weights.lexical is 50, and a namespace is now given a number from 0 to 5; it is used as it is, "
        "until it is set anew or unset"
    )
    assert run(["settings", "-n", "n", "--url", store]) == 0
    assert told["unused"] in " ".join(capsys.readouterr().out.split())
    assert run(["doctor", "--url", store, "--json"]) == 0
    findings = {one["what"]: one for one in json.loads(capsys.readouterr().out)["findings"]}
    assert (findings["search settings"]["state"], findings["search settings"]["detail"]) == ("optional", told["unused"])
    assert http.patch("/v1/settings", json={"weights": {"lexical": 5}}, **where).json()["weights.lexical"] == 5
    assert http.get("/v1/settings", **where).json()["unused"] is None


def test_another_process_searches_by_them_at_its_next_recall(http: httpx.Client, store: str) -> None:
    program = (
        "import semmem, sys\n"
        f"with semmem.connect({store!r}) as mem:\n"
        "    for _ in sys.stdin:\n"
        "        print(mem.recall('key', namespace='n').recipe.name, flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        seen = []
        for name in ("lexical", "hybrid"):
            http.patch("/v1/settings", params={"namespace": "n"}, json={"recipe": name})
            other.stdin.write("\n")
            other.stdin.flush()
            seen.append(other.stdout.readline().strip())
        other.stdin.close()
    assert seen == ["lexical", "hybrid"]


def test_doctor_examines_what_it_can_see_of_a_server_and_where_the_rest_is_examined(
    http: httpx.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    url = str(http.base_url)
    assert run(["doctor", "--url", url, "--json"]) == 0
    findings = {one["what"]: one for one in json.loads(capsys.readouterr().out)["findings"]}
    assert findings["server"]["detail"] == f"semmem answers at {url}; what follows was found on its machine"
    assert findings["store"]["detail"].startswith("1 memory in 1 namespace, ")
    assert findings["vectors"]["detail"].startswith("1, made by ")
    assert run(["doctor", "--url", "http://127.0.0.1:1", "--json"]) == 8
    findings = {one["what"]: one for one in json.loads(capsys.readouterr().out)["findings"]}
    assert ("server" in findings, findings["store"]["state"]) == (False, "bad")
    assert "start it with `semmem serve`" in findings["store"]["detail"]
