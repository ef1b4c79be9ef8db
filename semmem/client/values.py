"""Values of the facade as JSON, and back: what a client sends, and what it makes of an answer."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from semmem.client.probe.stages import Probe, Probed
from semmem.legs.graph_paths import Step
from semmem.model import errors
from semmem.model.arguments import ARGUMENTS, FILTERS
from semmem.model.audit import Audit, AuditEntry
from semmem.model.errors import InvalidInput, SemmemError, StoreError
from semmem.model.field_kinds import Tags, Time
from semmem.model.filters import string
from semmem.model.history import Change, Changes, Link, Version
from semmem.model.memory_fields import FIELDS, STORED
from semmem.model.pictures import graph_class
from semmem.model.recall_log import LoggedHit, LoggedRecall, Recalls, Replay, Replayed
from semmem.model.recipe import RECIPES, ConversationSettings, GraphSettings, LexicalSettings, Recipe
from semmem.model.recipe import recipe as find_recipe
from semmem.model.recipe_settings import values_of
from semmem.model.reports import LeftOut, Namespace, NamespaceHash, RelevanceJudgment, Stats
from semmem.model.types import Concept, Hit, IngestReport, LegRank, Memory, Older, Page, Passage, Rejected
from semmem.rank_cap.places import Listed, Lists
from semmem.read.context import Context
from semmem.read.explanation import Explanation, LegExplanation
from semmem.read.overrides import tailored
from semmem.write.sync import ImportReport

if TYPE_CHECKING:
    import networkx

__all__ = [
    "as_json",
    "audit",
    "changes",
    "concepts",
    "context",
    "error_of",
    "explanation",
    "hashes",
    "hit",
    "import_report",
    "judgments",
    "link",
    "links",
    "lists",
    "logged_recall",
    "memory",
    "namespaces",
    "network",
    "page",
    "plan_of",
    "probe",
    "recalls",
    "recipe_of",
    "replay",
    "report",
    "sent",
    "stats",
    "versions",
]  # fmt: skip


# ---------------------------------------------------------------------- out


_METADATA = ("metadata", "mark")
"""Whose values are JSON already: no store makes a list of a set, or a text of a time."""
_STORED_AT = ("text_at", "updated_at", "since")
"""Times of an item that was exported, and of its links."""
_KINDS: Mapping[str, Mapping[str, Any]] = {
    **{name: schema for name, (schema, _) in {**ARGUMENTS, **FILTERS}.items()},
    **{name: {"format": "date-time"} for name in _STORED_AT},
}
"""What arguments, fields of a memory and filters are, by name."""


def sent(name: str, value: Any) -> Any:
    """Return an argument as JSON-ready values. Raises InvalidInput for what JSON does not know.

    A time, a duration or an array is converted where ``name``, an argument or a key within one, takes such a value.
    Elsewhere it is refused as the verb does: no text is made of a day.
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return string(name, str.__str__(value))
    if name in _METADATA and not isinstance(value, Mapping | list | tuple):
        raise _not_json(name, value)
    if isinstance(value, date) and _KINDS.get(name, {}).get("format") == "date-time":  # a datetime is one
        return value.isoformat()
    if isinstance(value, timedelta) and name == "ttl":
        return value.total_seconds()
    if isinstance(value, Recipe):
        return sent(name, value.as_dict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):  # Filters
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return {field: _member(name, field, one) for field, one in fields.items() if one or one is False}
    if isinstance(value, Mapping):
        if wrong := next((key for key in value if not isinstance(key, str)), None):
            raise InvalidInput(f"{name} has a key {wrong!r}, and JSON allows only strings as keys.")
        return {string(name, key): _member(name, key, one) for key, one in value.items()}
    if name == "vector" and hasattr(value, "tolist"):  # an array, or a number of one
        return value.tolist()
    if isinstance(value, Iterable) and not isinstance(value, bytes | bytearray | memoryview):
        return [sent(name, one) for one in value]
    if name in FIELDS:
        FIELDS[name].kind.checked(name, value)  # which says what the field takes
    raise _not_json(name, value)


def _not_json(name: str, value: Any) -> InvalidInput:
    return InvalidInput(f"{name} holds a value of the type {type(value).__name__}, which cannot be sent as JSON.")


def _member(name: str, key: str, value: Any) -> Any:
    return sent(key if key in _KINDS and name not in _METADATA else name, value)


def as_json(name: str, value: Any) -> bytes:
    """Return an argument as JSON in UTF-8. Raises InvalidInput."""
    try:
        return json.dumps(sent(name, value), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except RecursionError:
        raise InvalidInput(f"{name} is nested too deeply to be sent; flatten it.") from None
    except InvalidInput:
        raise
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"{name} cannot be sent as JSON: {error}.") from None


# ---------------------------------------------------------------------- recipes, both ways

_FIELDS = frozenset(f.name for f in dataclasses.fields(Recipe))
_FREE = (None, "composite")
"""The rerankers that load no model and send nothing."""
_TABLES = {"lexical": LexicalSettings, "graph": GraphSettings, "conversation": ConversationSettings}


