"""The audit: note who read and wrote what, before the answer is given; and read what was noted.

Off unless the setting ``audit`` is on. An entry holds ids and counts, and no text. A call whose entry cannot be written
fails, so no answer leaves without one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from semmem.model.audit import DONE, Audit, AuditEntry, AuditFilters
from semmem.model.errors import InvalidInput, StoreUnavailable
from semmem.model.filters import LONGEST_NAME, at_time, page_limit, several_namespaces, string
from semmem.model.history import Link, Version
from semmem.model.process.asker import Written, asker, holder, own_work, written_in
from semmem.model.store import life_of
from semmem.model.types import Hit, Memory
from semmem.read.tracing import Call
from semmem.write.items import uuid7

if TYPE_CHECKING:
    from semmem.client.connection import Connection
    from semmem.client.memory import Semmem
    from semmem.config import Settings
    from semmem.model.store import Store

__all__ = ["Auditor", "audit", "note_done", "note_refused"]

_MOST_NAMESPACES = 100
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
                        count = written.counts.total() or None
                        _note(mem.store, mem.settings, call.name, call.namespaces, type(error).__name__, count, written)
                raise
            written.add(_unwritten(call.result, written))
            count = call.facts.get("count")
            _note(mem.store, mem.settings, call.name, call.namespaces, DONE, count, written)


def note_refused(mem: Semmem, verb: str, namespaces: Sequence[str] | None, error: BaseException) -> None:
    """Note a call that an interface refuses before it reaches a verb, or whose transaction has been undone."""
    if mem.settings.audit:
        _note(mem.store, mem.settings, verb, tuple(namespaces or ()), type(error).__name__, None, Written())


def note_done(
    store: Store,
    settings: Settings,
    verb: str,
    *,
    namespaces: Sequence[str] | None = None,
    ids: Sequence[str] = (),
    outcome: str = DONE,
    count: int | None = None,
) -> None:
    """Note work on a store that is no verb of a Semmem: on its keys, a copy, requests that no key was shown with.

    ``ids`` are what it was done to, such as the names of keys.
    """
    if settings.audit:
        names = tuple(namespaces or (_WHOLE_STORE,))
        written = Written()
        written.add((name, id) for name in names for id in ids)
        _note(store, settings, verb, names, outcome, len(ids) or count, written)


def audit(
    mem: Connection,
    namespace: str | Sequence[str] | None,
    who: str | None,
    times: Mapping[str, datetime | date | str | None],
    limit: int,
    cursor: str | None,
) -> Audit:
    """Return a page of the audit; see ``Semmem.audit``."""
    page_limit("audit", limit)
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
    store: Store,
    settings: Settings,
    verb: str,
    named: Sequence[str],
    outcome: str,
    count: int | None,
    written: Written,
) -> None:
    """Write the entry of a call: a row for each namespace. Raises StoreUnavailable where that is not possible."""
    interface, agent = asker()
    id = uuid7()
    names = _told(named, written)
    agent = agent or settings.agent
    agent = None if agent is None else _noted(agent)
    apart = len(names) > 1 and bool(written.counts or (outcome == DONE and count is not None))

    def entry(name: str) -> AuditEntry:
        number = written.counts[name] if apart else count
        ids = tuple(written.ids.get(name, ()))
        return AuditEntry(id, None, name, holder(), interface, agent, verb, outcome, number, ids)

    entries = [entry(name) for name in names]
    try:
        with own_work():  # the namespaces that a call asks for in vain are noted, too
            life_of(store).note_audit(entries)
    except Exception as error:
        if store.is_in_whole:
            raise  # the one who began the transaction begins it again, or says why not
        raise StoreUnavailable(
            f"The audit of this {verb} could not be written, so its answer is withheld; a write may have been stored. "
            "Ask again when the store answers."
        ) from error


def _told(named: Sequence[str], written: Written) -> list[str]:
    """Return the namespaces that get a row: those with memories, and of the others a hundred, which stand for all.

    Where there are more, the whole store gets a row, too: nobody writes thousands of rows by naming namespaces.
    """
    others = sorted({_noted(name) for name in named}.difference(written.ids))
    more = [_WHOLE_STORE] if len(others) > _MOST_NAMESPACES else []
    return sorted({*written.ids, *others[:_MOST_NAMESPACES], *more}) or [_WHOLE_STORE]


def _noted(name: str) -> str:
    """Return a name as a store takes it, whatever a caller gave; that of a namespace which exists stays as it is."""
    return name.encode("utf-8", "replace").decode().replace("\x00", "?")[:LONGEST_NAME]


def _unwritten(result: Any, written: Written) -> Iterator[tuple[str, str]]:
    """Yield (namespace, id) of the memories in an answer, each once, without those that the call has written."""
    known = {namespace: set(ids) for namespace, ids in written.ids.items()}
    for namespace, id in dict.fromkeys(_returned(result)):
        if id not in known.get(namespace, ()):
            yield namespace, id


def _returned(result: Any) -> Iterator[tuple[str, str]]:
    """Yield (namespace, id) of the memories in an answer: one, its versions, links, hits, pinned ones, or a list.

    An explanation has the id and the namespace of its memory, too.
    """
    if isinstance(result, Memory | Hit) or (hasattr(result, "id") and hasattr(result, "namespace")):
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
