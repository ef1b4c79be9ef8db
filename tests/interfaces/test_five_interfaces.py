"""The same questions, good and bad, through five interfaces: Python, the command line, HTTP, MCP and LangGraph.

Each interface gets an empty store of its own and the questions in their order, and has to give the answers and errors
that stand here. LangGraph's store has verbs of its own: a question that it cannot ask is left out there, and what it
answers otherwise (nothing, where others say NotFound) stands beside.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from anyio.from_thread import start_blocking_portal

import semmem
from semmem.interfaces import wire
from semmem.interfaces.cli.app import run
from semmem.interfaces.langgraph import SemmemStore
from semmem.model import errors
from tests.interfaces.mcp.clients import in_memory
from tests.serving import serving

KEY = {"text": "The key of Heron House hangs behind the radio.", "id": "key", "title": "Heron House"}
FERRY = {"text": "The ferry to Heron House leaves at noon.", "id": "ferry", "tags": ["boat"], "metadata": {"pier": 3}}

Answer = Any
"""What a question is answered with: ids, a text, a version or a count; of an error the name of its class."""

NOT_ASKED = object()


@dataclass(frozen=True)
class Asked:
    """A question: the verb and its arguments, the answer, and that of LangGraph's store where it is another one."""

    verb: str
    given: dict[str, Any]
    answer: Answer
    in_langgraph: Answer = None

    @property
    def of_langgraph(self) -> Answer:
        return self.answer if self.in_langgraph is None else self.in_langgraph


QUESTIONS = (
    Asked("remember", KEY, 1),
    Asked("remember", KEY, 1),
    Asked("remember", {**KEY, "text": "The key hangs elsewhere."}, "Conflict", NOT_ASKED),  # there a put replaces
    Asked("remember", {"text": ""}, "InvalidInput", NOT_ASKED),
    Asked("remember", {"text": "x", "importance": 2.0}, "InvalidInput", NOT_ASKED),
    Asked("remember", FERRY, 1),
    Asked("get", {"id": "key"}, KEY["text"]),
    Asked("get", {"id": "none"}, "NotFound", "nothing"),
    Asked("recall", {"query": "where does the key of Heron House hang?"}, ["key", "ferry"]),
    Asked("recall", {"query": "ferry", "filters": {"tags": ["boat"]}}, ["ferry"]),
    Asked("recall", {"query": "Heron House", "limit": 1}, 1),
    Asked("recall", {"query": "Heron House", "namespace": "empty"}, []),
    Asked("recall", {"query": "ferry", "as_of": "2001-01-01"}, [], NOT_ASKED),
    Asked("recall", {"query": "ferry", "as_of": "then"}, "InvalidInput", NOT_ASKED),
    Asked("recall", {"query": "ferry", "now": "2001-01-01"}, ["ferry"], NOT_ASKED),
    Asked("recall", {"query": "ferry", "now": "soon"}, "InvalidInput", NOT_ASKED),
    Asked("recall", {"query": " "}, "InvalidInput", NOT_ASKED),  # there no query is a list
    Asked("recall", {"query": "key", "limit": 0}, "InvalidInput", []),
    Asked("recall", {"query": "key", "recipe": "nope"}, "UnknownRecipe", "UnknownRecipe"),
    Asked("list", {}, ["ferry", "key"]),
    Asked("update", {"id": "ferry", "text": "The ferry leaves at ten.", "expected_version": 1}, 2, 1),
    Asked("update", {"id": "ferry", "text": "The ferry sank.", "expected_version": 1}, "Conflict", NOT_ASKED),
    Asked("get", {"id": "ferry"}, "The ferry leaves at ten."),
    Asked("forget", {"id": "key"}, 1),
    Asked("forget", {"id": "key"}, "NotFound", 1),  # there a delete says nothing
    Asked("forget", {}, "InvalidInput", NOT_ASKED),
    Asked("recall", {"query": "where does the key hang?"}, []),
    Asked("list", {}, ["ferry"]),
)

Ask = Callable[[Asked], Answer]


def shown(verb: str, found: Any) -> Answer:
    """Return of an answer, as JSON, what is compared."""
    match verb:
        case "remember" | "update":
            return found["version"]
        case "get":
            return found["text"]
        case "recall":
            return [hit["id"] for hit in found["hits"]]
        case "list":
            return [one["id"] for one in found["memories"]]
    return found["forgotten"]


@contextmanager
def python(url: str, _: Any) -> Iterator[Ask]:
    with semmem.connect(url) as mem:

        def ask(one: Asked) -> Answer:
            try:
                found = getattr(mem, one.verb)(**one.given)
            except errors.SemmemError as error:
                return type(error).__name__
            match one.verb:
                case "forget":
                    return found
                case "recall" | "list":
                    return [each.id for each in found]
            return shown(one.verb, found.as_dict())

        yield ask


