"""The log of recalls: write an entry, read entries, and ask the question of one again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from semmem.client.connection import Connection
from semmem.client.recalling import answered
from semmem.model.errors import InvalidInput
from semmem.model.failure import reason
from semmem.model.filters import at_time, filters_of, page_limit, several_namespaces, string, true_or_false
from semmem.model.process.asker import INTERFACES
from semmem.model.recall_log import LogFilters, LoggedHit, LoggedRecall, Outcome, Recalls, Replay, merged, replayed
from semmem.model.short_ids import is_short
from semmem.model.store import Store, life_of
from semmem.read.steps import cut, page
from semmem.write.access import unlogged
from semmem.write.feedback import unknown_recall
from semmem.write.recall_log import note_recall

if TYPE_CHECKING:
    from semmem.read.context import Context
    from semmem.read.result import Recall

__all__ = ["log_context", "log_recall", "logged_recall", "recalls", "replay_recall", "whole_recall_id"]

_BEHIND = "g"
"""The character behind all that an id is made of: an id with it comes after every one that begins so."""

_USUAL = {
    "limit": 10, "offset": 0, "sort_by": "relevance", "fold_parts": True, "min_confidence": 0.0, "exclude": (),
}  # fmt: skip
"""Arguments of a recall that are not logged where they have these values, or None."""

_AS_USUAL = {**dict.fromkeys(("recipe", "filters", "vector", "token_budget", "as_of", "now")), **_USUAL}


def recalls(
    mem: Connection,
    namespace: str | Sequence[str],
    interface: str | None,
    agent: str | None,
    memory: str | None,
    times: Mapping[str, datetime | date | str | None],
    limit: int,
    cursor: str | None,
) -> Recalls:
    """Return a page of the log of recalls; see ``Semmem.recalls``."""
    names = several_namespaces(namespace)
    page_limit("recalls", limit)
    if interface is not None and string("interface", interface) not in INTERFACES:
        raise InvalidInput(f"There is no interface {interface!r}; choose one of {', '.join(INTERFACES)}.")
    filters = LogFilters(
        interface,
        None if agent is None else string("agent", agent),
        None if memory is None else mem.whole_ids(names, (string("memory", memory),))[0],
        **{name: None if at is None else at_time(name, at) for name, at in times.items()},
    )
    after = None if cursor is None else string("cursor", cursor)
    entries = merged(life_of(mem.store).recalls(names, filters, limit + 1, after))
    return Recalls(entries[:limit], entries[limit - 1].id if len(entries) > limit else None)


def logged_recall(mem: Connection, recall_id: str, namespace: str | Sequence[str]) -> LoggedRecall:
    """Return the entry of one recall in the log; see ``Semmem.logged_recall``."""
    names = several_namespaces(namespace)
    entries = merged(life_of(mem.store).recalled(names, whole_recall_id(mem.store, names, recall_id)))
    if not entries:
        raise unknown_recall(recall_id, names)
    return entries[0]


def replay_recall(mem: Connection, recall_id: str, namespace: str | Sequence[str], then: bool) -> Replay:
    """Ask the question of a logged recall again; see ``Semmem.replay_recall``."""
    true_or_false("then", then)
    entry = logged_recall(mem, recall_id, namespace)
    arguments = dict(entry.facts.get("arguments", {}))
    if arguments.pop("vector", False):
        raise InvalidInput("This recall had a vector of its own, which the log does not keep; ask again with it.")
    as_of = entry.at if then and "as_of" not in arguments else None
    exclude = tuple(hit.id for hit in entry.hits if hit.outcome == "excluded")
    asked = {**_AS_USUAL, **_arguments(arguments), "exclude": exclude}
    if asked["as_of"] is None:  # else that was the time of the question too
        asked |= {"as_of": as_of, "now": asked["now"] or (entry.at and entry.at.astimezone())}
    with unlogged():
        result = answered(mem, entry.question, entry.namespaces, asked)
    ranked = tuple(_ranked(result))
    there = {(hit.namespace, hit.id) for hit in ranked}
    past = {(hit.namespace, hit.id) for hit in entry.hits if hit.rank is not None} - there
    facts = {"recipe": result.recipe.name, **_facts(result)}
    return Replay(entry, replayed(entry, ranked, past - _existing(mem.store, past)), as_of, facts)


def whole_recall_id(store: Store, namespaces: Sequence[str], recall_id: str) -> str:
    """Return the id of a logged recall, of which the beginning is enough. Raises InvalidInput where several fit."""
    id = string("recall_id", recall_id)
    if not is_short(id):
        return id
    rows = life_of(store).recalls(namespaces, LogFilters(), 2, id + _BEHIND)
    found = list(dict.fromkeys(row.id for row in rows if row.id.startswith(id)))
    if len(found) > 1:
        raise InvalidInput(f"Several logged recalls begin with {id!r}, such as {found[0]}; give more of the id.")
    return found[0] if found else id


def _existing(store: Store, names: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return those of some (namespace, id) that are stored."""
    asked = [*names]
    return set(store.payload_hashes(asked)) if asked else set()


