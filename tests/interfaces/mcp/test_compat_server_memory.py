"""The tools of the reference memory server: what they answer, what recall finds of it, and two writers at once."""

from __future__ import annotations

import json
from operator import itemgetter
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from typer.main import get_command

import semmem
from semmem.importers import reader
from semmem.interfaces.cli.app import program
from semmem.interfaces.mcp.compat_server_memory import RESOURCES, TOOLS
from tests.interfaces.mcp.clients import in_memory, over_stdio

pytestmark = pytest.mark.anyio

COMPATIBLE: dict[str, Any] = {"tools": TOOLS, "resources": RESOURCES, "named": "default", "personal": None}

PETRA = {
    "name": "Petra_Lindqvist",
    "entityType": "person",
    "observations": ["designed the Kestrel", "grew up in Norrbeck"],
}
KESTREL = {"name": "Kestrel", "entityType": "logger", "observations": []}
DESIGNED = {"from": "Petra_Lindqvist", "to": "Kestrel", "relationType": "designed"}


async def call(client: Client, tool: str, **arguments: Any) -> tuple[dict[str, Any], str]:
    """Return what a tool answers: the structured result, and the text."""
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    assert not result.is_error, content.text
    return result.structured_content, content.text


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    assert result.is_error
    return content.text


async def filled(client: Client) -> None:
    await call(client, "create_entities", entities=[PETRA, KESTREL])
    await call(client, "create_relations", relations=[DESIGNED])


async def test_the_nine_tools_are_offered_in_the_other_servers_order(url: str) -> None:
    async with in_memory(url, **COMPATIBLE) as client:
        tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == [
        "create_entities", "create_relations", "add_observations", "delete_entities", "delete_observations",
        "delete_relations", "read_graph", "search_nodes", "open_nodes",
    ]  # fmt: skip


async def test_what_is_created_is_returned_once_and_read_in_the_order_in_which_it_came(url: str) -> None:
    async with in_memory(url, **COMPATIBLE) as client:
        made, text = await call(client, "create_entities", entities=[PETRA, KESTREL])
        assert made == {"entities": [PETRA, KESTREL]}
        assert json.loads(text) == [PETRA, KESTREL]
        again, text = await call(client, "create_entities", entities=[{**KESTREL, "observations": ["other"]}])
        assert (again, text) == ({"entities": []}, "[]")
        made, text = await call(client, "create_relations", relations=[DESIGNED, DESIGNED])
        assert json.loads(text) == made["relations"] == [DESIGNED]
        again, _ = await call(client, "create_relations", relations=[DESIGNED])
        assert again == {"relations": []}
        graph, text = await call(client, "read_graph")
        assert graph == {"entities": [PETRA, KESTREL], "relations": [DESIGNED]}
        assert text == json.dumps(graph, indent=2)
        (resource,) = (await client.read_resource("memory://knowledge-graph")).contents
        assert json.loads(resource.text) == graph  # type: ignore[union-attr]  # it is text


async def test_what_has_the_id_of_another_memory_is_stored_under_another_one(url: str) -> None:
    with semmem.connect(url, embedder="hashing") as mem:
        for id in ("Kestrel", "Kestrel~2", "a|x|y|b"):
            mem.remember(f"Somebody else's {id}.", id=id)
    bare = {**KESTREL, "observations": list[str]()}
    ties = [
        {"from": "a", "to": "b", "relationType": "x|y"},
        {"from": "a|x", "to": "b", "relationType": "y"},
    ]
    async with in_memory(url, **COMPATIBLE) as client:
        made, _ = await call(client, "create_entities", entities=[bare, PETRA])
        assert made == {"entities": [bare, PETRA]}
        made, _ = await call(client, "create_relations", relations=ties)
        assert made == {"relations": ties}
        graph, _ = await call(client, "read_graph")
        assert sorted(graph["entities"], key=itemgetter("name")) == [bare, PETRA]
        assert sorted(graph["relations"], key=itemgetter("from")) == ties
        again, _ = await call(client, "create_relations", relations=ties)
        assert again == {"relations": []}
        said = {"entityName": "Kestrel", "contents": ["is blue"]}
        await call(client, "add_observations", observations=[said])
        await call(client, "delete_relations", relations=ties[:1])
        await call(client, "delete_entities", entityNames=["Petra_Lindqvist"])
        graph, _ = await call(client, "read_graph")
        assert graph == {"entities": [{**KESTREL, "observations": ["is blue"]}], "relations": ties[1:]}
    with semmem.connect(url, embedder="hashing") as mem:
        assert mem.get("Kestrel~2").text == "Somebody else's Kestrel~2."


