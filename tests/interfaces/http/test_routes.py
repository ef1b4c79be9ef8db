"""The routes: every verb of the facade under /v1, spoken to in plain HTTP."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from semmem.client.memory import Semmem
from semmem.client.routes import REFUSED, ROUTES
from semmem.interfaces.http.arguments import arguments_of
from semmem.interfaces.http.schemas import ANSWERS
from semmem.model.arguments import ARGUMENTS
from semmem.model.reports import Stats


def problem(response: httpx.Response) -> tuple[int, str]:
    """Return status and class of a problem, which has all its members."""
    assert response.headers["content-type"] == "application/problem+json"
    told = response.json()
    assert told["status"] == response.status_code
    assert told["type"] == f"urn:semmem:error:{told['class']}"
    assert told["detail"].endswith((".", "?", "!")) or told["class"] == "LegFailed"  # that ends with the reason
    assert "\n" not in told["detail"]
    return response.status_code, told["class"]


def test_every_verb_of_the_facade_has_a_route_or_is_refused_by_name() -> None:
    public = {n for n, f in inspect.getmembers(Semmem, inspect.isfunction) if not n.startswith("_")}
    served = {verb for route in ROUTES for verb in route.verbs}
    assert public - {"close"} == served | (set(REFUSED) - {"copy"})  # copy is no method: it takes two URLs
    assert not served & set(REFUSED)


def test_every_argument_and_answer_of_a_route_is_described() -> None:
    for route in ROUTES:
        loose = {p.name for p in arguments_of(route).values() if p.kind is p.VAR_KEYWORD}
        assert set(arguments_of(route)) - loose <= set(ARGUMENTS), route.name
        assert route.name in ANSWERS or route.status == 204
        assert inspect.getdoc(route.calls)


def test_a_memory_is_stored_read_changed_and_forgotten(http: httpx.Client) -> None:
    made = http.post("/v1/memories", json={"text": "The key is red.", "id": "key", "tags": ["house"]})
    tag = made.headers["etag"]
    assert (made.status_code, tag[:3], len(tag)) == (201, '"1-', 20)
    assert made.headers["location"] == "/v1/memories/key?namespace=default"
    found = http.get(made.headers["location"])
    assert (found.status_code, found.json()) == (200, made.json() | {"access_count": 0})
    assert http.post("/v1/recall", json={"query": "key"}).json()["hits"][0]["memory"]["access_count"] is None
    listed = http.get("/v1/memories", params={"sort_by": "accessed"})
    assert [(one["id"], one["access_count"]) for one in listed.json()["memories"]] == [("key", 1)]
    assert listed.json()["memories"][0]["last_accessed"] > made.json()["created_at"]
    assert problem(http.get("/v1/memories", params={"sort_by": "relevance"})) == (422, "InvalidInput")
    assert http.get("/v1/memories/key", headers={"if-none-match": f"W/{tag}"}).status_code == 304
    assert http.get("/v1/memories/key", headers={"if-none-match": "*"}).status_code == 304
    lines = [("if-none-match", '"x"'), ("if-none-match", tag)]
    assert http.get("/v1/memories/key", headers=lines).status_code == 304
    changed = http.patch("/v1/memories/key", json={"text": "The key is blue."}, headers={"if-match": tag})
    assert (changed.status_code, changed.headers["etag"][:3], changed.json()["tags"]) == (200, '"2-', ["house"])
    assert http.get("/v1/memories/key", headers={"if-none-match": tag}).json()["text"] == "The key is blue."
    gone = http.delete("/v1/memories/key")
    assert (gone.status_code, gone.json()) == (200, {"forgotten": 1, "matched": 1, "dry_run": False})
    assert problem(http.get("/v1/memories/key")) == (404, "NotFound")


def test_what_is_not_there_has_a_title_that_fits_whatever_it_is(http: httpx.Client) -> None:
    for path in ("/v1/memories/none", "/v1/nothing", "/v1/memories/none/history"):
        found = http.get(path)
        assert problem(found) == (404, "NotFound")
        title = "There is no such memory, version, recall, namespace or path."
        assert found.json()["title"] == title


def test_a_change_for_another_version_fails_its_precondition(http: httpx.Client) -> None:
    http.post("/v1/memories", json={"text": "The key is red.", "id": "key"})
    for tag in ('"2"', '"x"', '"2", "3"', 'W/"1"', 'W/"1", "2"'):
        refused = http.patch("/v1/memories/key", json={"text": "No."}, headers={"if-match": tag})
        assert problem(refused) == (412, "Conflict")
        assert "call update" not in refused.text  # that is what was called
    for tag in ("", "1", '"', "key"):
        refused = http.patch("/v1/memories/key", json={"text": "No."}, headers={"if-match": tag})
        assert problem(refused) == (422, "InvalidInput")
    assert http.get("/v1/memories/key").json()["text"] == "The key is red."
    assert http.patch("/v1/memories/key", json={"title": "Key"}, headers={"if-match": "*"}).json()["version"] == 2
    assert http.patch("/v1/memories/key", json={"title": None}).json()["title"] is None
    assert problem(http.delete("/v1/memories/key", headers={"if-match": '"1"'})) == (422, "InvalidInput")
    assert problem(http.patch("/v1/memories/none", json={"text": "x"})) == (404, "NotFound")
    assert problem(http.patch("/v1/memories/key", json={"colour": "red"})) == (422, "InvalidInput")
    for name in ("id", "namespace", "expected_version"):
        body = {name: "1"}
        assert problem(http.patch("/v1/memories/key?namespace=default", json=body)) == (422, "InvalidInput")


def test_of_several_tags_one_that_is_current_is_enough(http: httpx.Client) -> None:
    tag = http.post("/v1/memories", json={"text": "The key is red.", "id": "key"}).headers["etag"]
    for version, tags in ((2, f'"x", W/"7" ,, {tag}'), (3, '"9","2"')):
        changed = http.patch("/v1/memories/key", json={"title": tags}, headers={"if-match": tags})
        assert (changed.status_code, changed.json()["version"]) == (200, version)
    lines = [("if-match", '"8"'), ("if-match", '"3"')]
    assert http.patch("/v1/memories/key", json={"text": "Blue."}, headers=lines).json()["version"] == 4
    assert problem(http.patch("/v1/memories/none", json={"text": "x"}, headers=lines)) == (404, "NotFound")
    assert problem(http.patch("/v1/memories/key", json={"text": "x"}, headers=lines)) == (412, "Conflict")


def test_a_tag_of_a_memory_that_was_forgotten_is_none_of_its_successor(http: httpx.Client) -> None:
    stale = http.post("/v1/memories", json={"text": "The key is red.", "id": "key"}).headers["etag"]
    http.delete("/v1/memories/key")
    fresh = http.post("/v1/memories", json={"text": "The key is red.", "id": "key"}).headers["etag"]
    assert stale != fresh
    refused = http.patch("/v1/memories/key", json={"text": "No."}, headers={"if-match": stale})
    assert problem(refused) == (412, "Conflict")
    assert http.get("/v1/memories/key").headers["etag"] == fresh
    changed = http.patch("/v1/memories/key", json={"text": "Blue."}, headers={"if-match": fresh})
    assert (changed.status_code, changed.json()["version"]) == (200, 3)  # the versions of an id count on
    by_version = http.patch("/v1/memories/key", json={"text": "Green."}, headers={"if-match": '"3"'})
    assert by_version.json()["version"] == 4


def test_the_tag_of_a_sensitive_memory_is_taken_by_who_may_see_its_text(http: httpx.Client) -> None:
    http.post("/v1/memories", json={"text": "The key is red.", "id": "key", "sensitive": True})
    shown = http.get("/v1/memories/key?reveal=true")
    assert shown.json()["text"] == "The key is red."
    changed = http.patch("/v1/memories/key", json={"title": "Key"}, headers={"if-match": shown.headers["etag"]})
    assert (changed.status_code, changed.json()["version"]) == (200, 2)


def test_a_tag_of_a_memory_that_went_for_good_is_none_of_its_successor(http: httpx.Client) -> None:
    given = {"text": "The key is red.", "id": "key", "created_at": "2026-01-31T00:00:00Z"}
    stale = http.post("/v1/memories", json={**given, "tags": ["house"]}).headers["etag"]
    assert http.delete("/v1/memories/key?hard=true").status_code == 200
    fresh = http.post("/v1/memories", json=given).headers["etag"]
    assert (stale[:3], fresh[:3], stale == fresh) == ('"1-', '"1-', False)
    refused = http.patch("/v1/memories/key", json={"text": "No."}, headers={"if-match": stale})
    assert (problem(refused), refused.json()["detail"][:49]) == (
        (412, "Conflict"), "The memory 'key' was stored anew since, after it "
    )  # fmt: skip
    assert http.patch("/v1/memories/key", json={"text": "Blue."}, headers={"if-match": fresh}).json()["version"] == 2


@pytest.mark.parametrize("sort_by", ["created", "importance", "updated"])
def test_a_page_ends_before_it_is_too_large_and_the_next_one_goes_on_behind_it(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch, sort_by: str
) -> None:
    monkeypatch.setattr("semmem.interfaces.http.app._PAGE_BYTES", 50_000)
    for n in range(30):
        size = 200_000 if n == 7 else 6_000
        http.post("/v1/memories", json={"text": "x" * size, "id": f"{n:02}", "created_at": f"2026-01-01T00:00:{n:02}Z"})
    sizes, ids, cursor = list[int](), list[str](), None
    while cursor is not None or not sizes:
        page = http.get(
            "/v1/memories", params={"limit": 30, "sort_by": sort_by, **({"cursor": cursor} if cursor else {})}
        ).json()
        sizes.append(len(page["memories"]))
        ids += [one["id"] for one in page["memories"]]
        cursor = page["cursor"]
    assert sizes == [7, 7, 7, 1, 1, 7]
    assert ids == [f"{n:02}" for n in range(29, -1, -1)]
    assert len(http.get("/v1/memories", params={"limit": 3}).json()["memories"]) == 3


@pytest.mark.parametrize("id", ["a/b", "a%2Fb", "..", ".", "a b?c#d", "é\u2028", "explain", "a/explain", "%"])
def test_an_id_may_hold_whatever_an_id_holds(http: httpx.Client, id: str) -> None:
    made = http.post("/v1/memories", json={"text": "The key is red.", "id": id})
    assert made.status_code == 201
    assert http.get(made.headers["location"]).json()["id"] == id
    assert http.delete(made.headers["location"]).json()["forgotten"] == 1


def test_the_same_id_with_other_content_is_a_conflict(http: httpx.Client) -> None:
    for _ in range(2):
        assert http.post("/v1/memories", json={"text": "The key is red.", "id": "key"}).status_code == 201
    refused = http.post("/v1/memories", json={"text": "The key is blue.", "id": "key"})
    assert problem(refused) == (409, "Conflict")
    assert refused.json()["names"] == [["default", "key"]]


def test_a_list_is_paged_by_its_cursor_and_narrowed_by_filters(http: httpx.Client) -> None:
    for number in range(5):
        author = "Ada" if number % 2 else "Ben"
        body = {"text": f"Note {number}.", "id": str(number), "author": author, "metadata": {"n": number}}
        http.post("/v1/memories", json=body | {"created_at": f"2026-01-0{number + 1}"})
    seen, cursor = [], None
    for _ in range(3):
        page = http.get("/v1/memories", params={"limit": 2} | ({"cursor": cursor} if cursor else {})).json()
        seen += [one["id"] for one in page["memories"]]
        cursor = page["cursor"]
    assert (seen, cursor) == (["4", "3", "2", "1", "0"], None)

    def ids(**params: Any) -> list[str]:
        return [one["id"] for one in http.get("/v1/memories", params=params).json()["memories"]]

    assert ids(author="Ada") == ["3", "1"]
    assert ids(authors=["Ada", "Ben"]) == ["4", "3", "2", "1", "0"]
    assert ids(metadata='{"n": 3}') == ["3"]
    assert ids(created_after="2026-01-04", author="Ben") == ["4"]
    for wrong in ({"limit": "many"}, {"limit": 0}, {"limt": 2}, {"cursor": "x"}, {"metadata": "{"}, {"authors": ""}):
        response = http.get("/v1/memories", params=wrong)
        if wrong != {"authors": ""}:
            assert problem(response) == (422, "InvalidInput")
    assert "limt" in http.get("/v1/memories", params={"limt": 2}).json()["detail"]


def test_a_recall_answers_with_scores_components_and_reasons(http: httpx.Client) -> None:
    http.post("/v1/memories", json={"text": "The key hangs behind the radio.", "id": "key", "session": "s"})
    http.post("/v1/memories", json={"text": "The ferry leaves at noon.", "id": "ferry"})
    body = {"query": "where is the key?", "limit": 3, "filters": {"sessions": ["s"]}}
    found = http.post("/v1/recall", json=body).json()
    (hit,) = found["hits"]
    assert (hit["id"], found["total"], found["recipe"]) == ("key", 1, "default")
    assert sum(hit["components"].values()) == pytest.approx(hit["score"], abs=1e-12)
    assert set(found["degraded"]) == {"dense"}
    by_url = http.get("/v1/recall", params={"query": "where is the key?", "limit": 3, "session": "s"}).json()
    assert by_url["hits"] == found["hits"]
    block = http.post("/v1/context", json={**body, "token_budget": 300}).json()
    assert [hit["id"] for hit in block["hits"]] == ["key"]
    assert "behind the radio" in block["text"]
    assert http.get("/v1/context", params={"query": "where is the key?", "limit": 3}).json()["text"] == block["text"]
    left_out = http.post("/v1/recall", json={**body, "token_budget": 5}).json()
    assert (left_out["hits"], [one["id"] for one in left_out["left_out"]]) == ([], ["key"])
    why = http.post("/v1/memories/key/explain", json=body).json()
    assert (why["rank"], why["returned"], why["legs"]["lexical"]["rank"]) == (1, True, 1)
    out = http.get("/v1/memories/ferry/explain", params={"query": "where is the key?", "session": "s"}).json()
    assert (out["returned"], out["legs"]["lexical"]["status"][:12]) == (False, "out of scope")
    assert problem(http.post("/v1/recall", json={"query": " "})) == (422, "InvalidInput")
    assert problem(http.post("/v1/recall", json={})) == (422, "InvalidInput")
    assert problem(http.post("/v1/recall", json={"query": "key", "recipe": "nope"})) == (422, "UnknownRecipe")
    assert problem(http.get("/v1/memories/none/explain", params={"query": "key"})) == (404, "NotFound")
    searched = http.post("/v1/legs/lexical/search", json={"query": "key"}).json()
    assert [one["id"] for one in searched["results"]] == ["key"]
    assert problem(http.post("/v1/legs/nope/search", json={"query": "key"})) == (422, "InvalidInput")
    assert problem(http.post("/v1/legs/dense/search", json={"query": "key"})) == (503, "LegFailed")


def test_a_recipe_may_be_sent_as_changes_and_loads_no_model(http: httpx.Client) -> None:
    http.post("/v1/memories", json={"text": "The key is red.", "id": "key"})
    plan = {"name": "lexical", "rank_constants": {"lexical": 9}}
    found = http.post("/v1/recall", json={"query": "key", "recipe": plan}).json()
    assert found["plan"]["rank_constants"] == {"lexical": 9}
    why = http.post("/v1/memories/key/explain", json={"query": "key", "recipe": plan}).json()
    assert "1 / (9 + 1)" in why["legs"]["lexical"]["status"]
    for wrong in ({"rerank": "cross_encoder:anything"}, {"weights": 5}, {"name": "mine"}, {"colour": "red"}, 5):
        response = http.post("/v1/recall", json={"query": "key", "recipe": wrong})
        assert problem(response)[0] == 422


def test_reach_is_told_by_name_by_changes_and_for_a_namespace(http: httpx.Client) -> None:
    assert http.get("/v1/reach", params={"recipe": "seed"}).json()["recipe"] == "seed"
    told = http.get("/v1/reach", params={"recipe": "seed", "k": 10}).json()["regimes"]["any"]["legs"]["graph"]
    assert told["class"] == "boost-only"
    changed = {"recipe": {"name": "seed", "weights": {"graph": 2}}, "k": 10}
    told = http.post("/v1/reach", json=changed).json()["regimes"]["any"]["legs"]["graph"]
    assert told["class"] == "possible"
    http.patch("/v1/settings", params={"namespace": "n"}, json={"weights": {"graph": 0}})
    told = http.get("/v1/reach", params={"namespace": "n"}).json()["regimes"]["any"]["legs"]
    assert told["graph"]["class"] == "unreachable"
    assert problem(http.post("/v1/probe", json={"k": 1_001})) == (422, "InvalidInput")
    far = {"query": "key", "limit": 1_000, "offset": 1}
    assert problem(http.post("/v1/recall/reach", json=far)) == (422, "InvalidInput")
    for wrong in ({"k": 0}, {"k": 2**60}, {"k": "x"}, {"scope_size": "x"}, {"scope_size": -1}):
        assert problem(http.get("/v1/reach", params=wrong)) == (422, "InvalidInput")
    assert problem(http.get("/v1/reach", params={"namespace": "n", "recipe": "seed"})) == (422, "InvalidInput")


def test_counts_namespaces_export_and_forgetting_by_filters(http: httpx.Client) -> None:
    lines = "".join(
        json.dumps({"text": f"Note {n}.", "session": str(n % 2), "namespace": "a"}) + "\n" for n in range(4)
    )
    made = http.post("/v1/memories", content=lines, headers={"content-type": "application/x-ndjson"})
    assert (made.status_code, made.json()["remembered"]) == (200, 4)
    assert http.get("/v1/stats").json()["memories"] == 4
    assert [one["name"] for one in http.get("/v1/namespaces").json()["namespaces"]] == ["a"]
    exported = http.get("/v1/export", params={"namespace": "a"})
    assert exported.headers["content-type"] == "application/x-ndjson"
    assert len([json.loads(line) for line in exported.text.splitlines()]) == 4
    assert len(http.get("/v1/export", params={"everything": "true", "session": "1"}).text.splitlines()) == 2
    body = {"namespace": "a", "filters": {"sessions": ["1"]}}
    assert http.post("/v1/forget", json=body | {"dry_run": True}).json()["matched"] == 2
    assert http.post("/v1/forget", json=body).json()["forgotten"] == 2
    assert problem(http.post("/v1/forget", json={"namespace": "a"})) == (422, "InvalidInput")
    assert http.get("/v1/stats", params={"namespace": "a"}).json()["memories"] == 2
    assert http.post("/v1/maintain").status_code == 200
    for body in ({"": 1}, {"extract": True}):
        assert problem(http.post("/v1/maintain", json=body)) == (422, "InvalidInput")
    for wrong in ({"vectors": "AAA"}, {"everything": "1"}, {"vectors": ["true", "true"]}):
        assert problem(http.get("/v1/export", params=wrong)) == (422, "InvalidInput")
    assert problem(http.post("/v1/recall", json={"query": "x", "fold_parts": 1})) == (422, "InvalidInput")


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 422),
        (b"[]", "application/json", 422),
        (b'"x"', "application/json", 422),
        (b'{"text": NaN}', "application/json", 422),
        (b"[" * 100_000, "application/json", 422),
        (b'{"text": "\xff"}', "application/json", 422),
        (b'{"text": "a\\u0000b"}', "application/json", 422),
        (b'{"text": "half \\ud800"}', "application/json", 422),
        (b'{"text": 5}', "application/json", 422),
        (b'{"text": "x", "importance": 2}', "application/json", 422),
        (b'{"text": "x", "position": ' + b"9" * 5_000 + b"}", "application/json", 422),
        (b'{"text": "x", "colour": "red"}', "application/json", 422),
        (b"", "application/json", 422),
        (b"text=x", "application/x-www-form-urlencoded", 415),
        (b'{"text": "x"}', "text/plain", 415),  # what a page of a browser may send without asking first
    ],
)
def test_a_body_that_cannot_be_used_is_told_in_one_sentence(
    http: httpx.Client, mem: Semmem, body: bytes, kind: str, status: int
) -> None:
    refused = http.post("/v1/memories", content=body, headers={"content-type": kind})
    assert problem(refused) == (status, "InvalidInput")
    assert mem.stats().memories == 0


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/v1/recall", "recall needs the argument 'query'."),
        ("/v1/recall?query=x&colour=red", "recall has no argument 'colour'; it takes query, namespace,"),
        ("/v1/context?colour=red", "context has no argument 'colour'; it takes query,"),
    ],
)
def test_arguments_in_the_url_are_refused_by_the_name_of_the_verb(http: httpx.Client, path: str, sentence: str) -> None:
    refused = http.get(path)
    assert problem(refused) == (422, "InvalidInput")
    assert refused.json()["detail"].startswith(sentence)


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("tag=nope&tags=t", "tags"),
        ("tags=t&tag=nope", "tags"),
        ('filters={"tags":["nope"]}&tags=t', "tags"),
        ('tag=t&filters={"authors":["Ada"],"tags":["nope"]}', "tags"),
        ('author=Ada&filters={"authors":["Ada"]}', "authors"),
    ],
)
def test_a_filter_that_a_url_gives_under_two_names_is_refused_and_nothing_is_forgotten(
    http: httpx.Client, mem: Semmem, query: str, name: str
) -> None:
    mem.remember("The ferry leaves at noon.", id="ferry", tags=["t"])
    refusals = [http.get(f"/v1/memories?{query}"), http.delete(f"/v1/memories/ferry?{query}")]
    assert [problem(one) for one in refusals] == [(422, "InvalidInput")] * 2
    assert [one.json()["detail"] for one in refusals] == [f"{name} is given twice; give it once."] * 2
    assert mem.get("ferry").tags == ("t",)


def test_a_name_that_a_url_gives_in_the_singular_and_in_the_plural_is_refused(http: httpx.Client, mem: Semmem) -> None:
    mem.configure(weights={"lexical": 2, "graph": 0.5})
    refused = http.delete("/v1/settings?name=weights.graph&names=weights.lexical")
    assert problem(refused) == (422, "InvalidInput")
    assert mem.settings_of() == {"weights.lexical": 2, "weights.graph": 0.5}


@pytest.mark.parametrize("path", ["/v1/memories?", "/v1/recall?query=ferry&", "/v1/export?"])
def test_filters_that_are_no_object_are_refused_alone_and_beside_a_filter_of_its_own_name(
    http: httpx.Client, mem: Semmem, path: str
) -> None:
    mem.remember("The ferry leaves at noon.", id="ferry", tags=["t"])
    for wrong in ("[1]", "5", '"tags"', "true"):
        alone, beside = http.get(f"{path}filters={wrong}"), http.get(f"{path}tags=t&filters={wrong}")
        assert problem(alone) == problem(beside) == (422, "InvalidInput")
        assert alone.json()["detail"] == beside.json()["detail"]
    for query in ("filters=null", "filters=null&tags=t", 'filters={"tags":["t"]}', 'author=Ada&filters={"tags":["t"]}'):
        assert http.get(f"{path}{query}").status_code == 200


def test_a_path_or_method_that_is_not_there_is_a_problem_too(http: httpx.Client) -> None:
    nothing = http.get("/v1/v1/recall")
    assert problem(nothing) == (404, "NotFound")
    assert nothing.json()["detail"] == (
        "There is nothing at this path; paths begin with /v1, which the URL of a store leaves out, and "
        "/openapi.json lists them."
    )
    assert problem(http.get("/v1")) == (404, "NotFound")
    assert problem(http.get("/v1/memories/")) == (404, "NotFound")
    wrong = http.put("/v1/memories/key")
    assert problem(wrong) == (405, "InvalidInput")
    assert wrong.headers["allow"] == "DELETE, GET, PATCH"
    for verb in REFUSED:
        assert problem(http.post(f"/v1/{verb}")) == (501, "LocalOnly")


def test_counts_say_which_of_them_are_estimates(
    http: httpx.Client, mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = mem.store.stats(None)

    def stats(_: str | None, *, exact: bool) -> Stats:
        return counted if exact else replace(counted, estimated=("concepts", "mentions"))

    monkeypatch.setattr(mem.store, "stats", stats)
    assert http.get("/v1/stats").json()["estimated"] == ["concepts", "mentions"]
    assert http.get("/v1/stats", params={"exact": "true"}).json()["estimated"] == []


def test_what_is_no_error_of_semmem_says_nothing_of_the_server(
    http: httpx.Client, mem: Semmem, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("the secret of the house")

    monkeypatch.setattr(mem.store, "stats", broken)
    failed = http.get("/v1/stats")
    assert problem(failed) == (500, "SemmemError")
    assert "secret" not in failed.text
    assert "the secret of the house" in caplog.text
