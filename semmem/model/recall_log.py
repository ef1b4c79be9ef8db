"""The log of recalls as frozen dataclasses: who asked what, and which memories were given. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, TypeAlias, get_args, overload

__all__ = [
    "GONE_MEANWHILE",
    "OUTCOMES",
    "LogFilters",
    "LoggedHit",
    "LoggedRecall",
    "Outcome",
    "Recalls",
    "Replay",
    "Replayed",
    "found_of",
    "hits_within",
    "logged_of",
    "mark_of",
    "merged",
    "replayed",
]

Outcome: TypeAlias = Literal["given", "pinned", "left_out", "withheld", "excluded"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
_RANKED = ("given", "pinned", "left_out", "withheld")


@dataclass(frozen=True, slots=True)
class LoggedHit:
    """A memory in a logged recall: what became of it, and whether somebody found it useful.

    ``outcome`` is *given*; *pinned* (given by a context because it is pinned); *left_out* (the token budget had no
    room); *withheld* (the confidence was too low); *excluded* (the caller named its id); or None for a memory that was
    judged without having been found. ``rank`` and ``score`` are None where it was not ranked.
    """

    id: str
    namespace: str
    outcome: Outcome | None = None
    rank: int | None = None
    score: float | None = None
    useful: bool | None = None
    judged_by: str | None = None
    judged_at: datetime | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values; times as ISO 8601."""
        at = None if self.judged_at is None else self.judged_at.isoformat()
        return {
            "id": self.id,
            "namespace": self.namespace,
            "outcome": self.outcome,
            "rank": self.rank,
            "score": self.score,
            "useful": self.useful,
            "judged_by": self.judged_by,
            "judged_at": at,
        }


@dataclass(frozen=True, slots=True)
class LoggedRecall:
    """One entry of the log of recalls. It holds the ids of memories, and no text of any.

    ``verb`` is *recall* or *context*, ``interface`` the interface that asked (*python*, *cli*, *http*, *page*, *mcp* or
    *hook*), ``agent`` the client, hook or key by its name, where there is one. ``namespaces`` are those of the entry
    that the reader may see, and ``hits`` are of these, best first. ``facts`` has more of the answer: ``confidence``,
    ``min_confidence``, ``regime``, ``settings``, ``degraded``, and the ``arguments`` that were given.
    """

    id: str
    question: str
    namespaces: tuple[str, ...]
    hits: tuple[LoggedHit, ...] = ()
    at: datetime | None = None
    verb: str = "recall"
    interface: str = "python"
    agent: str | None = None
    recipe: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def given(self) -> tuple[LoggedHit, ...]:
        """The memories that whoever asked was shown."""
        return tuple(hit for hit in self.hits if hit.outcome in ("given", "pinned"))

    @property
    def left_out(self) -> tuple[LoggedHit, ...]:
        """The hits for which the token budget had no room."""
        return tuple(hit for hit in self.hits if hit.outcome == "left_out")

    @property
    def withheld(self) -> tuple[LoggedHit, ...]:
        """The hits that were not returned because the confidence was too low."""
        return tuple(hit for hit in self.hits if hit.outcome == "withheld")

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values; times as ISO 8601."""
        return {
            "id": self.id,
            "at": None if self.at is None else self.at.isoformat(),
            "verb": self.verb,
            "interface": self.interface,
            "agent": self.agent,
            "question": self.question,
            "namespaces": list(self.namespaces),
            "recipe": self.recipe,
            **self.facts,
            "hits": [hit.as_dict() for hit in self.hits],
        }


@dataclass(frozen=True, slots=True)
class Recalls(Sequence[LoggedRecall]):
    """A page of the log of recalls, newest first, and the ``cursor`` of the next page, None for the last one."""

    items: tuple[LoggedRecall, ...]
    cursor: str | None = None

    @overload
    def __getitem__(self, index: int) -> LoggedRecall: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[LoggedRecall]: ...
    def __getitem__(self, index: int | slice) -> LoggedRecall | Sequence[LoggedRecall]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        return {"recalls": [one.as_dict() for one in self.items], "cursor": self.cursor}


@dataclass(frozen=True, slots=True)
class LogFilters:
    """Which entries of the log to list: those that meet all of these; ``memory`` is the id of a memory they gave."""

    interface: str | None = None
    agent: str | None = None
    memory: str | None = None
    asked_after: datetime | None = None
    asked_before: datetime | None = None


# ---------------------------------------------------------------------- as stores keep it


GONE_MEANWHILE = (
    "A memory of this recall was forgotten for good or became sensitive meanwhile, so the recall is not logged."
)


def hits_within(entry: LoggedRecall, namespace: str) -> dict[str, dict[str, Any]]:
    """Return the hits of one namespace as a store keeps them, by id; a memory that is there twice by its best rank."""
    hits: dict[str, dict[str, Any]] = {}
    for hit in entry.hits:
        if hit.namespace == namespace and hit.id not in hits:
            values = {"outcome": hit.outcome, "rank": hit.rank, "score": hit.score}
            hits[hit.id] = {name: value for name, value in values.items() if value is not None}
    return hits


def found_of(hits: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the ids of those of ``hits_within`` that the recall found: a caller may leave out whatever there is."""
    return [id for id, hit in hits.items() if hit.get("outcome") != "excluded"]


