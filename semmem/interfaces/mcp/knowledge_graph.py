"""The knowledge graph of the reference memory server, as memories: what its tools store, find and delete.

An entity is a memory that says what it is, and one more an observation, as the importer of that server's file makes
them; a relation is a memory too. So recall finds what these tools store, two processes that write at once lose nothing,
and the file that the other server wrote can be imported before or after.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from semmem.client.pages import every_memory
from semmem.importers.mcp_memory import items_of
from semmem.interfaces.mcp.tools import Call, indented, text_of
from semmem.model.errors import Conflict, InvalidInput, NotFound
from semmem.model.imported_items import RowError

if TYPE_CHECKING:
    from semmem.model.types import Memory

__all__ = [
    "URI", "add_observations", "create_entities", "create_relations", "delete_entities", "delete_observations",
    "delete_relations", "graph_text", "open_nodes", "read_graph", "search_nodes", "stores_a_graph",
]  # fmt: skip

_MOST_IDS = 100
URI = "memory://knowledge-graph"

Row = dict[str, Any]


class _Graph:
    """What a namespace holds of entities, observations and relations, in the order in which it was stored."""

    def __init__(self, memories: Sequence[Memory]) -> None:
        self.types: dict[str, str] = {}
        self.observations: dict[str, dict[str, str]] = {}
        self.relations: dict[tuple[str, str, str], str] = {}
        self.itself: dict[str, str] = {}
        for memory in memories:
            entity, relation = memory.metadata.get("entity"), memory.metadata.get("relation")
            if isinstance(entity, str):
                self.types.setdefault(entity, memory.tags[0] if memory.tags else "")
                observations = self.observations.setdefault(entity, {})
                if memory.id == entity or _first_id(memory.id) == entity:
                    self.itself[entity] = memory.id
                else:
                    observations[text_of(memory)] = memory.id
            elif isinstance(relation, Mapping):
                ends = tuple(str(relation.get(name, "")) for name in ("from", "to", "type"))
                self.relations[ends] = memory.id  # type: ignore[index]  # three of them

    def entity(self, name: str) -> Row:
        """Return an entity as the tools show it."""
        return {"name": name, "entityType": self.types[name], "observations": list(self.observations[name])}

    def part(self, names: Sequence[str] | None = None) -> dict[str, list[Row]]:
        """Return these entities, in the order of the graph, and the relations of which one end is among them."""
        selection = set(self.types if names is None else names)
        entities = [self.entity(name) for name in self.types if name in selection]
        entity_names = {row["name"] for row in entities}
        relations = [
            {"from": one, "to": other, "relationType": tie}
            for one, other, tie in self.relations
            if names is None or one in entity_names or other in entity_names
        ]
        return {"entities": entities, "relations": relations}


def _graph(call: Call) -> _Graph:
    memories = list(_memories(call.memory, call.namespace))
    early = datetime.min.replace(tzinfo=UTC)
    memories.reverse()  # the oldest first, also of those of one time
    memories.sort(key=lambda memory: memory.created_at or early)
    return _Graph(memories)


def _memories(memory: Any, namespace: str) -> Iterator[Memory]:
    """Return the memories of a graph, newest first."""
    every = every_memory(memory, namespace=namespace)
    return (one for one in every if "entity" in one.metadata or "relation" in one.metadata)


def create_entities(call: Call) -> dict[str, Any]:
    """Answer create_entities: those whose name is new are stored."""
    rows = _rows(call, "entities", ("name", "entityType"), "observations")
    graph = _graph(call)
    new_rows: dict[str, Row] = {}
    for row in rows:
        if row["name"] not in graph.types:
            new_rows.setdefault(row["name"], {**row, "observations": list(dict.fromkeys(row["observations"]))})
    _store(call, [item for row in new_rows.values() for item in _items_of_entity(row)])
    return {"entities": list(new_rows.values())}


def create_relations(call: Call) -> dict[str, Any]:
    """Answer create_relations: those that are new are stored."""
    rows = _rows(call, "relations", ("from", "to", "relationType"))
    graph = _graph(call)
    new_rows: dict[tuple[str, str, str], Row] = {}
    for row in rows:
        if _ends(row) not in graph.relations:
            new_rows.setdefault(_ends(row), row)
    _store(call, [item for row in new_rows.values() for item in _items({"type": "relation", **row})])
    return {"relations": list(new_rows.values())}


def add_observations(call: Call) -> dict[str, Any]:
    """Answer add_observations: what is new of an entity is stored; where one is unknown, nothing is."""
    rows = _rows(call, "observations", ("entityName",), "contents")
    graph = _graph(call)
    for row in rows:
        if row["entityName"] not in graph.types:
            raise NotFound(f"Entity with name {row['entityName']} not found; make it first with create_entities.")
    results: list[Row] = []
    items: list[Any] = []
    for row in rows:
        name = row["entityName"]
        new_texts = [text for text in dict.fromkeys(row["contents"]) if text not in graph.observations[name]]
        graph.observations[name] |= dict.fromkeys(new_texts, "")
        entity = {"name": name, "entityType": graph.types[name], "observations": new_texts}
        items += _items_of_entity(entity, itself=name not in graph.itself)
        results.append({"entityName": name, "addedObservations": new_texts})
    _store(call, items)
    return {"results": results}


def delete_entities(call: Call) -> dict[str, Any]:
    """Answer delete_entities: with their observations, and the relations that begin or end there."""
    names = set(_names(call, "entityNames"))
    graph = _graph(call)
    _forget(call, [id for ends, id in graph.relations.items() if names & set(ends[:2])])
    _forget(call, [id for name in names for id in graph.observations.get(name, {}).values()])
    _forget(call, [graph.itself[name] for name in names if name in graph.itself])
    return _success("Entities")


def delete_observations(call: Call) -> dict[str, Any]:
    """Answer delete_observations; the entity stays, also where none is left."""
    rows = _rows(call, "deletions", ("entityName",), "observations")
    graph = _graph(call)
    for row in rows:
        name = row["entityName"]
        if name in graph.types and name not in graph.itself:
            entity = {"name": name, "entityType": graph.types[name], "observations": []}
            _store(call, _items_of_entity(entity))
        ids = graph.observations.get(name, {})
        _forget(call, [ids[text] for text in dict.fromkeys(row["observations"]) if text in ids])
    return _success("Observations")


def delete_relations(call: Call) -> dict[str, Any]:
    """Answer delete_relations."""
    rows = _rows(call, "relations", ("from", "to", "relationType"))
    graph = _graph(call)
    _forget(call, [graph.relations[ends] for ends in dict.fromkeys(map(_ends, rows)) if ends in graph.relations])
    return _success("Relations")


def read_graph(call: Call) -> dict[str, Any]:
    """Answer read_graph."""
    return _graph(call).part()


def search_nodes(call: Call) -> dict[str, Any]:
    """Answer search_nodes: entities whose name, type or an observation holds the query, in capitals or not."""
    query = call.arguments["query"]
    if not isinstance(query, str):
        raise InvalidInput(f"query must be a string, not {type(query).__name__}.")
    words = query.lower()
    graph = _graph(call)
    return graph.part(
        [
            name
            for name, kind in graph.types.items()
            if any(words in text.lower() for text in (name, kind, *graph.observations[name]))
        ]
    )


def open_nodes(call: Call) -> dict[str, Any]:
    """Answer open_nodes."""
    return _graph(call).part(_names(call, "names"))


def graph_text(call: Call, uri: str) -> str:
    """Return the JSON of the resource. Raises NotFound."""
    if uri != URI:
        raise NotFound(f"There is no resource {uri!r}; there is {URI}.")
    return indented(_graph(call).part())


def stores_a_graph(memory: Any, namespace: str) -> bool:
    """Return whether a namespace holds anything of a graph."""
    return next(_memories(memory, namespace), None) is not None


def _items_of_entity(row: Row, *, itself: bool = True) -> Iterator[Any]:
    """Yield what is stored of an entity: ``itself`` by what it is, and its observations."""
    shared = {"type": "entity", "name": row["name"], "entityType": row["entityType"]}
    if itself:
        yield from _items(shared)
    if row["observations"]:
        yield from _items({**shared, "observations": row["observations"]})


def _items(row: Row) -> Iterator[Any]:
    try:
        yield from items_of("the call", row)
    except RowError as error:
        raise InvalidInput(f"It cannot be stored: {error}") from None


def _store(call: Call, items: Any) -> None:
    """Store items, all or none; one that another process has stored meanwhile is there already, and stays.

    Where another memory has the id of one, that gets another id: ``ID~2``, and so on.
    """
    numbered: list[tuple[int, Row]] = [(1, dict(item)) for item in items]
    while numbered:
        ids: set[str] = set()
        rows: list[Row] = []
        for index, (number, item) in enumerate(numbered):
            while (id := item["id"] if number == 1 else f"{item['id']}~{number}") in ids:
                number += 1
            ids.add(id)
            numbered[index] = (number, item)
            rows.append({**item, "id": id, "source_type": "agent"})
        try:
            call.memory.remember_many(rows, namespace=call.namespace, batch_size=len(rows))
            return
        except Conflict:
            report = call.memory.remember_many(rows, namespace=call.namespace, batch_size=len(rows), on_error="skip")
        refused = [row.position for row in report.rejected if not _is_stored(call, rows[row.position])]
        numbered = [(numbered[index][0] + 1, numbered[index][1]) for index in refused]
        if any(number > _MOST_IDS for number, _ in numbered):
            raise Conflict(f"{len(numbered)} of these cannot be stored: other memories have their ids.")


def _first_id(id: str) -> str:
    """Return an id without the number that it got because another memory has it."""
    first, mark, number = id.rpartition("~")
    return first if mark and number.isdecimal() else id


def _is_stored(call: Call, item: Row) -> bool:
    """Return whether the memory of an item's id says what the item says, stored by another process."""
    try:
        stored = call.memory.get(item["id"], namespace=call.namespace)
    except NotFound:
        return False
    about = {name: item["metadata"][name] for name in ("entity", "relation") if name in item["metadata"]}
    if any(stored.metadata.get(name) != value for name, value in about.items()):
        return False
    return stored.text == item["text"] or about.get("entity") in (stored.id, _first_id(stored.id))


