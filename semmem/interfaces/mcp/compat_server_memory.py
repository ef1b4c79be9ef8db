"""The tools of the reference memory server, with its names, schemas and texts: `semmem mcp --compat server-memory`."""

from __future__ import annotations

from typing import Any

from semmem.interfaces.mcp import knowledge_graph as graph
from semmem.interfaces.mcp.resources import Resources
from semmem.interfaces.mcp.schemas import Schema, array, string, structure
from semmem.interfaces.mcp.tools import Run, Tool, indented

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

_STRING: Schema = {"type": "string"}
_TEXTS = array(_STRING)


def _whole(**properties: Schema) -> Schema:
    """Return the schema of an object that has all these properties."""
    return structure(properties, tuple(properties))


_ENTITY = _whole(
    name=string("The name of the entity"),
    entityType=string("The type of the entity"),
    observations=array(_STRING, "An array of observation contents associated with the entity"),
)
_RELATION = structure(
    {
        "from": string("The name of the entity where the relation starts"),
        "to": string("The name of the entity where the relation ends"),
        "relationType": string("The type of the relation"),
    },
    ("from", "to", "relationType"),
)
_GRAPH: dict[str, Schema] = {"entities": array(_ENTITY), "relations": array(_RELATION)}
_NEW_OBSERVATIONS = _whole(
    entityName=string("The name of the entity to add the observations to"),
    contents=array(_STRING, "An array of observation contents to add"),
)
_OLD_OBSERVATIONS = _whole(
    entityName=string("The name of the entity containing the observations"),
    observations=array(_STRING, "An array of observations to delete"),
)


def _tool(name: str, description: str, run: Run, arguments: dict[str, Schema], result: Any, **more: Any) -> Tool:
    title = name.replace("_", " ").title()
    return Tool(name, title, description, run, arguments, tuple(arguments), result=result, bare=True, **more)


def _adding(name: str, description: str, run: Run, arguments: dict[str, Schema], shows: str, result: Schema) -> Tool:
    """Return a tool that stores something, and whose text is the part ``shows`` of its result."""
    return _tool(
        name,
        description,
        run,
        arguments,
        {shows: array(result)},
        reads=False,
        repeatable=False,
        text=lambda values: indented(values[shows]),
    )


def _deleting(name: str, description: str, run: Run, arguments: dict[str, Schema]) -> Tool:
    """Return a tool that deletes something, and whose text is a message."""
    result = {"success": {"type": "boolean"}, "message": _STRING}
    return _tool(
        name,
        description,
        run,
        arguments,
        result,
        reads=False,
        destroys=True,
        text=lambda values: str(values["message"]),
    )


def _reading(name: str, description: str, run: Run, **arguments: Schema) -> Tool:
    """Return a tool that reads the graph, or a part of it."""
    return _tool(name, description, run, arguments, _GRAPH, text=indented)


TOOLS: tuple[Tool, ...] = (
    _adding(
        "create_entities", "Create multiple new entities in the knowledge graph", graph.create_entities,
        {"entities": array(_ENTITY)}, "entities", _ENTITY,
    ),
    _adding(
        "create_relations",
        "Create multiple new relations between entities in the knowledge graph. Relations should be in active voice",
        graph.create_relations, {"relations": array(_RELATION)}, "relations", _RELATION,
    ),
    _adding(
        "add_observations", "Add new observations to existing entities in the knowledge graph", graph.add_observations,
        {"observations": array(_NEW_OBSERVATIONS)}, "results", _whole(entityName=_STRING, addedObservations=_TEXTS),
    ),
    _deleting(
        "delete_entities", "Delete multiple entities and their associated relations from the knowledge graph",
        graph.delete_entities, {"entityNames": array(_STRING, "An array of entity names to delete")},
    ),
    _deleting(
        "delete_observations", "Delete specific observations from entities in the knowledge graph",
        graph.delete_observations, {"deletions": array(_OLD_OBSERVATIONS)},
    ),
    _deleting(
        "delete_relations", "Delete multiple relations from the knowledge graph", graph.delete_relations,
        {"relations": array(_RELATION, "An array of relations to delete")},
    ),
    _reading("read_graph", "Read the entire knowledge graph", graph.read_graph),
    _reading(
        "search_nodes", "Search for nodes in the knowledge graph based on a query", graph.search_nodes,
        query=string("The search query to match against entity names, types, and observation content"),
    ),
    _reading(
        "open_nodes", "Open specific nodes in the knowledge graph by their names", graph.open_nodes,
        names=array(_STRING, "An array of entity names to retrieve"),
    ),
)  # fmt: skip
"""The tools of that server, in its order."""