def log_recall(mem: Connection, result: Recall, arguments: Mapping[str, Any]) -> Recall:
    """Log a recall and return it with the id of its entry. A log that cannot be written makes it degraded."""
    id, why = _logged(mem, result, arguments)
    return replace(result, id=id, degraded=result.degraded if why is None else {**result.degraded, "log": why})


def log_context(mem: Connection, result: Recall, arguments: Mapping[str, Any], context: Context) -> Context:
    """Log a context, as ``log_recall`` does a recall."""
    id, why = _logged(mem, result, arguments, context)
    degraded = context.degraded if why is None else {**context.degraded, "log": why}
    return replace(context, recall_id=id, degraded=degraded)


def _logged(
    mem: Connection, result: Recall, arguments: Mapping[str, Any], context: Context | None = None
) -> tuple[str | None, str | None]:
    """Log a recall, or the ``context`` composed of it; return the id of its entry, or why there is none."""
    try:
        names = result.candidates.scope.namespaces
        out = {(ns, id) for ns in names for id in result.candidates.scope.exclude}
        excluded = (LoggedHit(id, namespace, "excluded") for namespace, id in _existing(mem.store, out))
        hits = _ranked(result) if context is None else _composed(result, context)
        id = note_recall(
            life_of(mem.store),
            result.candidates.question.query,
            names,
            (*hits, *excluded),
            verb="recall" if context is None else "context",
            recipe=result.recipe.name,
            agent=mem.settings.agent,
            facts={**_facts(result), "arguments": _as_json(arguments)},
            redact=mem.settings.credentials != "off",
        )
    except Exception as error:  # noqa: BLE001  # the answer is there, and stays
        return None, reason(error)
    return id, None


def _facts(result: Recall) -> dict[str, Any]:
    """Return what the log says of an answer as a whole."""
    return {
        "confidence": result.confidence,
        "min_confidence": result.min_confidence,
        "regime": result.regime,
        "settings": dict(result.settings),
        "degraded": dict(result.degraded),
    }


def _ranked(result: Recall) -> Iterator[LoggedHit]:
    """Yield every memory that was ranked on the page of a recall, with what became of it."""
    left_out = {(one.namespace, one.id): one.rank for one in result.left_out}
    for hit in result.hits:
        yield LoggedHit(hit.id, hit.namespace, "given", hit.rank, hit.score)
    if left_out or result.withheld:
        outcome: Outcome = "withheld" if result.withheld else "left_out"
        groups = page(cut(result.candidates, result.cut), result.cut)
        for rank, (fused, _) in enumerate(groups, result.offset + 1):
            id, _, namespace = fused.key
            if result.withheld or (namespace, id) in left_out:
                yield LoggedHit(id, namespace, outcome, rank, fused.score)


def _composed(result: Recall, context: Context) -> Iterator[LoggedHit]:
    """Yield the memories of a context and those that it left out, each with its rank in the recall if it has one."""
    places = {(hit.namespace, hit.id): (hit.rank, hit.score) for hit in result.hits}
    given = {(hit.namespace, hit.id) for hit in context.hits}
    pinned = {(memory.namespace, memory.id) for memory in context.pinned}
    for hit in _ranked(result):
        name = hit.namespace, hit.id
        if hit.outcome != "given" or name in given:
            yield hit
        else:
            yield replace(hit, outcome="pinned" if name in pinned else "left_out")
    for memory in context.pinned:
        if (memory.namespace, memory.id) not in places:
            yield LoggedHit(memory.id, memory.namespace, "pinned")
    for one in context.left_out:
        if (one.namespace, one.id) not in places:
            yield LoggedHit(one.id, one.namespace, "left_out")


def _as_json(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a recall that were not as usual, as JSON; a vector is only said to have been there."""
    from semmem.client.values import sent

    given: dict[str, Any] = {}
    for name, value in arguments.items():
        if value is None or value == _USUAL.get(name) or name == "exclude":
            continue
        if name == "vector":
            given[name] = True
        elif name != "filters":
            given[name] = sent(name, value)
        elif chosen := filters_of(value):
            given[name] = sent(name, chosen)
    return given


def _arguments(logged: Mapping[str, Any]) -> dict[str, Any]:
    """Return logged arguments as ``recall`` takes them."""
    from semmem.client.values import recipe_of

    recipe = logged.get("recipe")
    return {**logged, **({"recipe": recipe_of(recipe)} if isinstance(recipe, Mapping) else {})}
