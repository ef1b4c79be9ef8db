"""The log of recalls: write an entry, read entries, and ask the question of one again. It wires the parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from semmem.client.connection import Connection
from semmem.model.errors import InvalidInput
from semmem.model.filters import at_time, string, strings, whole
from semmem.model.process.asker import INTERFACES
from semmem.model.recall_log import LogFilters, LoggedHit, LoggedRecall, Outcome, Recalls, Replay, merged, replayed
from semmem.model.short_ids import is_short
from semmem.model.store import life_of
from semmem.read.rankings import reason
from semmem.read.steps import cut, page
from semmem.read.tracing import observed
from semmem.write.access import unlogged
from semmem.write.feedback import unknown_recall
from semmem.write.recall_log import note_recall

if TYPE_CHECKING:
    from semmem.read.context import Context
    from semmem.read.result import Recall

__all__ = ["RecallLog"]

_BEHIND = "g"
"""The character behind all that an id is made of: an id with it comes after every one that begins so."""

_USUAL = {
    "limit": 10, "offset": 0, "sort_by": "relevance", "fold_parts": True, "min_confidence": 0.0, "exclude": (),
}  # fmt: skip
"""Arguments of a recall that are not logged where they have these values, or None."""


class RecallLog(Connection):
    """The verbs that read the log of recalls, and how recalls get into it."""

    if TYPE_CHECKING:

        def recall(self, *args: Any, **kwargs: Any) -> Recall:
            """The facade's own."""
            ...

    @observed
    def recalls(
        self,
        *,
        namespace: str | Sequence[str] = "default",
        interface: str | None = None,
        agent: str | None = None,
        memory: str | None = None,
        asked_after: datetime | date | str | None = None,
        asked_before: datetime | date | str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Recalls:
        """Return a page of the log of recalls, newest first; pass its ``cursor`` to get the next one.

        The log exists if the setting ``recall_log`` is on. An entry has the question, when, through which interface and
        by which agent it was asked, and the ids of the memories that were given, left out or withheld; no text of any.
        ``interface``, ``agent``, ``memory`` (the id of one that was given), ``asked_after`` and ``asked_before`` narrow
        the list. Of a recall of several namespaces, an entry shows the hits in ``namespace``. Raises InvalidInput.
        """
        names = strings("namespace", namespace)
        whole("limit", limit, 1, 1_000, example=100)
        if interface is not None and string("interface", interface) not in INTERFACES:
            raise InvalidInput(f"There is no interface {interface!r}; choose one of {', '.join(INTERFACES)}.")
        times = {"asked_after": asked_after, "asked_before": asked_before}
        filters = LogFilters(
            interface,
            None if agent is None else string("agent", agent),
            None if memory is None else self._whole_ids(names, (string("memory", memory),))[0],
            **{name: None if at is None else at_time(name, at) for name, at in times.items()},
        )
        after = None if cursor is None else string("cursor", cursor)
        entries = merged(life_of(self.store).recalls(names, filters, limit + 1, after))
        return Recalls(entries[:limit], entries[limit - 1].id if len(entries) > limit else None)

    @observed
    def logged_recall(self, recall_id: str, *, namespace: str | Sequence[str] = "default") -> LoggedRecall:
        """Return the entry of one recall in the log, by the ``id`` of the recall or its beginning. Raises NotFound."""
        names = strings("namespace", namespace)
        entries = merged(life_of(self.store).recalled(names, self._whole_recall_id(names, recall_id)))
        if not entries:
            raise unknown_recall(recall_id, names)
        return entries[0]

    @observed
    def replay_recall(
        self, recall_id: str, *, namespace: str | Sequence[str] = "default", then: bool = False
    ) -> Replay:
        """Ask the question of a logged recall again, and return what differs; the repetition is not logged.

        It is asked of the memories of today, or with ``then`` of those that were valid at that time, by the recipe and
        the settings of today unless the recall named a recipe. Of a context, its recall is repeated. Raises NotFound,
        and InvalidInput for a recall with a ``vector``, which the log does not keep.
        """
        if not isinstance(then, bool):
            raise InvalidInput(f"then must be True or False, not {then!r}.")
        entry = self.logged_recall(recall_id, namespace=namespace)
        arguments = dict(entry.facts.get("arguments", {}))
        if arguments.pop("vector", False):
            raise InvalidInput("This recall had a vector of its own, which the log does not keep; ask again with it.")
        as_of = entry.at if then and "as_of" not in arguments else None
        with unlogged():
            result = self.recall(
                entry.question,
                namespace=entry.namespaces,
                exclude=tuple(hit.id for hit in entry.hits if hit.outcome == "excluded"),
                **_arguments(arguments),
                **({} if as_of is None else {"as_of": as_of}),
            )
        ranked = tuple(_ranked(result))
        there = {(hit.namespace, hit.id) for hit in ranked}
        past = {(hit.namespace, hit.id) for hit in entry.hits if hit.rank is not None} - there
        facts = {"recipe": result.recipe.name, **_facts(result)}
        return Replay(entry, replayed(entry, ranked, past - self._existing(past)), as_of, facts)

    def _whole_recall_id(self, namespaces: Sequence[str], recall_id: str) -> str:
        """Return the id of a logged recall, of which the beginning is enough. Raises InvalidInput where several fit."""
        id = string("recall_id", recall_id)
        if not is_short(id):
            return id
        rows = life_of(self.store).recalls(namespaces, LogFilters(), 2, id + _BEHIND)
        found = list(dict.fromkeys(row.id for row in rows if row.id.startswith(id)))
        if len(found) > 1:
            raise InvalidInput(f"Several logged recalls begin with {id!r}, such as {found[0]}; give more of the id.")
        return found[0] if found else id

    def _existing(self, names: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return those of some (namespace, id) that are stored."""
        asked = [*names]
        return set(self.store.payload_hashes(asked)) if asked else set()

    def _logged(
        self, result: Recall, arguments: Mapping[str, Any], context: Context | None = None
    ) -> tuple[str | None, str | None]:
        """Log a recall, or the ``context`` composed of it; return the id of its entry, or why there is none."""
        try:
            names = result.candidates.scope.namespaces
            out = {(ns, id) for ns in names for id in result.candidates.scope.exclude}
            excluded = (LoggedHit(id, namespace, "excluded") for namespace, id in self._existing(out))
            hits = _ranked(result) if context is None else _composed(result, context)
            id = note_recall(
                life_of(self.store), result.candidates.question.query, names, (*hits, *excluded),
                verb="recall" if context is None else "context",
                recipe=result.recipe.name,
                agent=self.settings.agent,
                facts={**_facts(result), "arguments": _as_json(arguments)},
                redact=self.settings.credentials != "off",
            )  # fmt: skip
        except Exception as error:  # noqa: BLE001  # the answer is there, and stays
            return None, reason(error)
        return id, None

    def _log_recall(self, result: Recall, arguments: Mapping[str, Any]) -> Recall:
        """Log a recall and return it with the id of its entry. A log that cannot be written makes it degraded."""
        id, why = self._logged(result, arguments)
        return replace(result, id=id, degraded=result.degraded if why is None else {**result.degraded, "log": why})

    def _log_context(self, result: Recall, arguments: Mapping[str, Any], context: Context) -> Context:
        """Log a context, as ``_log_recall`` does a recall."""
        id, why = self._logged(result, arguments, context)
        degraded = context.degraded if why is None else {**context.degraded, "log": why}
        return replace(context, recall_id=id, degraded=degraded)


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
    from semmem.client.http_request import filters_of
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
