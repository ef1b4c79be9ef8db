"""What a key lets through, at every route; Host and Origin of a running server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.client.routes import ROUTES, Route
from semmem.interfaces.http.guard import Guard
from semmem.interfaces.http.keys import Key, Keys, KeySet, ServerKeys, StoredKeys
from semmem.interfaces.http.server import Server
from semmem.model.errors import InvalidInput, StoreUnavailable
from tests.interfaces.http.test_routes import problem
from tests.serving import running, serving


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys") / "keys.json")


@pytest.fixture(scope="module")
def tokens(keys: Keys) -> dict[str, str]:
    return {
        "all": keys.add("all", right="admin")[1],
        "writes": keys.add("writes", right="write")[1],
        "reads": keys.add("reads")[1],
        "team": keys.add("team", right="write", namespaces=["team", "notes"])[1],
        "team-reads": keys.add("team-reads", namespaces=["team"])[1],
    }


@pytest.fixture(scope="module")
def shared() -> Iterator[Semmem]:
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        mem.remember("The key is red.", id="key", namespace="team")
        mem.remember("The ferry leaves at noon.", id="ferry", namespace="other")
        yield mem


@pytest.fixture(scope="module")
def guarded(shared: Semmem, keys: Keys, tokens: dict[str, str]) -> Iterator[Server]:
    guard = Guard.of(["memories.example"], ["https://notes.example"])
    with running(shared, keys=keys, guard=guard) as server:
        yield server


def client(server: Server, token: str | None) -> httpx.Client:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    return httpx.Client(base_url=server.url, headers=headers, timeout=60.0, trust_env=False)


def ask(http: httpx.Client, route: Route, namespace: str = "team") -> httpx.Response:
    path = route.path.replace("{id}", "key").replace("{name}", "recall")
    body = {
        "query": "key",
        "text": "x",
        "a": "a",
        "b": "b",
        "name": "a",
        "id": "none",
        "messages": [],
        "session": "s",
        "type": "see-also",
        "to": "other",
        "weights": {"lexical": 1},
        "recall_id": "none",
        "new": "other",
    }
    if route.form == "lines":
        headers = {"content-type": "application/x-ndjson"}
        return http.request(route.method, path, params={"namespace": namespace}, content=b"", headers=headers)
    if route.form == "json":
        known = [name for name in body if name in str(route.calls.__annotations__) or route.name == "configure"]
        given = {name: body[name] for name in known if name == "weights" or route.name != "configure"}
        given.pop("weights", None) if route.name != "configure" else None
        given.pop("name", None) if "{name}" in route.path else None
        return http.request(route.method, path, params={"namespace": namespace}, json=given)
    params = {"namespace": namespace, "query": "key"}
    return http.request(route.method, path, params=params)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_every_route_wants_a_key_and_the_right_to_do_it(guarded: Server, tokens: dict[str, str], route: Route) -> None:
    with client(guarded, None) as http:
        refused = ask(http, route)
        assert problem(refused) == (401, "KeyRequired")
        assert refused.headers["www-authenticate"] == "Bearer"
    if route.right != "read":
        with client(guarded, tokens["reads" if route.right == "write" else "writes"]) as http:
            given = {"namespace": "team", "text": "x", "a": "a", "b": "b", "name": "a", "messages": [], "session": "s"}
            given |= {"type": "see-also", "to": "other", "recall_id": "none", "new": "other"}
            names = {n: v for n, v in given.items() if n in route.calls.__annotations__}
            names = {"weights": {}} if route.name == "configure" else names
            names.pop("namespace", None) if route.name == "update" else None
            names.pop("name", None) if "{name}" in route.path else None
            path = route.path.replace("{id}", "key")
            lines = {"content-type": "application/x-ndjson"}
            refused = (
                http.request(route.method, path, json=names)
                if route.form == "json"
                else http.request(
                    route.method,
                    path,
                    headers=lines if route.form == "lines" else {},
                    params={"type": "see-also", "to": "other"} if route.name == "unlink" else {},
                )
            )
            assert problem(refused) == (403, "AccessDenied")
            assert refused.json()["detail"].endswith(
                f"make a key that has it with `semmem keys add NAME --{route.right}`."
            )


@pytest.mark.slow
def test_a_key_of_some_namespaces_reaches_no_other(guarded: Server, tokens: dict[str, str], shared: Semmem) -> None:
    with client(guarded, tokens["team"]) as http:
        assert http.get("/v1/memories/key", params={"namespace": "team"}).json()["id"] == "key"
        assert http.post("/v1/recall", json={"query": "key", "namespace": ["team", "notes"]}).status_code == 200
        assert [one["name"] for one in http.get("/v1/namespaces").json()["namespaces"]] == ["team"]
        counts = http.get("/v1/stats", params={"namespace": "team"}).json()
        assert (counts["memories"], counts["bytes"]) == (1, None), "the bytes of the store tell what others store"
        assert http.get("/v1/reach").status_code == 200
        refused = [
            http.get("/v1/memories/ferry", params={"namespace": "other"}),
            http.get("/v1/memories"),
            http.get("/v1/stats"),
            http.get("/v1/export", params={"everything": "true", "namespace": "team"}),
            http.post("/v1/recall", json={"query": "ferry", "namespace": ["team", "other"]}),
            http.post("/v1/recall", json={"query": "ferry", "namespace": {"team": 1}}),
            http.post("/v1/legs/recall/search", json={"query": "ferry", "namespace": "other"}),
            http.post("/v1/memories", json={"text": "x", "namespace": "other"}),
            http.post("/v1/memories", content=b'{"text": "x", "namespace": "other"}\n', params={"namespace": "team"},
                      headers={"content-type": "application/x-ndjson"}),
            http.post("/v1/bring-in", content=b'{"arguments": {"namespace": "other"}}\n{"text": "x"}\n',
                      headers={"content-type": "application/x-ndjson"}),
            http.patch("/v1/settings", params={"namespace": "other"}, json={"weights": {"lexical": 1}}),
            http.get("/v1/reach", params={"namespace": "other"}),
            http.post("/v1/forget", json={"namespace": "other", "everything": True}),
            http.post("/v1/maintain"),
            http.post("/v1/probe"),
        ]  # fmt: skip
        assert [problem(one) for one in refused] == [(403, "AccessDenied")] * len(refused)
        assert http.post("/v1/memories", json={"text": "x", "id": "x", "namespace": "notes"}).status_code == 201
    assert (shared.stats(namespace="other").memories, shared.stats(namespace="default").memories) == (1, 0)
    with client(guarded, tokens["team-reads"]) as http:
        assert problem(http.delete("/v1/memories/key", params={"namespace": "team"})) == (403, "AccessDenied")
        assert http.get("/v1/memories", params={"namespace": "team"}).status_code == 200


def test_a_key_that_may_only_read_is_told_the_limits_of_a_namespace_and_changes_none(
    guarded: Server, tokens: dict[str, str], shared: Semmem
) -> None:
    shared.namespace_limits("team", most_memories=9_000)
    with semmem.connect(guarded.url, key=tokens["reads"]) as remote:
        assert remote.namespace_limits("team") == shared.namespace_limits("team")
        assert remote.namespace_limits("team", keep_days=None).most_memories == 9_000
        with pytest.raises(semmem.AccessDenied, match="this needs the right admin"):
            remote.namespace_limits("team", most_memories=1)
    with semmem.connect(guarded.url, key=tokens["all"]) as remote:
        assert remote.namespace_limits("team", most_memories=0) == shared.namespace_limits("team")
    assert shared.namespace_limits("team").most_memories is None


def test_the_recipe_of_a_server_is_told_to_any_key_and_is_not_that_of_the_default_namespace(
    guarded: Server, tokens: dict[str, str], shared: Semmem
) -> None:
    shared.configure(weights={"lexical": 2.5})
    try:
        for name in ("all", "reads", "team", "team-reads"):
            with semmem.connect(guarded.url, key=tokens[name]) as remote:
                assert remote.recipe == shared.recipe
    finally:
        shared.unset_settings()


def test_only_a_key_of_the_whole_store_rewrites_its_files(
    shared: Semmem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, scrubbed = Keys(tmp_path / "keys.json"), list[str]()
    monkeypatch.setattr(shared.store, "scrub", lambda: scrubbed.append("all"))
    some, every = (keys.add(n, right="write", namespaces=where)[1] for n, where in (("some", ["n"]), ("every", None)))
    shared.remember("The key is red.", namespace="n", id="hard")
    asked = {"id": "hard", "namespace": "n", "hard": True}
    with running(shared, keys=keys) as server:
        with client(server, some) as http:
            refused = http.post("/v1/forget", json=asked)
            assert problem(refused) == (403, "AccessDenied")
            assert problem(http.delete("/v1/memories/hard?namespace=n&hard=true")) == (403, "AccessDenied")
        assert (shared.get("hard", namespace="n").id, scrubbed) == ("hard", [])
        with client(server, every) as http:
            assert http.post("/v1/forget", json=asked).json()["forgotten"] == 1
    assert scrubbed == ["all"]


def test_what_a_server_says_of_itself_needs_no_key_and_its_counters_do(guarded: Server) -> None:
    with client(guarded, None) as http:
        for path in ("/healthz", "/readyz", "/openapi.json"):
            assert http.get(path).status_code == 200
        assert problem(http.get("/metrics")) == (401, "KeyRequired")


def test_a_page_under_another_name_is_refused(guarded: Server, tokens: dict[str, str]) -> None:
    with client(guarded, tokens["all"]) as http:
        for headers, status in (
            ({"host": "evil.example"}, 403),
            ({"host": "memories.example"}, 200),
            ({"origin": "https://evil.example"}, 403),
            ({"origin": "https://notes.example"}, 200),
            ({"origin": guarded.url}, 200),
        ):
            assert http.get("/v1/stats", headers=headers).status_code == status, headers


def test_a_page_that_was_allowed_gets_what_its_browser_asks_for(guarded: Server, tokens: dict[str, str]) -> None:
    page = {"origin": "https://notes.example"}
    wanted = {"access-control-request-method": "PATCH", "access-control-request-headers": "authorization,if-match"}
    with client(guarded, None) as http:
        first = http.options("/v1/memories/key", headers=page | wanted)
        assert (first.status_code, first.headers["access-control-allow-origin"]) == (200, "https://notes.example")
        assert "PATCH" in first.headers["access-control-allow-methods"]
        refused = http.get("/v1/stats", headers=page)
        assert (problem(refused)[0], refused.headers["access-control-allow-origin"]) == (401, "https://notes.example")
        other = http.options("/v1/memories/key", headers={"origin": "https://evil.example"} | wanted)
        assert (other.status_code, "access-control-allow-origin" in other.headers) == (400, False)
    with client(guarded, tokens["all"]) as http:
        answer = http.get("/v1/memories/key", params={"namespace": "team"}, headers=page)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "https://notes.example")
        assert "ETag" in answer.headers["access-control-expose-headers"]
        assert "access-control-allow-origin" not in http.get("/v1/stats").headers


def test_a_key_that_is_removed_is_refused_at_the_next_request(shared: Semmem, tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys.json")
    _, text = keys.add("laptop")
    with running(shared, keys=keys) as server, client(server, text) as http:
        assert http.get("/v1/stats").status_code == 200
        keys.remove("laptop")  # the last one: a server that had a key is then open to nobody
        assert problem(http.get("/v1/stats")) == (401, "KeyRequired")


def test_an_address_that_cannot_be_had_is_told_in_one_sentence(shared: Semmem, tmp_path: Path) -> None:
    none = Keys(tmp_path / "keys.json")
    with serving(shared) as url:
        taken = int(url.rpartition(":")[2])
        with pytest.raises(InvalidInput, match=f"The port {taken} of 127.0.0.1 is not available"):
            Server(shared, port=taken, keys=none)
    with pytest.raises(InvalidInput, match="semmem keys add"):
        Server(shared, host="0.0.0.0", port=0, keys=none)
    with pytest.raises(InvalidInput, match="--port must be a whole number from 0 to 65535"):
        Server(shared, port=70_000, keys=none)
    none.add("laptop")
    with pytest.raises(InvalidInput, match=r"192\.0\.2\.1"):  # an address of nobody's
        Server(shared, host="192.0.2.1", port=0, keys=none)


@pytest.mark.slow
def test_a_key_in_the_store_counts_at_two_servers_within_two_seconds(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/notes.db"
    with (
        semmem.connect(url) as one,
        semmem.connect(url) as two,
        running(one) as first,
        running(two) as second,
        client(first, None) as a,
        client(second, None) as b,
    ):
        assert [http.get("/v1/stats").status_code for http in (a, b)] == [200, 200]
        serving_keys = one.store.serving
        assert serving_keys is not None
        stored = StoredKeys(serving_keys)
        _, text = stored.add("laptop", right="write")
        time.sleep(1.1)
        for http in (a, b):
            assert problem(http.get("/v1/stats")) == (401, "KeyRequired")
        headers = {"authorization": f"Bearer {text}"}
        _, _, other = stored.rotate("laptop", overlap=timedelta(minutes=1))
        once = {"idempotency-key": "one"}
        time.sleep(1.1)
        made = a.post("/v1/memories", json={"text": "x"}, headers=headers | once)
        again = b.post(
            "/v1/memories", json={"text": "x"}, headers=once | {"authorization": f"Bearer {other}"}
        )  # the successor of a key repeats what it sent
        assert (made.status_code, again.content) == (201, made.content)
        _, stranger = stored.add("stranger", right="write")
        time.sleep(1.1)
        theirs = b.post("/v1/memories", json={"text": "y"}, headers=once | {"authorization": f"Bearer {stranger}"})
        assert (theirs.status_code, theirs.json()["text"]) == (201, "y")
        stored.remove("laptop")
        stored.remove("stranger")
        time.sleep(1.1)
        for http in (a, b):  # the last key is gone, and the servers stay closed
            assert problem(http.get("/v1/stats", headers=headers)) == (401, "KeyRequired")


def test_only_a_key_that_may_admin_forgets_a_namespace_whole(guarded: Server, tokens: dict[str, str]) -> None:
    with client(guarded, tokens["writes"]) as http:
        for path, body in (("/v1/forget", {"everything": True, "namespace": "gone"}), ("/v1/maintain", {})):
            refused = http.post(path, json=body)
            assert problem(refused) == (403, "AccessDenied")
            assert "this needs the right admin" in refused.json()["detail"]


def test_keys_that_cannot_be_read_let_nobody_in_after_ten_seconds() -> None:
    class Silent:
        """A store that answers once."""

        calls = 0

        def key_list(self) -> list[dict[str, Any]]:
            self.calls += 1
            if self.calls > 1:
                raise StoreUnavailable("The server has gone.")
            return [asdict(Key("laptop", "1", "", "read", None, "2026-01-01T00:00:00+00:00"))]

    stored = StoredKeys(Silent())  # type: ignore[arg-type]
    server_keys = ServerKeys(NoKeys(), lambda: None)  # type: ignore[arg-type,return-value]
    server_keys._stored, server_keys._opened = stored, None
    assert set(asyncio.run(server_keys.fresh())) == {"1"}
    assert stored._cached is not None
    stored._cached = (stored._cached[0] - 5.0, stored._cached[1])
    assert set(asyncio.run(server_keys.fresh())) == {"1"}
    stored._cached = (stored._cached[0] - 5.5, stored._cached[1])
    with pytest.raises(StoreUnavailable, match="The server has gone"):
        asyncio.run(server_keys.fresh())


class NoKeys(KeySet):
    """No key at all."""

    def _by_id(self) -> dict[str, Key]:
        return {}

    def _change(self, change: Any) -> None:
        raise AssertionError