def mark_of(useful: bool, made_by: str | None, at: datetime) -> dict[str, Any]:
    """Return a judgment as a store keeps it with the hit that it is about."""
    return {"useful": useful, "judged_by": made_by, "judged_at": at.isoformat(timespec="microseconds")}


def logged_of(
    namespace: str,
    id: str,
    at: datetime,
    question: str,
    recipe: str | None,
    interface: str | None,
    agent: str | None,
    facts: Mapping[str, Any],
    hits: Mapping[str, Mapping[str, Any]],
) -> LoggedRecall:
    """Return the entry in one row of a store, which has the hits of one namespace."""
    more = dict(facts)
    verb = more.pop("verb", "recall")
    return LoggedRecall(
        id,
        question,
        (namespace,),
        _ordered(_hit(namespace, one, hits[one]) for one in hits),
        at,
        verb,
        interface or "python",
        agent,
        recipe,
        more,
    )


def _hit(namespace: str, id: str, values: Mapping[str, Any]) -> LoggedHit:
    judged_at = values.get("judged_at")
    return LoggedHit(
        id,
        namespace,
        values.get("outcome"),
        values.get("rank"),
        values.get("score"),
        values.get("useful"),
        values.get("judged_by"),
        None if judged_at is None else datetime.fromisoformat(judged_at),
    )


def _ordered(hits: Iterable[LoggedHit]) -> tuple[LoggedHit, ...]:
    """Return hits by rank; those without one last, the pinned ones first among them."""
    last = len(OUTCOMES)

    def place(hit: LoggedHit) -> tuple[bool, int, int, str, str]:
        outcome = last if hit.outcome is None else OUTCOMES.index(hit.outcome)
        return hit.rank is None, hit.rank or 0, outcome, hit.namespace, hit.id

    return tuple(sorted(hits, key=place))


def merged(rows: Iterable[LoggedRecall]) -> tuple[LoggedRecall, ...]:
    """Return the rows of several namespaces as one entry for each recall, in the order of their first rows."""
    entries: dict[str, LoggedRecall] = {}
    for row in rows:
        one = entries.get(row.id)
        entries[row.id] = (
            row
            if one is None
            else replace(one, namespaces=(*one.namespaces, *row.namespaces), hits=_ordered((*one.hits, *row.hits)))
        )
    return tuple(entries.values())


# ---------------------------------------------------------------------- asked again


@dataclass(frozen=True, slots=True)
class Replayed:
    """A memory in a replay: its place in the logged recall and its place now, None where it has none.

    ``change`` is *same*, *moved*, *new*, *gone* (no hit any more) or *forgotten* (no memory any more).
    """

    id: str
    namespace: str
    change: str
    rank_then: int | None = None
    rank_now: int | None = None
    score_then: float | None = None
    score_now: float | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """A logged recall beside the same question asked again, now or over the memories ``as_of`` its time.

    ``memories`` are those of both, in the order of now, those that are no hit any more last. ``facts`` has the
    ``confidence``, ``regime``, ``recipe``, ``settings`` and ``degraded`` of the repetition.
    """

    entry: LoggedRecall
    memories: tuple[Replayed, ...]
    as_of: datetime | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_same(self) -> bool:
        """Whether the same memories have the same ranks."""
        return all(one.change == "same" for one in self.memories)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values; times as ISO 8601."""
        return {
            "entry": self.entry.as_dict(),
            "as_of": None if self.as_of is None else self.as_of.isoformat(),
            "is_same": self.is_same,
            **self.facts,
            "memories": [{name: getattr(one, name) for name in Replayed.__dataclass_fields__} for one in self.memories],
        }


def replayed(
    entry: LoggedRecall, now: Sequence[LoggedHit], forgotten: Iterable[tuple[str, str]]
) -> tuple[Replayed, ...]:
    """Return the ranked memories of an entry and of its repetition, side by side.

    ``forgotten`` are (namespace, id) of memories that do not exist any more.
    """
    then = {(hit.namespace, hit.id): hit for hit in entry.hits if hit.rank is not None and hit.outcome in _RANKED}
    gone = set(forgotten)
    rows = []
    for hit in now:
        before = then.pop((hit.namespace, hit.id), None)
        if before is None:
            rows.append(Replayed(hit.id, hit.namespace, "new", None, hit.rank, None, hit.score))
            continue
        change = "same" if before.rank == hit.rank else "moved"
        rows.append(Replayed(hit.id, hit.namespace, change, before.rank, hit.rank, before.score, hit.score))
    for name, hit in then.items():
        change = "forgotten" if name in gone else "gone"
        rows.append(Replayed(hit.id, hit.namespace, change, hit.rank, None, hit.score, None))
    return tuple(rows)
