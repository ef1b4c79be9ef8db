"""The description of the API is true: what it says may be sent is answered as it says, and never with a 5xx."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import semmem
from semmem.client.routes import ROUTES
from semmem.interfaces.http.keys import Keys
from semmem.interfaces.http.limits import Limits
from semmem.model.recipe import RECIPES
from tests.serving import serving

ROOT = Path(__file__).resolve().parents[3]

EXAMPLES = int(os.environ.get("SCHEMA_EXAMPLES", "10"))
"""Requests that schemathesis makes up for each operation, beside some 7,000 fixed ones. It ends after six seconds for
each of these, so a slow machine sends fewer.
"""


def test_the_description_names_every_route_and_refers_to_nothing_that_is_missing(http: httpx.Client) -> None:
    said = http.get("/openapi.json").json()
    described = {(path, method.upper()) for path, methods in said["paths"].items() for method in methods}
    assert {(route.path, route.method) for route in ROUTES} < described
    asked = set(re.findall(r'"#/components/schemas/(\w+)"', http.get("/openapi.json").text))
    assert asked <= set(said["components"]["schemas"])
    assert {"Memory", "Recall", "Problem", "Stats"} <= asked
    http.post("/v1/memories", json={"text": "The key is red."})
    (namespace,) = http.get("/v1/namespaces").json()["namespaces"]
    assert set(said["components"]["schemas"]["Namespace"]["required"]) == set(namespace)
    names = [one["operationId"] for methods in said["paths"].values() for one in methods.values()]
    assert len(set(names)) == len(names)


@pytest.mark.slow
@pytest.mark.timeout(340 + 6 * EXAMPLES)
def test_schemathesis_finds_no_5xx_and_no_fault_of_the_schema(store_url: str, tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys.json")
    _, secret = keys.add("all", right="admin")
    with semmem.connect(store_url, embedder="hashing") as mem, serving(mem, limits=Limits(rate=0), keys=keys) as url:
        mem.remember("The key of Heron House hangs behind the radio.", id="key", title="Heron House")
        # what it calls an accepted "negative" is decided by our own tests; of rejected "positives" our hook knows which
        # could not be described: a cursor, a time or a recipe that only looks like one
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json", "--no-color"),
            *("--phases", "coverage,fuzzing", "-n", str(EXAMPLES), "--seed", "1"),
            *("--max-time", str(6 * EXAMPLES), "--request-timeout", "60"),
            *("--header", f"Authorization: Bearer {secret}"),
            *(
                "--continue-on-failure",
                "--exclude-checks",
                "not_a_server_error,positive_data_acceptance,negative_data_rejection",
            ),
        ]
        hooks = {"SCHEMATHESIS_HOOKS": "tests.interfaces.http.ndjson", "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=tmp_path, env={**os.environ, **hooks}, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-8_000:]
        assert re.search(r"Operations: +(\d+) selected / \1 total", done.stdout)


def test_every_operation_names_the_right_that_its_key_needs(http: httpx.Client) -> None:
    said = http.get("/openapi.json").json()
    scheme = said["components"]["securitySchemes"]["key"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    rights = {
        (path, method.upper()): one.get("security") for path, methods in said["paths"].items()
        for method, one in methods.items()
    }  # fmt: skip
    for route in ROUTES:
        assert rights.pop((route.path, route.method), None) in (None, [{"key": [route.right]}]), route.name
    of_any_key = [("/metrics", "GET"), ("/session", "GET"), ("/session", "POST"), ("/session", "DELETE")]
    of_any_key += [("/runs", "GET"), ("/runs/{name}/{file}", "GET")]
    any_key = [{"key": ["read"]}]
    assert rights == {("/healthz", "GET"): [], ("/readyz", "GET"): []} | dict.fromkeys(of_any_key, any_key)
    assert said["paths"]["/v1/maintain"]["post"]["security"] == [{"key": ["admin"]}]
    assert said["paths"]["/v1/memories"]["post"]["security"] == [{"key": ["write"]}]
    assert said["paths"]["/v1/recall"]["post"]["security"] == [{"key": ["read"]}]


def test_the_description_says_which_values_a_search_setting_takes(http: httpx.Client) -> None:
    said = http.get("/openapi.json").json()
    body = said["paths"]["/v1/recall"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    named, table = body["properties"]["recipe"]["anyOf"]
    assert "default" in named["enum"]
    settings = table["properties"]
    assert settings["rerank_depth"] == {"type": "integer", "minimum": 1, "maximum": 1000}
    assert settings["weights"] == {
        "type": "object", "additionalProperties": {"type": "number", "minimum": 0, "maximum": 100},
    }  # fmt: skip
    assert settings["prior_floor"] == {"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "null"}]}
    assert settings["graph"]["properties"]["alpha"] == {"type": "number", "minimum": 0, "exclusiveMaximum": 1}
    assert settings["graph"]["properties"]["walk"]["enum"] == ["gated", "pagerank"]
    assert settings["graph"]["additionalProperties"] is False
    stored = said["paths"]["/v1/settings"]["patch"]["requestBody"]["content"]["application/json"]["schema"]
    assert stored["properties"]["weights"]["additionalProperties"]["maximum"] == 5
    assert stored["properties"]["weights"]["minProperties"] == 1


def test_a_confidence_in_a_url_is_a_number_or_auto(http: httpx.Client) -> None:
    http.post("/v1/memories", json={"text": "The key of Heron House hangs behind the radio."})
    for value, status in (("0.25", 200), ("auto", 200), ("2", 422), ("much", 422)):
        for path in ("/v1/recall", "/v1/context"):
            assert http.get(path, params={"query": "key", "min_confidence": value}).status_code == status, value


def test_a_recipe_that_is_sent_whole_takes_what_one_with_changes_takes(http: httpx.Client) -> None:
    http.post("/v1/memories", json={"text": "The key is red."})
    whole = RECIPES["lexical"].as_dict()
    for change, status, sentence in (
        ({"conversation": True}, 200, ""),
        ({"graph": 5}, 422, "graph must be a table of settings, not 5."),
        ({"graph": {"x": 1}}, 422, "graph has no setting 'x'; it has "),
    ):
        answer = http.post("/v1/recall", json={"query": "key", "recipe": {**whole, **change}})
        assert answer.status_code == status, answer.text
        assert answer.json().get("detail", "").startswith(sentence)


def test_a_whole_number_may_be_written_with_a_fraction_of_zero(http: httpx.Client) -> None:
    http.post("/v1/memories", json={"text": "The key is red."})
    recipe = {"headroom": 2.0, "depths": {"lexical": 10.0}, "graph": {"hops": 2.0}}
    assert http.post("/v1/recall", json={"query": "key", "recipe": recipe}).status_code == 200
    assert http.get("/v1/recall", params={"query": "key", "recipe": json.dumps(recipe)}).status_code == 200
    assert http.patch("/v1/settings", json={"rerank_depth": 20.0}).json() == {"rerank_depth": 20}
    refused = http.post("/v1/recall", json={"query": "key", "recipe": {"headroom": 2.5}})
    assert refused.json()["detail"] == "headroom must be a whole number from 0 to 10, not 2.5."


def test_the_description_refuses_what_changes_or_forgets_nothing(http: httpx.Client) -> None:
    paths = http.get("/openapi.json").json()["paths"]
    forget = paths["/v1/forget"]["post"]["requestBody"]
    settings = paths["/v1/settings"]["patch"]["requestBody"]
    assert [forget["required"], settings["required"], paths["/v1/maintain"]["post"]["requestBody"]["required"]] == [
        True, True, False,
    ]  # fmt: skip
    (graph,) = settings["content"]["application/json"]["schema"]["properties"]["graph"]["anyOf"]
    assert graph["minProperties"] == 1


def test_a_time_to_live_is_described_as_it_is_taken(http: httpx.Client) -> None:
    body = http.get("/openapi.json").json()["paths"]["/v1/memories"]["post"]["requestBody"]["content"]
    number, text = body["application/json"]["schema"]["properties"]["ttl"]["anyOf"]
    assert number == {"type": "number", "minimum": 1, "maximum": 999_999}
    for ttl, matches, status in ((60, True, 201), ("30d", True, 201), ("45m", True, 201), ("60", False, 422)):
        assert (ttl == 60 or re.search(text["pattern"], str(ttl)) is not None) is matches
        assert http.post("/v1/memories", json={"text": "The key is red.", "ttl": ttl}).status_code == status
