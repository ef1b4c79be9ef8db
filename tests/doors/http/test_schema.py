"""The description of the API is true: what it says may be sent is answered as it says, and never with a 5xx."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import semmem
from semmem.client.routes import ROUTES
from semmem.doors.http.keys import Keys
from semmem.doors.http.limits import Limits
from tests.serving import serving

ROOT = Path(__file__).resolve().parents[3]


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
@pytest.mark.timeout(400)
def test_schemathesis_finds_no_5xx_and_no_fault_of_the_schema(store_url: str, tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys.json")
    _, secret = keys.add("all", right="admin")
    with semmem.connect(store_url, embedder="hashing") as mem, serving(mem, limits=Limits(rate=0), keys=keys) as url:
        mem.remember("The key of Heron House hangs behind the radio.", id="key", title="Heron House")
        # what it calls an accepted "negative" is decided by our own tests; of rejected "positives" our hook knows which
        # could not be described: a cursor, a time or a recipe that only looks like one
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json", "--no-color"),
            *("--phases", "coverage,fuzzing", "-n", "10", "--max-time", "60", "--seed", "1", "--request-timeout", "60"),
            *("--header", f"Authorization: Bearer {secret}"),
            *("--continue-on-failure", "--exclude-checks", "positive_data_acceptance,negative_data_rejection"),
        ]
        hooks = {"SCHEMATHESIS_HOOKS": "tests.doors.http.ndjson", "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=tmp_path, env={**os.environ, **hooks}, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-8_000:]
        assert re.search(r"Operations: +(\d+) selected / \1 total", done.stdout)
