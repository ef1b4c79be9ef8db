"""The tools of the reference memory server, with its names, schemas and texts: `semmem mcp --compat server-memory`."""

from __future__ import annotations

from typing import Any

from semmem.doors.mcp import knowledge_graph as graph
from semmem.doors.mcp.resources import Resources
from semmem.doors.mcp.schemas import Schema, array, string, structure
from semmem.doors.mcp.tools import Tool, indented

__all__ = ["RESOURCES", "TOOLS"]

RESOURCES = Resources(
    (
        {
            "uri": graph.URI,
            "name": "knowledge-graph",
            "title": "Knowledge Graph",
            "description": "The full knowledge graph with all entities and relations",
            "mime_type": "application/json",
        },
    ),
    graph.graph_text,
)

_TEXTS = array({"type": "string"})
_ENTITY = structure(
    {
        "name": string("The name of the entity"),
        "entityType": string("The type of the entity"),
        "observations": array({"type": "string"}, "An array of observation contents associated with the entity"),
    },
    ("name", "entityType", "observations"),
)
_RELATION = structure(
    {
        "from": string("The name of the entity where the relation starts"),
        "to": string("The name of the entity where the relation ends"),
        "relationType": string("The type of the relation"),
    },
    ("from", "to", "relationType"),
)
_WHOLE: dict[str, Schema] = {"entities": array(_ENTITY), "relations": array(_RELATION)}
_DELETED: dict[str, Schema] = {"success": {"type": "boolean"}, "message": {"type": "string"}}


def _tool(name: str, description: str, run: Any, arguments: dict[str, Schema], result: Any, **more: Any) -> Tool:
    title = name.replace("_", " ").title()
    return Tool(name, title, description, run, arguments, tuple(arguments), result=result, bare=True, **more)


TOOLS: tuple[Tool, ...] = (
    _tool(
        "create_entities",
        "Create multiple new entities in the knowledge graph",
        graph.create_entities,
        {"entities": array(_ENTITY)},
        {"entities": array(_ENTITY)},
        reads=False,
        repeatable=False,
        text=lambda values: indented(values["entities"]),
    ),
    _tool(
        "create_relations",
        "Create multiple new relations between entities in the knowledge graph. Relations should be in active voice",
        graph.create_relations,
        {"relations": array(_RELATION)},
        {"relations": array(_RELATION)},
        reads=False,
        repeatable=False,
        text=lambda values: indented(values["relations"]),
    ),
    _tool(
        "add_observations",
        "Add new observations to existing entities in the knowledge graph",
        graph.add_observations,
        {
            "observations": array(
                structure(
                    {
                        "entityName": string("The name of the entity to add the observations to"),
                        "contents": array({"type": "string"}, "An array of observation contents to add"),
                    },
                    ("entityName", "contents"),
                )
            )
        },
        {
            "results": array(
                structure(
                    {"entityName": {"type": "string"}, "addedObservations": _TEXTS}, ("entityName", "addedObservations")
                )
            )
        },
        reads=False,
        repeatable=False,
        text=lambda values: indented(values["results"]),
    ),
    _tool(
        "delete_entities",
        "Delete multiple entities and their associated relations from the knowledge graph",
        graph.delete_entities,
        {"entityNames": array({"type": "string"}, "An array of entity names to delete")},
        _DELETED,
        reads=False,
        destroys=True,
        text=lambda values: str(values["message"]),
    ),
    _tool(
        "delete_observations",
        "Delete specific observations from entities in the knowledge graph",
        graph.delete_observations,
        {
            "deletions": array(
                structure(
                    {
                        "entityName": string("The name of the entity containing the observations"),
                        "observations": array({"type": "string"}, "An array of observations to delete"),
                    },
                    ("entityName", "observations"),
                )
            )
        },
        _DELETED,
        reads=False,
        destroys=True,
        text=lambda values: str(values["message"]),
    ),
    _tool(
        "delete_relations",
        "Delete multiple relations from the knowledge graph",
        graph.delete_relations,
        {"relations": array(_RELATION, "An array of relations to delete")},
        _DELETED,
        reads=False,
        destroys=True,
        text=lambda values: str(values["message"]),
    ),
    _tool("read_graph", "Read the entire knowledge graph", graph.read_graph, {}, _WHOLE, text=indented),
    _tool(
        "search_nodes",
        "Search for nodes in the knowledge graph based on a query",
        graph.search_nodes,
        {"query": string("The search query to match against entity names, types, and observation content")},
        _WHOLE,
        text=indented,
    ),
    _tool(
        "open_nodes",
        "Open specific nodes in the knowledge graph by their names",
        graph.open_nodes,
        {"names": array({"type": "string"}, "An array of entity names to retrieve")},
        _WHOLE,
        text=indented,
    ),
)
"""The tools of that server, in its order."""