def recipe_of(table: Mapping[str, Any]) -> Recipe:
    """Return the very recipe that ``as_dict`` wrote. Raises InvalidInput for what is none."""
    values = values_of(Recipe)
    keywords = {key: value for key, value in table.items() if key in _FIELDS}
    try:
        for key in keywords.keys() & values.keys():
            keywords[key] = values[key].merged(key, keywords[key], _TABLES.get(key, dict)())
        return find_recipe(Recipe(**keywords))
    except SemmemError:
        raise
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise InvalidInput(f"The recipe cannot be used: {error}.") from None


def plan_of(plan: Any, base: Recipe) -> Any:
    """Return a recipe that was sent as a mapping: whole, as ``as_dict`` writes it, or as changes of the one it names.

    Without a name they are changes of ``base``. What is no mapping stays as it is. Raises InvalidInput for one that
    cannot be used, and for a cross-encoder that is not ``base``'s: which model is loaded, the owner of the server says.
    The same holds for an endpoint, and for the regimes in which either of them runs.
    """
    if not isinstance(plan, Mapping):
        return plan
    reranker = plan.get("rerank")
    if isinstance(reranker, str) and reranker != base.rerank:
        if reranker.startswith("cross_encoder"):
            raise InvalidInput("A cross-encoder is chosen by the settings of the server; leave rerank out.")
        if reranker == "endpoint":
            raise InvalidInput("The settings of the server choose whether texts are sent away; leave rerank out.")
    regimes = plan.get("rerank_regimes", base.rerank_regimes)
    if isinstance(regimes, list | tuple) and tuple(regimes) != base.rerank_regimes and base.rerank not in _FREE:
        raise InvalidInput("The settings of the server choose where its reranker runs; leave rerank_regimes out.")
    chosen = _chosen(plan, base)
    if chosen.rerank not in _FREE and chosen.rerank_regimes != base.rerank_regimes:  # those of the recipe that it names
        raise InvalidInput("The settings of the server choose where its reranker runs; leave rerank out.")
    return chosen


def _chosen(plan: Mapping[str, Any], base: Recipe) -> Recipe:
    if set(plan) == _FIELDS:
        return recipe_of(plan)
    if "name" in plan and not (isinstance(plan["name"], str) and plan["name"] in RECIPES):
        names = ", ".join(sorted(RECIPES))
        raise errors.UnknownRecipe(f"There is no recipe named {plan['name']!r}; choose one of {names}.")
    return tailored(base, plan)


# ---------------------------------------------------------------------- in


def memory(value: Any) -> Memory:
    """Return a memory."""
    times = {name: datetime.fromisoformat(one) for name in _TIMES if (one := value[name])}
    lists = {name: tuple(value[name]) for name in _LISTS}
    return Memory(**{**value, **times, **lists, "older": tuple(map(_older, value.get("older", ())))})


_TIMES = ("updated_at", "last_seen", "last_accessed", *(n for n, row in STORED.items() if isinstance(row.kind, Time)))
_LISTS = ("contradicts", *(n for n, row in STORED.items() if isinstance(row.kind, Tags)))


def _older(value: Any) -> Older:
    return Older(value["id"], value["text"], _time(value["created_at"]))


def page(value: Any) -> Page:
    """Return a page of memories."""
    return Page(tuple(map(memory, value["memories"])), value["cursor"])


def versions(value: Any) -> list[Version]:
    """Return the versions of a memory."""
    return [
        Version(
            memory(one["memory"]),
            tuple(one["changed"]),
            one["changed_by"],
            _time(one["forgotten_at"]),
            one["forgotten_by"],
        )
        for one in value
    ]


def report(value: Any) -> IngestReport:
    """Return what ``remember_many`` did."""
    rejected = tuple(Rejected(**one) for one in value["rejected"])
    return IngestReport(**{**value, "rejected": rejected})


def import_report(value: Any) -> ImportReport:
    """Return what ``import_items`` did."""
    rejected = tuple(Rejected(**one) for one in value["rejected"])
    lists = {name: tuple(value.get(name, ())) for name in ("gone", "unlinked")}
    return ImportReport(**{**value, **lists, "rejected": rejected})


def namespaces(value: Any) -> list[Namespace]:
    """Return the namespaces of a store."""
    times = [datetime.fromisoformat(one["updated_at"]) for one in value["namespaces"]]
    return [Namespace(**{**one, "updated_at": at}) for one, at in zip(value["namespaces"], times, strict=True)]


def stats(value: Mapping[str, Any]) -> Stats:
    """Return the counts of a store."""
    return Stats(**{**value, **{name: tuple(value.get(name, ())) for name in ("nodes", "estimated")}})


def link(value: Any) -> Link:
    """Return a link between memories."""
    return Link(**{**value, "since": datetime.fromisoformat(value["since"])})


def links(value: Any) -> list[Link]:
    """Return some links."""
    return list(map(link, value))


def changes(value: Any) -> Changes:
    """Return some changes and the cursor to what follows."""
    rows = (
        Change(**{**one, "at": datetime.fromisoformat(one["at"]), "types": tuple(one.get("types", ()))})
        for one in value["changes"]
    )
    return Changes(tuple(rows), value["cursor"])