async def test_observations_are_added_once_and_to_entities_that_there_are(url: str) -> None:
    async with in_memory(url, **COMPATIBLE) as client:
        await filled(client)
        one = {"entityName": "Kestrel", "contents": ["is blue", "is fast"]}
        other = {"entityName": "Petra_Lindqvist", "contents": ["designed the Kestrel", "likes tea"]}
        added, text = await call(client, "add_observations", observations=[one, other])
        assert added == {
            "results": [
                {"entityName": "Kestrel", "addedObservations": ["is blue", "is fast"]},
                {"entityName": "Petra_Lindqvist", "addedObservations": ["likes tea"]},
            ]
        }
        assert json.loads(text) == added["results"]
        before = (await call(client, "read_graph"))[0]
        unknown = {"entityName": "Nobody", "contents": ["x"]}
        said = await refused(client, "add_observations", observations=[{**one, "contents": ["new"]}, unknown])
        assert said.startswith("Entity with name Nobody not found")
        assert (await call(client, "read_graph"))[0] == before


async def test_a_deleted_entity_takes_its_observations_and_relations_along(url: str) -> None:
    async with in_memory(url, **COMPATIBLE) as client:
        await filled(client)
        done, text = await call(client, "delete_entities", entityNames=["Petra_Lindqvist", "Nobody"])
        assert (done["success"], text) == (True, "Entities deleted successfully")
        assert (await call(client, "read_graph"))[0] == {"entities": [KESTREL], "relations": []}
        assert len((await call(client, "create_entities", entities=[PETRA]))[0]["entities"]) == 1


async def test_an_entity_outlives_its_observations_and_its_relations(url: str) -> None:
    async with in_memory(url, **COMPATIBLE) as client:
        await filled(client)
        gone = {"entityName": "Petra_Lindqvist", "observations": [*PETRA["observations"], "never said"]}
        _, text = await call(client, "delete_observations", deletions=[gone, {**gone, "entityName": "Nobody"}])
        assert text == "Observations deleted successfully"
        _, text = await call(client, "delete_relations", relations=[DESIGNED, {**DESIGNED, "to": "Nobody"}])
        assert text == "Relations deleted successfully"
        graph, _ = await call(client, "read_graph")
        assert graph == {"entities": [{**PETRA, "observations": []}, KESTREL], "relations": []}


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("petra", ["Petra_Lindqvist"]),
        ("LOGGER", ["Kestrel"]),
        ("kestrel", ["Petra_Lindqvist", "Kestrel"]),
        ("norrb", ["Petra_Lindqvist"]),
        ("", ["Petra_Lindqvist", "Kestrel"]),
        ("nothing of it", []),
    ],
)
async def test_a_search_looks_at_names_types_and_observations_and_brings_relations_along(
    url: str, query: str, names: list[str]
) -> None:
    async with in_memory(url, **COMPATIBLE) as client:
        await filled(client)
        found, _ = await call(client, "search_nodes", query=query)
        assert [row["name"] for row in found["entities"]] == names
        assert found["relations"] == ([DESIGNED] if names else [])


async def test_nodes_are_opened_by_name_with_the_relations_of_one_end(url: str) -> None:
    async with in_memory(url, **COMPATIBLE) as client:
        await filled(client)
        found, _ = await call(client, "open_nodes", names=["Kestrel", "Nobody"])
        assert found == {"entities": [KESTREL], "relations": [DESIGNED]}
        assert (await call(client, "open_nodes", names=["Nobody"]))[0] == {"entities": [], "relations": []}


@pytest.mark.parametrize(
    ("tool", "arguments", "part"),
    [
        ("create_entities", {}, "create_entities needs entities"),
        ("create_entities", {"entities": {}}, "entities must be a list of objects"),
        ("create_entities", {"entities": [PETRA, {"name": "x"}]}, "entities[1].entityType must be a string"),
        (
            "create_entities",
            {"entities": [{**PETRA, "observations": [" "]}]},
            "entities[0].observations must be a list",
        ),
        ("create_entities", {"entities": [KESTREL, {**PETRA, "entityType": "x" * 300}]}, "a tag has 300 characters"),
        ("create_relations", {"relations": [{**DESIGNED, "to": ""}]}, "relations[0].to must be a string"),
        ("search_nodes", {"query": 3}, "query must be a string"),
        ("open_nodes", {"names": "Kestrel"}, "names must be a list of strings"),
        ("delete_entities", {"entityNames": [3]}, "entityNames[0] must be a string, not 3"),
    ],
)
async def test_what_cannot_be_used_is_told_and_nothing_is_stored(
    url: str, tool: str, arguments: dict[str, Any], part: str
) -> None:
    async with in_memory(url, **COMPATIBLE) as client:
        assert part in await refused(client, tool, **arguments)
        assert (await call(client, "read_graph"))[0] == {"entities": [], "relations": []}


