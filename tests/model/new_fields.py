"""A program for a copy of semmem with fields of its own: ``python -m tests.model.new_fields URL FOLDER``.

It gives a memory these fields through each interface, and asserts that every other one returns them.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import httpx
from anyio.from_thread import start_blocking_portal

import semmem
from semmem.interfaces.cli.app import run
from tests.interfaces.mcp.clients import in_memory
from tests.serving import serving

GIVEN: dict[str, Any] = {
    "language": "de",
    "topics": ["boats", "tides"],
    "reviewed": True,
    "due_at": "2026-03-01T09:00:00+00:00",
}
NONE: dict[str, Any] = {"language": None, "topics": [], "reviewed": False, "due_at": None}


def fields(memory: dict[str, Any]) -> dict[str, Any]:
    return {name: memory[name] for name in GIVEN}


def command(url: str, *words: str) -> Any:
    """Return what a command of the program prints, as JSON; a text where it prints none."""
    out = io.StringIO()
    with redirect_stdout(out):
        code = run([words[0], "--url", url, *words[1:]])
    assert code == 0, out.getvalue()
    return json.loads(out.getvalue()) if "--json" in words else out.getvalue()


def python(url: str) -> None:
    with semmem.connect(url) as mem:
        assert fields(mem.remember("The ferry leaves at noon.", id="python", **GIVEN).as_dict()) == GIVEN
        assert fields(mem.remember("The ferry is blue.", id="plain").as_dict()) == NONE
        assert mem.remember("The ferry leaves at noon.", id="python", **GIVEN).version == 1
        refused = 0
        for wrong in ({"language": 7}, {"topics": "boats"}, {"reviewed": "yes"}, {"due_at": "soon"}):
            try:
                mem.remember("The ferry sank.", **wrong)
            except semmem.InvalidInput as error:
                refused += next(iter(wrong)) in str(error)
        assert refused == 4
        try:
            mem.remember("The ferry leaves at noon.", id="python", **{**GIVEN, "language": "en"})
        except semmem.Conflict:
            pass
        else:
            raise AssertionError("another language is another content")
        assert [one.id for one in mem.list(filters={"languages": ["de", "fr"]})] == ["python"]
        assert [hit.id for hit in mem.recall("ferry", filters={"languages": "de"})] == ["python"]
        changed = mem.update("python", language="en", topics=None)
        assert fields(changed.as_dict()) == {**GIVEN, "language": "en", "topics": []}
        first, second = mem.history("python")
        assert (first.memory.language, second.memory.language) == ("de", "en")  # type: ignore[attr-defined]
        assert second.changed == ("topics", "language")
        mem.forget("python")
        assert mem.restore_memory("python").language == "en"  # type: ignore[attr-defined]
        assert list(mem.list(filters={"languages": ["de"]})) == []


def command_line(url: str) -> None:
    given = ["--language", "de", "--topic", "boats", "--topics", "tides", "--reviewed", "--due-at", GIVEN["due_at"]]
    told = command(url, "remember", "The pier is new.", "--id", "shell", *given, "--json")
    assert fields(told) == GIVEN
    assert [one["id"] for one in command(url, "list", "--languages", "de", "--json")["memories"]] == ["shell"]
    assert [one["id"] for one in command(url, "recall", "pier", "--language", "de", "--json")["hits"]] == ["shell"]
    command(url, "update", "shell", "--not-reviewed", "--due-at", "", "--json")
    assert fields(command(url, "get", "shell", "--json")) == {**GIVEN, "reviewed": False, "due_at": None}
    command(url, "update", "shell", "--reviewed", "--due-at", GIVEN["due_at"], "--json")


def http(url: str) -> None:
    with semmem.connect(url) as mem, serving(mem) as address:
        client = httpx.Client(base_url=address, timeout=60.0)
        with client, semmem.connect(address) as far:
            told = client.post("/v1/memories", json={"text": "The mast broke.", "id": "http", **GIVEN}).json()
            assert fields(told) == GIVEN
            found = client.get("/v1/memories", params={"language": "de"}).json()["memories"]
            assert [one["id"] for one in found] == ["http", "shell"]
            kept = client.patch("/v1/memories/http", json={"language": None}).json()
            assert fields(kept) == {**GIVEN, "language": None}
            assert fields(far.update("http", language="de").as_dict()) == GIVEN
            assert far.get("http") == mem.get("http")
            described = client.get("/openapi.json").json()
            body = described["paths"]["/v1/memories"]["post"]["requestBody"]["content"]["application/json"]["schema"]
            assert {name: body["properties"][name]["type"] for name in GIVEN} == {
                "language": "string",
                "topics": "array",
                "reviewed": "boolean",
                "due_at": "string",
            }
            assert set(GIVEN) <= set(described["components"]["schemas"]["Memory"]["properties"])


def mcp(url: str) -> None:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(in_memory(url, personal=None)) as client,
    ):

        def call(tool: str, **arguments: Any) -> Any:
            result: Any = portal.call(client.call_tool, tool, arguments)
            assert not result.is_error, result.content[0].text
            return json.loads(result.content[0].text)

        call("memory_remember", text="The buoy rings.", id="mcp", **GIVEN)
        assert fields(call("memory_get", id="mcp", verbose=True)["memory"]) == GIVEN
        brief = call("memory_get", id="mcp")
        assert (brief["language"], brief["topics"], brief["reviewed"]) == ("de", ["boats", "tides"], True)
        assert not {"language", "topics", "reviewed", "due_at"} & set(call("memory_get", id="plain"))
        assert call("memory_recall", query="buoy", filters={"languages": ["de"]})["hits"][0]["id"] == "mcp"


def files(url: str, folder: Path) -> None:
    rows, table = folder / "memories.jsonl", folder / "table.csv"
    command(url, "export", str(rows))
    exported = {row["id"]: row for row in map(json.loads, rows.read_text().splitlines())}
    assert fields(exported["mcp"]) == GIVEN
    assert not GIVEN.keys() & exported["plain"].keys()
    with table.open("w", newline="") as file:
        cells = {**GIVEN, "topics": "boats;tides", "reviewed": "yes"}
        writer = csv.DictWriter(file, ["id", "text", *cells])
        writer.writeheader()
        writer.writerow({"id": "csv", "text": "The tide turns.", **cells})
    other = f"sqlite:{folder}/other.db"
    command(other, "import", "jsonl", str(rows))
    command(other, "import", "csv", str(table))
    with semmem.connect(other) as mem, semmem.connect(url) as before:
        assert fields(mem.get("csv").as_dict()) == GIVEN
        assert fields(mem.get("mcp").as_dict()) == GIVEN
        assert {one.id for one in mem.list()} == {one.id for one in before.list()} | {"csv"}


if __name__ == "__main__":
    for step in (python, command_line, http, mcp):
        step(sys.argv[1])
    files(sys.argv[1], Path(sys.argv[2]))
    print("every interface has them:", Path(semmem.__file__).parent)
