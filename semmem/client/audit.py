"""The audit: note who read and wrote what, before the answer is given; and read what was noted.

Off unless the setting ``audit`` is on. An entry holds ids and counts, and no text. A call whose entry cannot be written
fails, so no answer leaves without one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from semmem.model.audit import DONE, Audit, AuditEntry, AuditFilters
from semmem.model.errors import InvalidInput, StoreUnavailable
from semmem.model.filters import LONGEST_NAME, at_time, several_namespaces, string, whole
from semmem.model.history import Link, Version
from semmem.model.process.asker import asker, holder, written_in
from semmem.model.store import life_of
from semmem.model.types import Hit, Memory
from semmem.read.tracing import Call
from semmem.write.items import uuid7

if TYPE_CHECKING:
    from semmem.client.connection import Connection
    from semmem.client.memory import Semmem

__all__ = ["Auditor", "audit", "note_refused"]

_MOST_IDS = 100
_WHOLE_STORE = ""


_NOTHING: AbstractContextManager[None] = nullcontext()


class Auditor:
    """Notes each verb of the stores whose setting ``audit`` is on; one of the watchers of ``read.tracing``."""

    def leg(self, call: Call) -> AbstractContextManager[None]:
        """Note nothing of a leg."""
        return _NOTHING

    def step(self, call: Call) -> AbstractContextManager[None]:
        """Note nothing of a step."""
        return _NOTHING

    @contextmanager
    def verb(self, call: Call) -> Iterator[None]:
        """Note a call when it has ended, and before its answer is given."""
        mem = call.memory
        if mem is None or call.remote or not mem.settings.audit:
            yield
            return
        with written_in() as written:
            try:
                yield
            except BaseException as error:  # what it has written until then is written
                if not mem.store.is_in_whole:  # which undoes the entry of a call that fails
                    stopped = not isinstance(error, Exception)  # by Ctrl-C, which no error of the audit may hide
                    with suppress(StoreUnavailable) if stopped else _NOTHING:
                        stored = _grouped(dict.fromkeys(written))
                        _note(mem, call.name, call.namespaces, type(error).__name__, len(written) or None, stored)
                raise
            names = {**dict.fromkeys(_returned(call.result)), **dict.fromkeys(written)}
            _note(mem, call.name, call.namespaces, DONE, call.facts.get("count"), _grouped(names))


def note_refused(mem: Semmem, verb: str, namespaces: Sequence[str] | None, error: BaseException) -> None:
    """Note a call that an interface refuses before it reaches a verb, or whose transaction has been undone."""
    if mem.settings.audit:
        _note(mem, verb, tuple(namespaces or ()), type(error).__name__, None, {})


def audit(
    mem: Connection,
    namespace: str | Sequence[str] | None,
    who: str | None,
    times: Mapping[str, datetime | date | str | None],
    limit: int,
    cursor: str | None,
) -> Audit:
    """Return a page of the audit; see ``Semmem.audit``."""
    whole("limit", limit, 1, 10_000, example=1_000)
    filters = AuditFilters(
        None if namespace is None else several_namespaces(namespace),
        None if who is None else string("who", who),
        **{name: None if at is None else at_time(name, at) for name, at in times.items()},
    )
    after, _, last = ("", "", "") if cursor is None else string("cursor", cursor).partition("/")
    if cursor is not None and len(after) != 36:
        raise InvalidInput("This cursor is not one that audit returned; pass that of the page before.")
    entries = tuple(life_of(mem.store).audited(filters, limit + 1, (after, last)))
    there = entries[limit - 1] if len(entries) > limit else None
    return Audit(entries[:limit], None if there is None else f"{there.id}/{there.namespace}")


def _note(
    mem: Semmem,
    verb: str,
    named: Sequence[str],
    outcome: str,
    count: int | None,
    ids: Mapping[str, Sequence[str]],
) -> None:
    """Write the entry of a call: a row for each namespace. Raises StoreUnavailable where that is not possible."""
    interface, agent = asker()
    id = uuid7()
    named = sorted({_noted(name) for name in (*named, *ids)}) or [_WHOLE_STORE]
    agent = agent or mem.settings.agent
    agent = None if agent is None else _noted(agent)
    apart = len(named) > 1 and bool(ids or (outcome == DONE and count is not None))

    def entry(name: str) -> AuditEntry:
        own = ids.get(name, ())
        number = len(own) if apart else count
        return AuditEntry(id, None, name, holder(), interface, agent, verb, outcome, number, tuple(own[:_MOST_IDS]))

    entries = [entry(name) for name in named]
    try:
        life_of(mem.store).note_audit(entries)
    except Exception as error:
        if mem.store.is_in_whole:
            raise  # the one who began the transaction begins it again, or says why not
        raise StoreUnavailable(
            f"The audit of this {verb} could not be written, so its answer is withheld; a write may have been stored. "
            "Ask again when the store answers."
        ) from error


def _noted(name: str) -> str:
    """Return a name as a store takes it, whatever a caller gave; that of a namespace which exists stays as it is."""
    return name.encode("utf-8", "replace").decode().replace("\x00", "?")[:LONGEST_NAME]


def _grouped(names: Mapping[tuple[str, str], None]) -> dict[str, list[str]]:
    """Return ids by namespace, each in the order of the answer."""
    ids: defaultdict[str, list[str]] = defaultdict(list)
    for namespace, id in names:
        ids[namespace].append(id)
    return ids


def _returned(result: Any) -> Iterator[tuple[str, str]]:
    """Yield (namespace, id) of the memories in an answer: one, its versions, links, hits, pinned ones, or a list."""
    if isinstance(result, Memory | Hit):
        yield result.namespace, result.id
    elif isinstance(result, Version):
        yield from _returned(result.memory)
    elif isinstance(result, Link):
        yield from ((result.namespace, id) for id in (result.from_id, result.to_id))
    elif hasattr(result, "hits"):
        for one in (*result.hits, *getattr(result, "pinned", ())):
            yield from _returned(one)
    elif isinstance(result, Sequence) and not isinstance(result, str | bytes):
        for one in result:
            if isinstance(one, Memory | Hit | Version | Link):
                yield from _returned(one)
