"""The examination of an installation over HTTP: the findings, for whom they are, and the command against a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

import semmem
from semmem.interfaces.cli.app import run
from semmem.interfaces.http.keys import Keys
from tests.interfaces.http.test_routes import problem
from tests.serving import serving


def test_findings_say_what_is_wrong_and_which_command_mends_it(store_url: str) -> None:
    with semmem.connect(store_url, embedder="none") as mem:
        mem.remember("The key is red.", namespace="n")
        with serving(mem) as url, httpx.Client(base_url=url, trust_env=False, timeout=60) as http:
            assert find(http, "embedding model")["detail"] == "none is needed: the setting embedder is none"
            assert find(http, "store")["detail"].startswith("1 memory in 1 namespace, ")
            assert find(http, "store") == find(http, "store") | {"state": "good", "mend": None}
    with semmem.connect(store_url, embedder="hashing") as mem, serving(mem) as url:
        mem.remember("The ferry leaves at noon.", namespace="n")
        with httpx.Client(base_url=url, trust_env=False, timeout=60) as http, semmem.connect(url) as remote:
            assert find(http, "vectors") == {
                "what": "vectors",
                "state": "bad",
                "detail": "the dense leg does not find 1 of the texts, which were stored without an embedder",
                "mend": "semmem rebuild",
            }
            assert remote.doctor() == mem.doctor()
            assert semmem.Finding(**find(http, "vectors")) in mem.doctor()
            mem.rebuild()
            assert find(http, "vectors")["detail"] == "2, made by hashing"


def test_a_store_with_given_vectors_needs_no_embedding_model(store_url: str) -> None:
    with semmem.connect(store_url) as mem:
        mem.remember("The key is red.", vector=[1.0, 0.0, 0.0])
        (found,) = [one for one in mem.doctor() if one.what == "embedding model"]
    assert (found.state, found.mend) == ("good", None)
    assert found.detail == (
        "none is needed: This store holds given vectors (external:3); pass vector=… with memory and query."
    )


def find(http: httpx.Client, what: str) -> dict[str, str]:
    (finding,) = [one for one in http.get("/v1/doctor").json()["findings"] if one["what"] == what]
    return dict(finding)


@pytest.mark.parametrize("scope", [{"right": "write"}, {"right": "admin", "namespaces": ["n"]}])
def test_a_key_that_may_not_do_all_sees_no_finding(tmp_path: Path, scope: dict[str, Any]) -> None:
    keys = Keys(tmp_path / "keys.json")
    _, text = keys.add("some", **scope)
    with semmem.connect("sqlite::memory:", embedder="none") as mem, serving(mem, keys=keys) as url:
        answer = httpx.get(f"{url}/v1/doctor", headers={"authorization": f"Bearer {text}"}, trust_env=False, timeout=60)
    assert problem(answer) == (403, "AccessDenied")


def test_the_command_with_such_a_key_counts_and_says_where_the_rest_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = Keys(tmp_path / "keys.json")
    monkeypatch.setenv("SEMMEM_KEY", keys.add("reads")[1])
    with semmem.connect("sqlite::memory:", embedder="none") as mem, serving(mem, keys=keys) as url:
        mem.remember("The key is red.")
        assert run(["doctor", "--url", url, "--json"]) == 0
        findings = {one["what"]: one for one in json.loads(capsys.readouterr().out)["findings"]}
        assert findings["server"]["detail"] == (
            f"semmem answers at {url}; run semmem doctor on its machine, or give a key that may do all, to examine "
            "the store"
        )
        assert findings["store"]["detail"].startswith("1 memory in 1 namespace")
