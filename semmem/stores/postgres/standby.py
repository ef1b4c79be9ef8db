"""Snapshots from a standby of the database server, which never lack a memory that this process has written.

Before a recall, the standby has to have replayed the log of the primary up to the last use that this process made of
the primary, and up to an end of that log which is no older than some seconds. It is waited for; where it takes too
long, or fails, the primary answers.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import NamedTuple, TypeVar

import psycopg

from semmem.model.errors import InvalidInput, StoreUnavailable
from semmem.model.store import Moved, Snapshot, SnapshotSource, Store
from semmem.model.types import Filters
from semmem.stores.postgres.connection import LogEnd, bounded
from semmem.stores.postgres.errors import error_at_connect, without
from semmem.stores.postgres.store import PostgresStore
from semmem.stores.postgres.typed import Connection, only
from semmem.stores.snapshot import Overlay, StoredSnapshot
from semmem.stores.sql_files import statements

__all__ = ["FromStandby", "Standby", "open_standby"]

T = TypeVar("T")

_SQL = statements("postgres")

_PATIENCE_S = 2.0
"""Seconds in which the standby has to give a connection; the primary is there too."""

_REST_S = 10.0
"""Seconds for which a standby is not asked after it failed, or was waited for in vain."""

_TRUST_S = 5.0
"""Seconds after which a process that only recalls asks the primary again where its log ends: it leaves a standby that
replays nothing, or was promoted."""

_PAUSE_S, _LONGEST_PAUSE_S = 0.001, 0.02


class Standby(PostgresStore):
    """The store as a standby has it. ``failures`` counts the reads that it did not answer: these raise Moved."""

    def __init__(self, url: str, *, pool_size: int) -> None:
        self.failures = 0
        self._rested_at: float | None = None
        super().__init__(url, url, pool_size=pool_size, start_timeout_s=0, migrates=None, patience_s=_PATIENCE_S)

    def run(
        self, work: Callable[[Connection], T], on_loss: Callable[[], object] = lambda: None, *, patient: bool = True
    ) -> T:
        """Run ``work`` on a connection. Raises Moved where the standby fails, so that the recall begins again."""
        try:
            return super().run(work, on_loss, patient=patient)
        except StoreUnavailable as error:
            self.failures += 1
            self.rest()
            raise Moved from error

    def rest(self) -> None:
        """Ask it nothing for a while."""
        self._rested_at = time.monotonic()

    @property
    def rests(self) -> bool:
        """Whether it has failed, or lagged too much, just now."""
        return self._rested_at is not None and time.monotonic() - self._rested_at < _REST_S

    def has(self, end: LogEnd) -> bool:
        """Return whether this is a standby of that primary, and has replayed its log up to ``end``."""
        return bool(self.row("standby_has", end._asdict())[0])


class _StandbySnapshot(Overlay):
    """A snapshot from a standby. It is outdated where the standby failed meanwhile, also in a leg, which says nothing.

    ``stored`` is that of the primary, because explanations may be asked for long afterwards.
    """

    def __init__(self, behind: Snapshot, primary: Store, standby: Standby, failures: int) -> None:
        super().__init__(behind)
        self._primary = primary
        self._standby = standby
        self._failures = failures

    @property
    def stored(self) -> Snapshot:
        """The same scope, as the primary has it."""
        return StoredSnapshot(self._primary, self.scope)

    def confirm(self) -> None:
        """Raise Moved where the standby did not answer all that was asked."""
        if self._standby.failures != self._failures:
            raise Moved
        super().confirm()


class _Known(NamedTuple):
    """The last use of the primary, the end of its log after it and when it was asked, and whether it is replayed.

    A standby that has failed since may be another one now.
    """

    use: object
    failures: int
    end: LogEnd
    asked_at: float
    replayed: bool = False


class FromStandby:
    """Makes the snapshots of ``standby`` by ``source`` where it is far enough, and else those of ``primary``.

    ``wait_s`` bounds the wait of a recall. ``counts`` are the snapshots that each of the two has made.
    """

    def __init__(self, primary: PostgresStore, standby: Standby, source: SnapshotSource, wait_s: float) -> None:
        self._primary = primary
        self._standby = standby
        self._source = source
        self._wait_s = wait_s
        self._known: _Known | None = None
        self.counts = {"standby": 0, "primary": 0}

    @property
    def models(self) -> object:
        """The namespaces in memory, which are those of the standby."""
        return getattr(self._source, "models", None)

    @contextmanager
    def session(self) -> Iterator[Callable[[], None]]:
        """Reserve connections for this thread, each when it is first needed; yield what cancels a statement."""
        with self._primary.session() as one, self._standby.session() as other:

            def cancel() -> None:
                one()
                other()

            yield cancel

    def close(self) -> None:
        """Close the connections to the standby, and drop what is in memory."""
        if self._source is not self._standby:
            self._source.close()
        self._standby.close()

    def snapshot(
        self,
        namespaces: tuple[str, ...],
        filters: Filters,
        exclude: Sequence[str],
        names: Collection[str],
        at: datetime | None = None,
        *,
        checked: bool = False,
    ) -> Snapshot:
        """Return what one recall reads; see SnapshotSource.

        A checked snapshot and one of an earlier time are those of the primary.
        """
        if not checked and at is None:
            failures = self._standby.failures
            try:
                if self._is_far_enough():
                    behind = self._source.snapshot(namespaces, filters, exclude, names)
                    self.counts["standby"] += 1
                    return _StandbySnapshot(behind, self._primary, self._standby, failures)
            except (Moved, StoreUnavailable):  # the primary says what is wrong, if anything is
                pass
        self.counts["primary"] += 1
        return self._primary.snapshot(namespaces, filters, exclude, names, at, checked=checked)

    def _is_far_enough(self) -> bool:
        """Return whether the standby has all that this process has written or seen. Raises Moved, StoreUnavailable."""
        if self._standby.rests:
            return False
        use, failures, known = self._primary.use, self._standby.failures, self._known
        now = time.monotonic()
        if known is None or known.use is not use or known.failures != failures:
            known = _Known(use, failures, self._primary.log_end(), now)
        elif now - known.asked_at > _TRUST_S:
            known = self._asked_again(known, now)
        if not known.replayed:
            known = known._replace(replayed=self._awaited(known.end))
        self._known = known
        return known.replayed

    def _asked_again(self, known: _Known, now: float) -> _Known:
        """Return where the log ends now; what was known where the primary does not say it, as while it is down."""
        try:
            return _Known(known.use, known.failures, self._primary.log_end(patient=False), now)
        except StoreUnavailable:
            return known._replace(asked_at=now)

    def _awaited(self, end: LogEnd) -> bool:
        """Wait until the standby has replayed the log up to ``end``; return whether it has."""
        until = time.monotonic() + self._wait_s
        pause = _PAUSE_S
        while not (has := self._standby.has(end)) and time.monotonic() < until:
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        if not has:
            self._standby.rest()
        return has


def open_standby(primary: PostgresStore, url: str, *, pool_size: int) -> Standby:
    """Return the standby of ``primary`` at ``url``; one that cannot be reached yet is warned of.

    Raises InvalidInput for a server that is no standby, or that of another store, and for a user who may not read.
    """
    url = bounded(url)
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            recovers, *standby_of = only(connection.execute(_SQL["standby_of"]))
            reads, user = only(connection.execute(_SQL["standby_reads"]))
    except psycopg.OperationalError as error:
        reason = error_at_connect(error, url).message
        warnings.warn(f"The standby does not answer, so recalls ask the primary until it does: {reason}", stacklevel=2)
        return Standby(url, pool_size=pool_size)
    except psycopg.ProgrammingError as error:
        raise InvalidInput(without(f"The read_url cannot be used: {' '.join(str(error).split())}.", url)) from None
    if not recovers:
        raise InvalidInput(
            "The read_url names a server that is no standby, which could lack what this process writes; name a standby "
            "of the store's server, or leave it out."
        )
    if standby_of != list(primary.row("standby_of", {})[1:]):
        raise InvalidInput(
            "The read_url names a standby of another server, or another database, than the url; name this database on "
            "a standby of its own server."
        )
    if not reads:
        raise InvalidInput(
            f"The user {user} of the read_url may not read semmem's tables; let their owner grant it USAGE on the "
            "schema semmem and SELECT on its tables."
        )
    return Standby(url, pool_size=pool_size)
