"""Links between memories in SQLite; ``link`` takes a connection that holds the write lock."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from semmem.model.exchange import CandidateMetadata, RowIds, placed
from semmem.model.history import DEEPEST, MOST_LINKS, Comparison, Link, Newer, PendingComparison, Similar
from semmem.model.types import LinkType, Undecided
from semmem.stores.link_rules import fates_of, left_alone, linking
from semmem.stores.sql_files import statements
from semmem.stores.sqlite import likeness
from semmem.stores.sqlite.write import at_microsecond, count_change, memory_of, microsecond

if TYPE_CHECKING:
    from semmem.stores.sqlite.connection import Filed

__all__ = ["SqliteLinks", "link"]

_SQL = statements("sqlite")


def link(
    connection: sqlite3.Connection,
    namespace: str,
    rows: Sequence[Link],
    stored_ids: Collection[str],
    *,
    skip: bool,
) -> Sequence[Link]:
    """Link memories of one namespace, of which ``_there`` returned ``stored_ids``; return the stored links.

    All of ``rows`` are linked or none; with ``skip``, forbidden links are left out. Raises NotFound and InvalidInput as
    ``link_rules.linking`` does.
    """
    over = [row for row in rows if row.type == "supersedes"]
    ends = {"from_ids": _json({row.from_id for row in over}), "to_ids": _json({row.to_id for row in over})}
    order = connection.execute(_SQL["link_order"], {"namespace": namespace, **ends}).fetchall() if over else ()
    links, lifted = linking(namespace, rows, stored_ids, order, skip=skip)
    for from_id, to_id in lifted:
        which = {"namespace": namespace, "from_id": from_id, "type": "supersedes", "to_id": to_id}
        connection.execute(_SQL["link_remove"], which)
    now = _now()
    new: list[tuple[str, str, str]] = []
    for row in links:
        since = now if row.since is None else microsecond(row.since)
        values: dict[str, Any] = {"namespace": namespace, "from_id": row.from_id, "type": row.type, "to_id": row.to_id}
        values |= {"since": since, "made_by": row.made_by}
        if connection.execute(_SQL["link_add"], values).rowcount == 1:
            new.append(row.key)
    if new or lifted:
        fates = fates_of(new, [(one, "supersedes", other) for one, other in lifted])
        count_change(connection, namespace, 0, 0, fates)
    if skip:
        return links
    parameters = {"namespace": namespace, "ids": _json({row.from_id for row in rows}), "now": _now()}
    stored = {
        one.key: one for one in (_link(namespace, row) for row in connection.execute(_SQL["link_list"], parameters))
    }
    return [stored[row.key] for row in rows if row.key in stored]


def _there(
    connection: sqlite3.Connection,
    namespace: str,
    rows: Sequence[Link],
    began: Mapping[str, float] = MappingProxyType({}),
) -> set[str]:
    """Return which of the memories to link exist.

    One whose text did not begin when ``began`` says, by id, counts as one that does not.
    """
    ids = _json({row.from_id for row in rows} | {row.to_id for row in rows})
    there = connection.execute(_SQL["link_there"], {"namespace": namespace, "ids": ids})
    return {id for id, at in there if began.get(id, at / 1e6) == at / 1e6}


def _now() -> int:
    return microsecond(datetime.now(UTC))


class SqliteLinks:
    """The links of the memories of one file."""

    def __init__(self, file: Filed) -> None:
        self._file = file

    def link(self, namespace: str, rows: Sequence[Link], *, skip: bool = False) -> Sequence[Link]:
        """Link memories of one namespace in one transaction; see the function ``link``."""
        if not rows:
            return ()
        return self._file._writing(lambda c: link(c, namespace, rows, _there(c, namespace, rows), skip=skip))

    def unlink(self, namespace: str, from_id: str, type: str, to_id: str) -> bool:
        """Remove one link; return whether it existed."""

        def work(connection: sqlite3.Connection) -> bool:
            which = {"namespace": namespace, "from_id": from_id, "type": type, "to_id": to_id}
            was_linked = connection.execute(_SQL["link_remove"], which).rowcount == 1
            if was_linked:
                count_change(connection, namespace, 0, 0, fates_of((), [(from_id, type, to_id)]))
            return was_linked

        return self._file._writing(work)

    def links(self, namespace: str, ids: Collection[str]) -> Sequence[Link]:
        """Return the links from and to some memories, in order; links to a missing memory are left out."""
        which = {"namespace": namespace, "ids": sorted(ids), "now": _now()}
        return [_link(namespace, row) for row in self._file._rows("link_list", which)]

    def undecided(self, namespace: str, type: Undecided, limit: int) -> Sequence[Link]:
        """Return up to ``limit`` links that wait for a decision, newest first; see LifeStore."""
        which = {"namespace": namespace, "type": type, "limit": limit, "now": _now()}
        return [_link(namespace, row) for row in self._file._rows("link_undecided", which)]

    def linked(self, namespace: str, row_ids: RowIds) -> Sequence[tuple[int, int, LinkType]]:
        """Return (row id, linked row id, type of link) in both directions; a bounded number for each memory."""
        which = {
            "namespace": namespace,
            "ords": [int(row_id) for row_id in row_ids],
            "limit": MOST_LINKS,
            "now": _now(),
        }
        return [(row_id, other, type) for row_id, other, type in self._file._rows("link_neighbours", which)]

    def corroborate(
        self,
        namespace: str,
        times: Mapping[str, int],
        besides: Collection[str] | None = None,
        contents: Mapping[str, bytes] = MappingProxyType({}),
    ) -> frozenset[str]:
        """Add, for each id, how often it was remembered again just now; return the ids that were; see LifeStore."""
        return self._file._writing(lambda c: likeness.corroborate(c, namespace, times, besides, contents))

    def unsettled(self, namespace: str, ids: Collection[str]) -> Sequence[PendingComparison]:
        """Return the memories whose links nobody has made yet and that share keys with some."""
        rows = self._file._rows("comparison_like", {"namespace": namespace, "ids": sorted(ids)})
        return [_pending_comparison(row) for row in rows]

    def uncompared_namespaces(self) -> Sequence[str]:
        """Return the namespaces with memories that have no keys, or no links yet."""
        now = {"now": _now()}
        return sorted(namespace for (namespace,) in self._file._rows("likeness_missing_somewhere", now))

    def pending_comparisons(self, namespace: str, after: int, limit: int) -> Sequence[PendingComparison]:
        """Return memories that have no keys, or no links yet, ascending; see LifeStore."""
        parameters = {"namespace": namespace, "after": after, "limit": limit, "now": _now()}
        return [_pending_comparison(row) for row in self._file._rows("likeness_missing", parameters)]

    def waiting(self, namespace: str, limit: int) -> Sequence[PendingComparison]:
        """Return some memories whose links nobody has made for long, or that are to be compared again."""
        parameters = {"namespace": namespace, "limit": limit, "before": likeness.long_ago()}
        return [_pending_comparison(row) for row in self._file._rows("comparison_waiting", parameters)]

    def compared(self, each: Mapping[str, Comparison]) -> Collection[str]:
        """Store the links of memories, and that they were compared; return the namespaces where others wait."""

        def work(connection: sqlite3.Connection) -> Collection[str]:
            waiting = []
            for namespace, one in each.items():
                alone: set[str] = set()
                if one.links:
                    stored_ids = _there(connection, namespace, one.links, one.began)
                    link(connection, namespace, one.links, stored_ids, skip=True)
                    alone = left_alone(one.links, stored_ids)
                is_waited = likeness.mark_compared(connection, namespace, one.row_ids)
                if alone:
                    likeness.note_again(connection, namespace, alone)
                if alone or is_waited:
                    waiting.append(namespace)
            return waiting

        return self._file._writing(work)

    def similar(self, namespace: str, keys: Mapping[int, Sequence[int]]) -> Mapping[int, Sequence[Similar]]:
        """Store missing keys of memories, by row id; return the memories that share keys with each."""
        return self._file._writing(lambda c: likeness.similar_around(c, namespace, keys))

    def newer(
        self, namespaces: Sequence[str], names: Mapping[str, Collection[str]], at: datetime | None = None
    ) -> Sequence[Newer]:
        """Return the memories that supersede others, along each chain to its end; see ``LifeStore.newer``."""
        then = None if at is None else microsecond(at)
        now = _now()
        successors = []
        for place, name in enumerate(namespaces):
            if not names.get(name):
                continue
            parameters = {"namespace": name, "ids": sorted(names[name]), "deepest": DEEPEST, "at": then, "now": now}
            for old, hidden, row_id, *rest in self._file._rows("link_newer", parameters):
                candidate = CandidateMetadata(placed(row_id, place), *rest[:-2], *(time / 1e6 for time in rest[-2:]))
                successors.append(Newer(old, candidate, bool(hidden)))
        return successors


def _pending_comparison(row: Sequence[Any]) -> PendingComparison:
    memory = memory_of(row[:-1])
    at = memory.created_at if row[-1] is None else at_microsecond(row[-1])
    assert at is not None
    return PendingComparison(row[-2], at, memory)


def _json(ids: Collection[str]) -> str:
    return json.dumps(sorted(ids))


def _link(namespace: str, row: Sequence[Any]) -> Link:
    from_id, type, to_id, since, made_by = row
    return Link(namespace, from_id, type, to_id, at_microsecond(since), made_by)