@contextmanager
def command_line(url: str, capfd: pytest.CaptureFixture[str]) -> Iterator[Ask]:
    def words(one: Asked) -> Iterator[str]:
        given = dict(one.given)
        yield from (one.verb, "--url", url, "--json")
        yield from ["--yes"] if one.verb == "forget" else []
        options = {**given, **given.pop("filters", {})}
        options.pop("filters", None)
        first = ("id", "text") if one.verb == "update" else ("query",) if one.verb == "recall" else ("text",)
        first = first if one.verb != "get" and one.verb != "forget" else ("id",)
        yield from (options.pop(name) for name in first if name in options)
        for name, value in options.items():
            for each in value if isinstance(value, list) else [value]:
                text = json.dumps(each) if isinstance(each, dict) else str(each)
                yield from (f"--{name.replace('_', '-')}", text)

    def ask(one: Asked) -> Answer:
        code = run(list(words(one)))
        out, err = capfd.readouterr()
        if code == 0:
            return shown(one.verb, json.loads(out))
        told = json.loads(out or err)["error"]
        assert code == wire.answer(getattr(errors, told["class"])()).exit_code
        return told["class"]

    yield ask


@contextmanager
def http(url: str, _: Any) -> Iterator[Ask]:
    paths = {"get": "GET", "list": "GET", "update": "PATCH", "remember": "POST", "recall": "POST", "forget": "POST"}

    def path(one: Asked) -> str:
        if one.verb in ("get", "update"):
            return f"/v1/memories/{one.given['id']}"
        return f"/v1/{one.verb}" if one.verb in ("recall", "forget") else "/v1/memories"

    with semmem.connect(url) as mem, serving(mem) as address, httpx.Client(base_url=address, timeout=60.0) as client:

        def ask(one: Asked) -> Answer:
            given = {name: value for name, value in one.given.items() if f"{{{name}}}" not in path(one)}
            if one.verb in ("get", "update"):
                given.pop("id")
            version = given.pop("expected_version", None)
            headers = {} if version is None else {"if-match": f'"{version}"'}
            body = {"params": given} if paths[one.verb] == "GET" else {"json": given}
            response = client.request(paths[one.verb], path(one), headers=headers, **body)  # type: ignore[arg-type]
            told = response.json()
            if response.is_success:
                return shown(one.verb, told)
            expected = wire.answer(getattr(errors, told["class"])()).http_status
            assert response.status_code == (412 if version is not None and told["class"] == "Conflict" else expected)
            return told["class"]

        yield ask


@contextmanager
def mcp(url: str, _: Any) -> Iterator[Ask]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(in_memory(url, personal=None)) as client,
    ):

        def ask(one: Asked) -> Answer:
            result: Any = portal.call(client.call_tool, f"memory_{one.verb}", {**one.given, "verbose": True})
            told = json.loads(result.content[0].text)
            if not result.is_error:
                return shown(one.verb, told.get("memory", told))
            error = told["error"]
            assert error["code"] == wire.answer(getattr(errors, error["class"])()).mcp_code
            return error["class"]

        yield ask


@contextmanager
def langgraph(url: str, _: Any) -> Iterator[Ask]:
    with semmem.connect(url) as mem:

        def ask(one: Asked) -> Answer:
            given = dict(one.given)
            items = SemmemStore(mem, index={"fields": ["text"]}, recipe=given.pop("recipe", None))
            where, id = (given.pop("namespace", "default"),), given.pop("id", "")
            try:
                match one.verb:
                    case "remember" | "update":
                        given.pop("expected_version", None)
                        items.put(where, id, given)
                        return 1
                    case "get":
                        item = items.get(where, id)
                        return "nothing" if item is None else item.value["text"]
                    case "forget":
                        items.delete(where, id)
                        return 1
                found = items.search(
                    where, query=given.get("query"), limit=given.get("limit", 10), filter=given.get("filters")
                )
                return [item.key for item in found]
            except errors.SemmemError as error:
                return type(error).__name__

        yield ask


@pytest.mark.parametrize(
    "interface", [python, command_line, http, mcp, langgraph], ids=lambda interface: interface.__name__
)
def test_every_interface_gives_the_same_answers_and_errors(
    interface: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(QUESTIONS) >= 20
    monkeypatch.setenv("SEMMEM_EMBEDDER", "none")
    monkeypatch.setenv("SEMMEM_RECIPE", "lexical")
    with interface(f"sqlite:{tmp_path}/notes.db", capfd) as ask:
        for number, one in enumerate(QUESTIONS):
            expected = one.of_langgraph if interface is langgraph else one.answer
            if expected is NOT_ASKED:
                continue
            found = ask(one)
            if expected == 1 and one.verb == "recall":
                found = len(found)
            assert found == expected, f"question {number}: {one}"