async def test_recall_finds_what_these_tools_store(store_url: str) -> None:
    async with in_memory(store_url, **COMPATIBLE) as client:
        await filled(client)
    with semmem.connect(store_url, embedder="hashing") as mem:
        found = {hit.text: hit.title for hit in mem.recall("Where did Petra Lindqvist grow up?")}
        assert found["grew up in Norrbeck"] == "Petra Lindqvist"


async def test_the_other_servers_file_can_be_imported_before_and_after(url: str, tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    rows = [{"type": "entity", **PETRA}, {"type": "entity", **KESTREL}, {"type": "relation", **DESIGNED}]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    async with in_memory(url, **COMPATIBLE) as client:
        await filled(client)
        stored = (await call(client, "read_graph"))[0]
        with semmem.connect(url, embedder="hashing") as mem:
            done = mem.import_items(reader("mcp")(file))
            assert (done.remembered, done.rejected) == (0, ())
        assert (await call(client, "read_graph"))[0] == stored
    other = f"sqlite:{tmp_path}/other.db"
    with semmem.connect(other, embedder="hashing") as mem:
        mem.import_items(reader("mcp")(file))
    async with in_memory(other, **COMPATIBLE) as client:
        assert (await call(client, "read_graph"))[0] == stored
        await call(client, "delete_observations", deletions=[{"entityName": "Petra_Lindqvist", **_all(PETRA)}])
        emptied = (await call(client, "read_graph"))[0]["entities"]
        assert {row["name"]: row["observations"] for row in emptied} == {"Petra_Lindqvist": [], "Kestrel": []}


def _all(entity: dict[str, Any]) -> dict[str, Any]:
    return {"observations": entity["observations"]}


@pytest.mark.slow
async def test_the_file_is_brought_in_once_and_what_was_deleted_stays_deleted(url: str, tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    file.write_text(json.dumps({"type": "entity", **PETRA}) + "\nno json\n", encoding="utf-8")
    words = ("--compat", "server-memory", "--import", str(file))
    async with over_stdio(url, tmp_path, *words) as client:
        assert (await call(client, "read_graph"))[0]["entities"] == [PETRA]
        one = {"entityName": "Petra_Lindqvist", "observations": ["grew up in Norrbeck"]}
        await call(client, "delete_observations", deletions=[one])
    async with over_stdio(url, tmp_path, *words) as client:
        (petra,) = (await call(client, "read_graph"))[0]["entities"]
        assert petra["observations"] == ["designed the Kestrel"]


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_two_processes_that_write_at_once_lose_nothing(store_url: str, tmp_path: Path) -> None:
    """The other server loses ten of these twenty entities, for each process writes its whole graph over the file."""

    async def writer(who: str) -> None:
        async with over_stdio(store_url, tmp_path, "--compat", "server-memory") as client:
            for n in range(10):
                entity = {"name": f"{who}-{n}", "entityType": "gear", "observations": [f"{who} made gear {n}"]}
                await call(client, "create_entities", entities=[entity, KESTREL])
                seen = {"entityName": "Kestrel", "contents": [f"{who} saw it, {n}"]}
                await call(client, "add_observations", observations=[seen])

    async with anyio.create_task_group() as group:
        group.start_soon(writer, "left")
        group.start_soon(writer, "right")
    async with over_stdio(store_url, tmp_path, "--compat", "server-memory") as client:
        graph = (await call(client, "read_graph"))[0]
    names = {row["name"]: set(row["observations"]) for row in graph["entities"]}
    assert set(names) == {"Kestrel", *(f"{who}-{n}" for who in ("left", "right") for n in range(10))}
    assert names["Kestrel"] == {f"{who} saw it, {n}" for who in ("left", "right") for n in range(10)}
    assert names["left-3"] == {"left made gear 3"}


def test_the_help_names_the_namespace_in_which_these_tools_work() -> None:
    (option,) = (one for one in get_command(program("mcp")).commands["mcp"].params if one.name == "compat")
    assert 'in the namespace "default" or the one of --namespace.' in option.help
