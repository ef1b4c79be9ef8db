"""Namespaces: the verbs about namespaces, their counts and changes. It wires the parts and holds no logic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from reprlib import repr as shown
from typing import Any

from semmem.client.connection import Connection
from semmem.model.errors import InvalidInput
from semmem.model.filters import string, strings, whole
from semmem.model.life import Changes
from semmem.model.reports import Limits, Namespace, Stats
from semmem.model.store import life_of
from semmem.read.tracing import observed
from semmem.write.items import check_namespace

__all__ = ["Namespaces"]

_LEAST_DAYS, _MOST_DAYS = 1 / 24, 36_500.0


class Namespaces(Connection):
    """What a store and its namespaces hold, what changes in them, and what they keep and may hold."""

    @observed
    def stats(self, *, namespace: str | None = None) -> Stats:
        """Return counts of the store, or of one namespace."""
        from semmem.write.makers import count_stale

        where = None if namespace is None else string("namespace", namespace)
        return replace(self.store.stats(where), stale=count_stale(self.store, self._extractor, where))

    @observed
    def namespaces(self) -> Sequence[Namespace]:
        """Return the namespaces that hold memories, by name, with counts and the time of the last change."""
        return self.store.overview()

    @observed
    def changes(
        self, since: str | None = None, *, namespace: str | Sequence[str] = "default", limit: int = 1000
    ) -> Changes:
        """Return what was written, updated, forgotten and linked since a cursor, in order, and the next cursor.

        For programs that keep a copy. ``since`` is the ``cursor`` of the previous call; None starts at the beginning;
        "now" returns no changes, only the cursor to take before a first full export. The changes of several namespaces
        follow one another. A change names the id; ``get`` returns the memory as it is now. No change is missed: if
        changes after the cursor are no longer kept (the setting ``keep_changes_days``), InvalidInput is raised, and you
        need a full export.
        """
        from semmem.read.changes import changes

        whole("limit", limit, 1, 10_000, example=100)
        names = strings("namespace", namespace)
        if not names or not all(names):
            raise InvalidInput("namespace must be a name, or a list of at least one.")
        cursor = None if since is None else string("since", since)
        return changes(life_of(self.store), cursor, tuple(dict.fromkeys(names)), limit)

    @observed
    def rename_namespace(self, old: str, new: str) -> int:
        """Give a namespace another name, with all that is in it; return how many memories it has.

        Readers see all memories under the old name, or all under the new one. Writers wait up to ten seconds, then get
        StoreUnavailable. After an interruption the same call or ``maintain`` finishes the rename. If ``new`` already
        has limits, they apply. Raises NotFound if ``old`` holds no memories, Conflict if ``new`` holds any or another
        process moves one of the two, NamespaceFull if the limits of ``new`` do not allow so many.
        """
        source, target = _two(old, new)
        self._accesses.settle(source)
        return life_of(self.store).move_namespace(source, target, stay=False)

    @observed
    def copy_namespace(self, old: str, new: str) -> int:
        """Copy a namespace, with all that is in it, to another name; return how many memories it has.

        The copy shows one moment, and writers need not wait. After an interruption the same call starts again, and
        ``maintain`` removes the unfinished copy. If ``new`` already has limits, they apply. Raises NotFound if ``old``
        holds no memories, Conflict if ``new`` holds any or another process moves one of the two, NamespaceFull if the
        limits of ``new`` do not allow so many.
        """
        source, target = _two(old, new)
        self._accesses.settle(source)
        return life_of(self.store).move_namespace(source, target, stay=True)

    @observed
    def drop_namespace(self, name: str, *, dry_run: bool = False) -> int:
        """Forget a namespace whole and for good, in steps of bounded size; return how many memories it has.

        After an interruption ``maintain`` finishes the drop. ``dry_run`` only counts. The limits of the namespace stay.
        """
        check_namespace(name)
        if not isinstance(dry_run, bool):
            raise InvalidInput(f"dry_run must be True or False, not {shown(dry_run)}; nothing was dropped.")
        if not dry_run:
            self._accesses.settle(name)
        return self.store.forget_namespace(name, dry_run=dry_run)

    @observed
    def namespace_limits(
        self,
        name: str,
        *,
        keep_days: float | None = None,
        most_memories: int | None = None,
        most_bytes: int | None = None,
    ) -> Limits:
        """Change the given limits of a namespace, and return all of them; 0 removes a limit.

        ``maintain`` forgets a memory for good ``keep_days`` after its last change (an hour at least), unless it is
        pinned. A write that would exceed ``most_memories``, or ``most_bytes`` of texts and titles, raises
        NamespaceFull, and nothing of its batch is stored. Memories beyond a new limit stay. Raises InvalidInput.
        """
        life = life_of(self.store)
        check_namespace(name)
        limits = {"keep_days": keep_days, "most_memories": most_memories, "most_bytes": most_bytes}
        changes = {key: _checked(key, value) for key, value in limits.items() if value is not None}
        if not changes:
            return life.limits(name)
        return life.set_limits(name, {key: value or None for key, value in changes.items()})


def _two(old: str, new: str) -> tuple[str, str]:
    """Return two names of namespaces. Raises InvalidInput unless they are two."""
    check_namespace(old)
    check_namespace(new)
    if old == new:
        raise InvalidInput(f"{old!r} has that name already; give another one.")
    return old, new


def _checked(name: str, value: Any) -> Any:
    """Return a limit. Raises InvalidInput for what is none."""
    days = name == "keep_days"
    kind: Any = int | float if days else int
    least, most = (_LEAST_DAYS, _MOST_DAYS) if days else (0, 2**62)
    if isinstance(value, bool) or not isinstance(value, kind) or not (value == 0 or least <= value <= most):
        what = f"a number of days from 1/24 (an hour) to {_MOST_DAYS:,.0f}" if days else "a whole number"
        raise InvalidInput(f"{name} must be {what}, or 0 for no limit, not {shown(value)}.")
    return float(value) if days else value
