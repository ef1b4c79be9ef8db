"""Tools for the APIs of OpenAI and Anthropic: schemas in their forms, and calls that answer whatever a model sends."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from inspect import getsource
from typing import Any

import pytest

import semmem
from semmem.interfaces.tools import Api, run_call, tool_schemas


@pytest.fixture
def mem() -> Iterator[semmem.Semmem]:
    with semmem.connect("sqlite::memory:", embedder="none") as opened:
        yield opened


def test_each_api_has_its_form() -> None:
    only = ["memory_recall"]
    (responses,), (chat,), (messages,) = (
        tool_schemas(api, only=only)
        for api in ("openai", "openai-chat", "anthropic")  # type: ignore[arg-type]
    )
    schema = responses["parameters"]
    assert (schema["type"], schema["required"]) == ("object", ["query"])
    assert (responses["type"], responses["name"]) == ("function", "memory_recall")
    assert chat == {"type": "function", "function": {k: v for k, v in responses.items() if k != "type"}}
    assert messages == {
        "name": "memory_recall", "description": responses["description"], "input_schema": schema,
    }  # fmt: skip
    names = [tool["name"] for tool in tool_schemas("anthropic")]
    assert names == ["memory_remember", "memory_recall", "memory_get", "memory_update", "memory_forget"]
    assert len(tool_schemas("anthropic", only=["all"])) == 11


def test_the_forms_are_those_that_the_packages_of_the_two_check() -> None:
    anthropic = pytest.importorskip("anthropic.types")
    openai = pytest.importorskip("openai.types.responses")
    from pydantic import TypeAdapter

    TypeAdapter(list[anthropic.ToolParam]).validate_python(tool_schemas("anthropic", only=["all"]))
    for tool in tool_schemas("openai", only=["all"]):
        openai.FunctionTool(**tool, strict=False)


def test_a_model_remembers_recalls_changes_and_forgets(mem: semmem.Semmem) -> None:
    said, wrong = run_call(mem, "memory_remember", '{"text": "The ferry leaves at nine."}', namespace="p", agent="tug")
    assert not wrong
    (memory,) = mem.list(namespace="p")
    assert memory.metadata == {"agent": "tug"}
    said, wrong = run_call(mem, "memory_recall", {"query": "ferry"}, namespace="p")
    assert (wrong, [hit["id"] for hit in json.loads(said)["hits"]]) == (False, [memory.id[:13]])
    assert run_call(mem, "memory_update", {"id": memory.id, "text": "It leaves at ten."}, namespace="p")[1] is False
    assert mem.get(memory.id, namespace="p").text == "It leaves at ten."
    assert run_call(mem, "memory_forget", {"id": memory.id}, namespace="p")[1] is False
    assert list(mem.list(namespace="p")) == []


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("memory_dance", "{}", "There is no tool 'memory_dance'; choose one of memory_"),
        ("memory_recall", "{", "The arguments of memory_recall are not JSON"),
        ("memory_recall", "[1]", "must be an object, not list"),
        ("memory_recall", "[" * 100_000, "are not JSON"),
        ("memory_recall", '{"limit": ' + "9" * 5_000 + "}", "are not JSON"),
        ("memory_recall", [1], "must be an object, not list"),
        ("memory_recall", None, "memory_recall needs query"),
        ("memory_recall", {"query": "x", "colour": 1}, "memory_recall has no argument 'colour'"),
        ("memory_recall", {"query": ""}, "The query is empty"),
        ("memory_get", {"id": "no"}, "There is no memory 'no'"),
        ("memory_remember", {"text": " "}, "The text is empty"),
    ],
)
def test_what_a_model_does_wrong_is_answered_with_what_to_do(
    mem: semmem.Semmem, name: str, arguments: Any, sentence: str
) -> None:
    said, wrong = run_call(mem, name, arguments)
    assert wrong
    assert sentence in json.loads(said)["error"]["message"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("memory_recall", {"query": "ferry", "namespace": "theirs"}),
        ("memory_recall", {"query": "ferry", "namespace": ["mine", "theirs"]}),
        ("memory_get", {"id": "ferry", "namespace": "theirs"}),
        ("memory_list", {"namespace": "theirs"}),
        ("memory_explain", {"id": "ferry", "query": "ferry", "namespace": "theirs"}),
        ("memory_remember", {"text": "x", "namespace": "theirs"}),
        ("memory_update", {"id": "ferry", "text": "x", "namespace": "theirs"}),
        ("memory_history", {"id": "ferry", "namespace": "theirs"}),
        ("memory_link", {"id": "ferry", "type": "see-also", "to": "pier", "namespace": "theirs"}),
        ("memory_forget", {"id": "ferry", "namespace": "theirs"}),
        ("memory_forget", {"id": "mine", "hard": True}),
    ],
)
def test_a_model_may_be_kept_to_one_namespace(mem: semmem.Semmem, name: str, arguments: dict[str, Any]) -> None:
    mem.remember("The ferry leaves at nine.", id="ferry", namespace="theirs")
    mem.remember("The pier is wet.", id="pier", namespace="theirs")
    mem.remember("The key is red.", id="mine", namespace="mine")
    said, wrong = run_call(mem, name, arguments, namespace="mine", only_namespace=True)
    error = json.loads(said)["error"]
    assert (wrong, error["class"]) == (True, "AccessDenied" if "hard" not in arguments else error["class"])
    if "hard" not in arguments:
        assert error["message"] == "Only the namespace 'mine' may be used here; leave namespace out."
        assert run_call(mem, name, arguments, namespace="mine")[1] is False
    assert mem.get("mine", namespace="mine").version == 1
    for given in ({"query": "key"}, {"query": "key", "namespace": "mine"}):
        said, wrong = run_call(mem, "memory_recall", given, namespace="mine", only_namespace=True)
        assert (wrong, [hit["id"] for hit in json.loads(said)["hits"]]) == (False, ["mine"])


def test_a_key_can_allow_every_verb_that_a_tool_calls() -> None:
    from semmem.interfaces.mcp import permission, reading, writing

    called = {verb for module in (reading, writing) for verb in re.findall(r"call\.memory\.(\w+)\(", getsource(module))}
    assert {"recall", "remember"} <= called <= set(permission._rights())


def test_an_unknown_api_or_tool_is_refused() -> None:
    unknown: Any = "gemini"
    with pytest.raises(semmem.InvalidInput, match="api must be 'openai', 'openai-chat' or 'anthropic'"):
        tool_schemas(unknown)
    with pytest.raises(semmem.NotFound, match="no tool 'x'"):
        tool_schemas("openai", only=["x"])
    assert Api.__args__ == ("openai", "openai-chat", "anthropic")  # type: ignore[attr-defined]


@pytest.mark.parametrize("only", ["memory_recall", 5])
def test_one_name_in_the_place_of_the_list_of_tools_is_refused(only: Any) -> None:
    with pytest.raises(semmem.InvalidInput, match=rf"^only must be a list of names of tools, such as .*, not {only!r}"):
        tool_schemas(only=only)


@pytest.mark.parametrize("arguments", [5, ["query"], True])
def test_arguments_that_are_no_object_are_told_to_the_model(mem: semmem.Semmem, arguments: Any) -> None:
    said, wrong = run_call(mem, "memory_recall", arguments)
    told = f"The arguments of memory_recall must be an object, not {type(arguments).__name__}."
    assert (wrong, json.loads(said)["error"]["message"]) == (True, told)
    said, wrong = run_call(mem, ["memory_recall"], {})  # type: ignore[arg-type]
    assert (wrong, json.loads(said)["error"]["class"]) == (True, "NotFound")