def concepts(value: Any) -> list[Concept]:
    """Return names that memories mention."""
    return [Concept(**{**one, "aliases": tuple(one["aliases"])}) for one in value]


def hashes(value: Any) -> dict[str, NamespaceHash]:
    """Return counts and hashes by namespace."""
    return {name: NamespaceHash(**one) for name, one in value.items()}


def probe(value: Any) -> Probe:
    """Return what became of the witnesses of a probe."""
    fields = {f.name for f in dataclasses.fields(Probed)} - {"class_"}
    each = [Probed(**{name: one[name] for name in fields}, class_=one["class"]) for one in value["probed"]]
    return Probe(**{**value, "probed": tuple(each)})


def network(value: Any) -> networkx.Graph:
    """Return a graph as networkx has it."""
    import networkx

    graph: networkx.Graph = graph_class()(networkx.node_link_graph(value, edges="edges"))
    return graph


def hit(value: Any) -> Hit:
    """Return one hit of a recall."""
    return Hit(
        memory(value["memory"]),
        value["rank"],
        value["score"],
        value["components"],
        {name: LegRank(**rank) for name, rank in value["legs"].items()},
        value["snippet"],
        tuple((start, end) for start, end in value["matches"]),
        tuple(value["duplicates"]),
        value["superseded_by"],
        value["part"],
        Passage(**value["passage"]),
        tuple(value.get("duplicate_namespaces", ())),
    )


def context(value: Any) -> Context:
    """Return a block for a prompt."""
    return Context(
        **{
            **value,
            "hits": tuple(map(hit, value["hits"])),
            "pinned": tuple(map(memory, value["pinned"])),
            "left_out": tuple(LeftOut(**one) for one in value["left_out"]),
        }
    )


def judgments(value: Any) -> list[RelevanceJudgment]:
    """Return what was said of memories."""
    return [
        RelevanceJudgment(
            one["namespace"],
            one["recall_id"],
            one["question"],
            one["memory_id"],
            bool(one["grade"]),
            one["made_by"],
            _time(one["at"]),
        )
        for one in value
    ]


def logged_recall(value: Any) -> LoggedRecall:
    """Return an entry of the log of recalls."""
    own = {name: value[name] for name in ("id", "question", "verb", "interface", "agent", "recipe")}
    facts = {key: one for key, one in value.items() if key not in (*own, "at", "namespaces", "hits")}
    hits = [{**one, "judged_at": _time(one["judged_at"])} for one in value["hits"]]
    return LoggedRecall(
        **own,
        namespaces=tuple(value["namespaces"]),
        hits=tuple(LoggedHit(**one) for one in hits),
        at=_time(value["at"]),
        facts=facts,
    )


def audit(value: Any) -> Audit:
    """Return a page of the audit."""
    entries = ({**one, "at": _time(one["at"]), "ids": tuple(one["ids"])} for one in value["entries"])
    return Audit(tuple(AuditEntry(**one) for one in entries), value["cursor"])


def recalls(value: Any) -> Recalls:
    """Return a page of the log of recalls."""
    return Recalls(tuple(map(logged_recall, value["recalls"])), value["cursor"])


def replay(value: Any) -> Replay:
    """Return a logged recall beside its repetition."""
    facts = {key: one for key, one in value.items() if key not in ("entry", "as_of", "is_same", "memories")}
    memories = tuple(Replayed(**one) for one in value["memories"])
    return Replay(logged_recall(value["entry"]), memories, _time(value["as_of"]), facts)


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def explanation(value: Any) -> Explanation:
    """Return why a memory is where it is."""
    legs = {name: LegExplanation(**leg) for name, leg in value["legs"].items()}
    steps = tuple(Step(**step) for step in value["steps"])
    fields = {key: one for key, one in value.items() if key not in ("steps", "path", "legs", "periods")}
    return Explanation(**fields, legs=legs, path=steps, periods=tuple(value.get("periods", ())))


def lists(value: Any) -> Lists:
    """Return what reach reads of the lists of one recall."""
    each = {
        leg: Listed(**{**one, "firsts": tuple(one["firsts"]), "unsure": frozenset(one["unsure"]), "shares": shares})
        for leg, one in value["lists"].items()
        for shares in [None if one.get("shares") is None else tuple(one["shares"])]
    }
    return Lists(**{**value, "lists": each, "notes": tuple(value["notes"])})


def error_of(value: Any, status: int) -> SemmemError:
    """Return the error that a problem tells of, of the same class as where the store is; a stranger's is StoreError."""
    kind = getattr(errors, str(value.get("class")), None) if isinstance(value, Mapping) else None
    if not (isinstance(kind, type) and issubclass(kind, SemmemError)):
        return StoreError(f"The server answered with status {status}, and not as semmem does; check the URL.")
    detail = str(value.get("detail") or "") or None
    if kind is errors.BadItem:
        return errors.BadItem(detail, position=value.get("position", -1), id=value.get("id"))
    if kind is errors.Conflict:
        return errors.Conflict(detail, names=frozenset(map(tuple, value.get("names", ()))))
    return kind(detail)
