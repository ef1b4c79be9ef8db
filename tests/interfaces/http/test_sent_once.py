"""Idempotency-Key: every writing verb, two servers over one store, and what the store keeps of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.client.routes import ROUTES, TOGETHER
from semmem.model.errors import StoreUnavailable
from tests.interfaces.http.test_routes import problem
from tests.serving import serving


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def url(request: pytest.FixtureRequest, tmp_path: Any) -> str:
    """The URL of an empty store of each kind."""
    if request.param == "SQLite":
        return f"sqlite://{tmp_path}/notes.db"
    return str(request.getfixturevalue("store_url"))


@pytest.fixture
def two(url: str) -> Iterator[tuple[Semmem, httpx.Client, httpx.Client]]:
    """A store with some memories, and clients of two servers over it, each with a connection of its own."""
    with (
        semmem.connect(url, embedder="hashing", recall_log=True) as one,
        semmem.connect(url, embedder="hashing", recall_log=True) as other,
        serving(one) as first,
        serving(other) as second,
        httpx.Client(base_url=first, timeout=60, trust_env=False) as a,
        httpx.Client(base_url=second, timeout=60, trust_env=False) as b,
    ):
        one.remember("The key is red.", id="key")
        one.remember("The ferry leaves at noon.", id="ferry")
        one.remember("Ada Lovelace met Charles Babbage.", id="boat")
        yield one, a, b


WRITES: dict[str, tuple[str, str, Any]] = {
    "remember": ("POST", "/v1/memories", {"text": "Tea is at four."}),
    "remember_messages": (
        "POST", "/v1/messages", {"session": "s", "messages": [{"role": "user", "content": "I drink tea."}]},
    ),
    "update": ("PATCH", "/v1/memories/key", {"text": "The key is blue."}),
    "restore_memory": ("POST", "/v1/memories/gone/restore", {}),
    "forget": ("POST", "/v1/forget", {"id": "key"}),
    "forget_one": ("DELETE", "/v1/memories/key", None),
    "link": ("POST", "/v1/memories/key/links", {"type": "see-also", "to": "ferry"}),
    "unlink": ("DELETE", "/v1/memories/boat/links?type=see-also&to=ferry", None),
    "configure": ("PATCH", "/v1/settings", {"weights": {"lexical": 2.0}}),
    "unset_settings": ("DELETE", "/v1/settings", None),
    "set_namespace_limits": ("PATCH", "/v1/namespaces/default/limits", {"most_memories": 1000}),
    "drop_namespace": ("DELETE", "/v1/namespaces/other", None),
    "rename_namespace": ("POST", "/v1/namespaces/other/rename", {"new": "else"}),
    "copy_namespace": ("POST", "/v1/namespaces/other/copy", {"new": "else"}),
    "maintain": ("POST", "/v1/maintain", {}),
    "merge_concepts": ("POST", "/v1/concepts/merge", {"a": "Ada Lovelace", "b": "Charles Babbage"}),
    "split_concept": ("POST", "/v1/concepts/split", {"name": "Ada Lovelace"}),
}  # fmt: skip


def prepared(mem: Semmem, verb: str) -> None:
    """Store what a verb needs."""
    if verb == "restore_memory":
        mem.remember("Gone.", id="gone")
        mem.forget("gone")
    if verb == "unlink":
        mem.link("boat", type="see-also", to="ferry")
    if verb.endswith("_namespace"):
        mem.remember("Elsewhere.", namespace="other", id="o")
    if verb == "split_concept":
        mem.merge_concepts("Ada Lovelace", "Charles Babbage")


@pytest.mark.slow
@pytest.mark.parametrize("verb", WRITES)
def test_a_write_sent_again_to_another_server_gets_the_first_answer(
    two: tuple[Semmem, httpx.Client, httpx.Client], verb: str
) -> None:
    mem, a, b = two
    if verb in ("merge_concepts", "split_concept") and mem.store.graph is None:
        pytest.skip("a SQLite store keeps no graph")
    prepared(mem, verb)
    method, path, body = WRITES[verb]
    once = {"idempotency-key": "one"}
    first = a.request(method, path, json=body, headers=once)
    assert first.status_code < 300, first.text
    before = replace(mem.store.stats(None), bytes=0)  # a flush in the background changes these
    again = b.request(method, path, json=body, headers=once)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers.get("etag") == first.headers.get("etag")
    assert again.headers.get("location") == first.headers.get("location")
    assert replace(mem.store.stats(None), bytes=0) == before
    assert len(mem.history("key")) == (2 if verb == "update" else 1)


def test_the_table_above_has_every_writing_route() -> None:
    untold = {route.name for route in ROUTES if route.right != "read" and route.form != "lines"} - set(WRITES)
    assert untold == {"feedback", "probe", "doctor", "audit"}  # the next test; the others leave nothing
    assert set(WRITES) | {"feedback"} >= TOGETHER


def test_feedback_sent_again_to_another_server_gets_the_first_answer(
    two: tuple[Semmem, httpx.Client, httpx.Client],
) -> None:
    mem, a, b = two
    recalled = mem.recall("key")
    body = {"recall_id": recalled.id, "useful": [recalled.hits[0].id]}
    answers = [one.post("/v1/feedback", json=body, headers={"idempotency-key": "f"}) for one in (a, b)]
    assert [one.status_code for one in answers] == [200, 200]
    assert answers[0].content == answers[1].content


def test_another_body_with_the_same_key_is_refused_by_another_server(
    two: tuple[Semmem, httpx.Client, httpx.Client],
) -> None:
    _, a, b = two
    once = {"idempotency-key": "one"}
    assert a.post("/v1/memories", json={"text": "Tea."}, headers=once).status_code == 201
    other = b.post("/v1/memories", json={"text": "Coffee."}, headers=once)
    assert problem(other) == (422, "InvalidInput")
    assert "was used for another request" in other.json()["detail"]
    elsewhere = {"text": "Coffee.", "namespace": "other"}  # a key counts within its namespace
    assert b.post("/v1/memories", json=elsewhere, headers=once).status_code == 201


def test_a_write_that_fails_leaves_nothing_and_may_be_sent_again(
    two: tuple[Semmem, httpx.Client, httpx.Client],
) -> None:
    mem, a, b = two
    once = {"idempotency-key": "one"}
    assert a.request("PATCH", "/v1/memories/none", json={"text": "x"}, headers=once).status_code == 404
    mem.remember("y", id="none")
    assert b.request("PATCH", "/v1/memories/none", json={"text": "x"}, headers=once).status_code == 200


def test_the_same_request_at_two_servers_at_once_is_done_once(two: tuple[Semmem, httpx.Client, httpx.Client]) -> None:
    mem, a, b = two
    before = mem.stats().memories
    answers: list[httpx.Response] = []
    body = {"session": "s", "messages": [{"role": "user", "content": f"Line {n}."} for n in range(20)]}

    def send(client: httpx.Client) -> None:
        answers.append(client.post("/v1/messages", json=body, headers={"idempotency-key": "one"}))

    threads = [threading.Thread(target=send, args=(client,)) for client in (a, b) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert {one.status_code for one in answers} == {200}
    assert len({one.content for one in answers}) == 1
    assert mem.stats().memories == before + 20


def test_a_kept_answer_has_no_text_and_a_forgotten_memory_is_not_stored_again(
    two: tuple[Semmem, httpx.Client, httpx.Client],
) -> None:
    mem, a, b = two
    once = {"idempotency-key": "key-text"}
    body = {"text": "Xylophone lessons.", "title": "Zither", "tags": ["quark"], "metadata": {"m": "quince"}}
    made = a.post("/v1/memories", json=body, headers=once).json()
    for word in ("key-text", "Xylophone", "Zither", "quark", "quince"):
        assert not any(word in str(row) for row in answered_rows(mem)), word
    mem.update(made["id"], text="Xylophone and zither.")
    now = b.post("/v1/memories", json=body, headers=once)
    assert (now.status_code, now.json()["text"]) == (201, "Xylophone and zither.")
    mem.forget(made["id"])
    gone = b.post("/v1/memories", json=body, headers=once)
    assert problem(gone) == (404, "NotFound")
    assert gone.json()["detail"].endswith("has been forgotten since.")


def test_a_kept_answer_has_no_text_of_the_older_memories_that_it_named(
    two: tuple[Semmem, httpx.Client, httpx.Client],
) -> None:
    mem, a, b = two
    mem.remember("Ana lives in Lisbon.", id="ana")
    request: dict[str, Any] = {"json": {"text": "Ana moved to Porto."}, "headers": {"idempotency-key": "k"}}
    first = a.post("/v1/memories", **request).json()
    assert [one["text"] for one in first["older"]] == ["Ana lives in Lisbon."]
    assert "Lisbon" not in str(answered_rows(mem))
    again = b.post("/v1/memories", **request).json()
    assert again == {name: value for name, value in first.items() if name != "older"}


def answered_rows(mem: Semmem) -> list[Any]:
    opened: Any = mem.store
    statement = "SELECT * FROM answered"
    run = getattr(opened, "run", None) or opened._run
    rows: list[Any] = run(lambda c: c.execute(statement).fetchall())
    return rows


def test_a_hard_forget_that_cannot_rewrite_the_files_does_so_when_it_is_sent_again(
    two: tuple[Semmem, httpx.Client, httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    mem, a, b = two
    scrubs: list[int] = []
    real = type(mem.store).scrub

    def scrub(opened: Any) -> None:
        if opened.in_whole is None:
            scrubs.append(1)
            if len(scrubs) == 1:
                raise StoreUnavailable("The memories are forgotten, but the files are in use.")
        real(opened)

    monkeypatch.setattr(type(mem.store), "scrub", scrub)
    body, once = {"id": "key", "hard": True}, {"idempotency-key": "one"}
    assert problem(a.post("/v1/forget", json=body, headers=once)) == (503, "StoreUnavailable")
    for expected in (2, 2):
        again = b.post("/v1/forget", json=body, headers=once)
        assert (again.status_code, again.json()["forgotten"], len(scrubs)) == (200, 1, expected)


@pytest.mark.slow
def test_maintain_sweeps_the_answers_whose_time_is_over_and_then_the_key_is_new(url: str) -> None:
    with (
        semmem.connect(url, embedder="hashing", keep_answers_days=0.5 / 86_400) as mem,
        serving(mem) as place,
    ):
        once = {"idempotency-key": "one"}
        for text in ("Tea.", "Coffee."):
            assert httpx.post(
                f"{place}/v1/forget", json={"filters": {"titles": [text]}}, headers=once, timeout=60
            ).is_success
            time.sleep(0.6)
        assert mem.maintain()["answers"] == 1
        assert answered_rows(mem) == []