def _forget(call: Call, ids: Sequence[str]) -> None:
    for id in ids:
        with suppress(NotFound):
            call.memory.forget(id, namespace=call.namespace)


def _rows(call: Call, name: str, strings: tuple[str, ...], several: str | None = None) -> list[Row]:
    """Return the objects of an argument, each with these strings and perhaps one list of them. Raises InvalidInput."""
    rows = call.arguments[name]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InvalidInput(f"{name} must be a list of objects.")
    for index, row in enumerate(rows):
        for part in strings:
            if not isinstance(row.get(part), str) or not row[part].strip():
                raise InvalidInput(f"{name}[{index}].{part} must be a string that is not empty.")
        if several is not None:
            texts = row.get(several)
            if not isinstance(texts, list) or not all(isinstance(text, str) and text.strip() for text in texts):
                raise InvalidInput(f"{name}[{index}].{several} must be a list of strings that are not empty.")
    parts = (*strings, *([several] if several else []))
    return [{part: row[part] for part in parts} for row in rows]


def _names(call: Call, name: str) -> list[str]:
    names = call.arguments[name]
    if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        raise InvalidInput(f"{name} must be a list of strings.")
    return names


def _ends(row: Row) -> tuple[str, str, str]:
    return row["from"], row["to"], row["relationType"]


def _success(what: str) -> dict[str, Any]:
    return {"success": True, "message": f"{what} deleted successfully"}
