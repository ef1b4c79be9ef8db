"""The store itself: LangGraph's operations, batched and in order, over the verbs of one open Semmem."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from itertools import islice
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
)

from semmem.client.pages import every_memory
from semmem.interfaces.arguments import check_memory, check_namespace
from semmem.interfaces.langgraph.embedding import CallersEmbedder, check_index
from semmem.interfaces.langgraph.items import (
    RECORD,
    TEXT,
    check,
    check_expiry,
    check_ttl,
    expired,
    item_of,
    latest_first,
    memories_of,
    record_id,
    refreshed,
    searched_item,
    within,
)
from semmem.interfaces.langgraph.sweeper import Sweeper
from semmem.model.errors import Conflict, InvalidInput, LocalOnly, NotFound
from semmem.model.metadata_filters import contained, holds
from semmem.model.recipe import Recipe
from semmem.model.types import ListOrder, Memory

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from semmem.client.memory import Semmem

__all__ = ["SemmemStore"]

_MOST = 1000
"""The most hits of one recall."""
_PATIENCE_S, _PAUSE_S = 10.0, 0.02
"""For how long a put is tried again where others put the same key, and the longest pause before that."""
_OWNED = (within(RECORD), within(TEXT))


class SemmemStore(BaseStore):
    """LangGraph's long-term memory, kept by semmem: namespaces are paths inside one namespace of the store.

    ``index`` is its configuration of an index: ``fields`` (or ``text_fields``), the paths whose texts are searched, by
    default the whole value; ``embed`` with ``dims``, an embedder of yours, for ``from_conn_string`` alone: an open
    Semmem has its own.

    ``search`` with a query asks three legs by ``recipe``, and the score is the fused one. With the recipe ``dense`` it
    is the cosine, and where fewer than ``limit`` items have one, items of which nothing is searched (``index=False``)
    follow without a score, as in LangGraph's InMemoryStore. Without a query, ``search`` lists, the item that was put
    last first, as LangGraph's stores on databases do. ``ttl`` is LangGraph's configuration of expiry, in minutes.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Semmem,
        *,
        namespace: str = "langgraph",
        index: Mapping[str, Any] | None = None,
        recipe: str | Recipe | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        check_memory(memory)
        check_namespace(namespace)
        check_index(index)
        distance = (index or {}).get("distance_type", "cosine")
        if distance != "cosine":
            raise InvalidInput(f"distance_type must be 'cosine', the one distance of this store, not {distance!r}.")
        if (index or {}).get("embed") is not None:
            raise InvalidInput(
                "An open memory has an embedder already; leave embed out of index, or open the store with "
                "SemmemStore.from_conn_string(url, index=…)."
            )
        check_expiry(ttl)
        self.memory = memory
        self.namespace = namespace
        self.recipe = recipe
        self.ttl_config = ttl
        self.index_config = dict(index) if index is not None else None
        self.embeddings: Any = None
        fields = (index or {}).get("fields") or (index or {}).get("text_fields") or ["$"]
        self._sweeper = Sweeper(self.sweep_ttl)
        self._fields: tuple[str, ...] = (fields,) if isinstance(fields, str) else tuple(fields)

    @classmethod
    @contextmanager
    def from_conn_string(
        cls,
        conn_string: str | None = None,
        *,
        index: Mapping[str, Any] | None = None,
        recipe: str | Recipe | None = None,
        ttl: TTLConfig | None = None,
        namespace: str = "langgraph",
        **settings: Any,
    ) -> Iterator[SemmemStore]:
        """Open the store of a URL, as ``semmem.connect`` takes it, for a with statement."""
        import semmem

        check_index(index)
        callers = CallersEmbedder(index["embed"], index.get("dims")) if index and "embed" in index else None
        if callers is not None:
            settings["embedder"] = callers
        with semmem.connect(conn_string, **settings) as memory:
            mine = {name: value for name, value in index.items() if name != "embed"} if index is not None else None
            opened = cls(memory, namespace=namespace, index=mine, recipe=recipe, ttl=ttl)
            opened.index_config = None if index is None else dict(index)
            opened.embeddings = None if callers is None else callers.embeddings
            try:
                yield opened
            finally:
                opened.stop_ttl_sweeper()

    @classmethod
    @asynccontextmanager
    async def afrom_conn_string(cls, conn_string: str | None = None, **options: Any) -> AsyncIterator[SemmemStore]:
        """Open the store of a URL for an async with statement; see from_conn_string."""
        opened = cls.from_conn_string(conn_string, **options)
        store = await asyncio.to_thread(opened.__enter__)
        try:
            yield store
        finally:
            await asyncio.to_thread(opened.__exit__, None, None, None)

    def setup(self) -> None:
        """Do nothing: the store was made when it was opened. Here because LangGraph's other stores need the call."""

    async def asetup(self) -> None:
        """Do nothing; see setup."""

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Answer operations in their order. Reads see what was there before the writes of the batch; the last put of a
        key counts. All puts are one transaction, and the deletes follow it: where a put is refused, nothing is done."""
        results: list[Result] = []
        puts: dict[tuple[tuple[str, ...], str], PutOp] = {}
        ops = _several(ops)
        for op in ops:
            check(op)
        for op in ops:
            match op:
                case GetOp():
                    results.append(self._get(op))
                case SearchOp():
                    results.append(self._search(op))
                case ListNamespacesOp():
                    results.append(self._list(op))
                case PutOp():
                    puts[(tuple(op.namespace), op.key)] = op
                    results.append(None)
                case _:
                    raise InvalidInput(f"A batch is made of operations of LangGraph's store, not {type(op).__name__}.")
        self._put(list(puts.values()))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Answer operations in their order, in a thread; see batch."""
        return await asyncio.to_thread(self.batch, _several(ops))

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Sweep what has expired from time to time, in a thread: every 5 minutes, unless said here or in ``ttl``.

        Return a future that is done when the thread has ended; cancelled, it ends the thread. Without a configuration
        of expiry nothing is started. Raises InvalidInput.
        """
        config = self.ttl_config or {}
        minutes = sweep_interval_minutes or config.get("sweep_interval_minutes") or 5
        check_ttl("sweep_interval_minutes", minutes)
        if not config:
            idle: Future[None] = Future()
            idle.set_result(None)
            return idle
        return self._sweeper.start(minutes)

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """End the thread of start_ttl_sweeper; return whether it has ended within ``timeout`` seconds."""
        return self._sweeper.stop(timeout)

    def sweep_ttl(self) -> int:
        """Delete the items whose time is over and return how many."""
        now, count = datetime.now(UTC), 0
        for record in self._records(within(RECORD)):
            if expired(record, now):
                count += self._sweep(record)
        return count

    def _sweep(self, record: Memory) -> int:
        """Delete an item whose time is over, unless it was put anew meanwhile; return how many."""
        still = {"metadata": {"expires": record.metadata["expires"]}}
        try:
            self.memory.forget(record.id, namespace=self.namespace, filters=still)
        except NotFound:
            return 0
        self._delete(record.id)
        return 1

    def _get(self, op: GetOp) -> Item | None:
        try:
            record = self._whole(record_id(tuple(op.namespace), op.key))
        except NotFound:
            return None
        if self._omitted(record):
            return None
        if op.refresh_ttl:
            self._refresh([record])
        return item_of(record)

    def _search(self, op: SearchOp) -> list[SearchItem]:
        end = op.offset + op.limit
        results = self._recalled(op, end) if op.query else self._listed(op, end)
        page = results[op.offset : end]
        if op.refresh_ttl:
            self._refresh([record for record, _ in page])
        return [searched_item(record, score) for record, score in page]

    def _listed(self, op: SearchOp, most: int, **more: Any) -> list[tuple[Memory, float | None]]:
        """Return records that an operation asks for, what was put last first, without a score."""
        records = self._records(self._filters(op, RECORD, **more), sort_by="updated")
        matches = (record for record in latest_first(records) if self._meets(record, op))
        return [(record, None) for record in islice(matches, most)]

    def _filters(self, op: SearchOp, kind: str, **more: Any) -> dict[str, Any]:
        return within(kind, tuple(op.namespace_prefix), contained(op.filter or {}, sign="$"), **more)

    def _meets(self, record: Memory, op: SearchOp) -> bool:
        return not self._omitted(record) and holds(op.filter or {}, record.metadata["value"], sign="$")

    def _recalled(self, op: SearchOp, most: int) -> list[tuple[Memory, float | None]]:
        """Return the records that the texts found by a query belong to, each once, by its best text."""
        limit = min(_MOST, max(2 * most, 20))
        while True:
            hits = self.memory.recall(
                op.query or "",
                namespace=self.namespace,
                limit=limit,
                recipe=self.recipe,
                filters=self._filters(op, TEXT),
            )
            best: dict[str, float] = {}
            for hit in hits:
                dense = hit.legs.get("dense")
                raw = dense.score if hits.recipe.name == "dense" and dense is not None else hit.score
                for id in (hit.memory.id, *hit.duplicates):  # texts that are equal are folded into one hit
                    best.setdefault(id.rpartition("/")[0], raw)
            records = self._by_id(list(best))
            results: list[tuple[Memory, float | None]] = [
                (records[id], score) for id, score in best.items() if id in records and self._meets(records[id], op)
            ]
            if len(results) >= most or len(hits) < limit or limit == _MOST:
                if hits.recipe.name == "dense" and len(results) < most:  # which ranks every text
                    results += self._listed(op, most - len(results), texts=0)
                return results
            limit = min(_MOST, 2 * limit)

    def _by_id(self, ids: Sequence[str]) -> dict[str, Memory]:
        """Return the memories of ``ids`` that exist: by one question to a store, one by one from a server."""
        if not ids:
            return {}
        with suppress(LocalOnly):
            return {memory.id: memory for memory in self.memory.store.get(self.namespace, ids)}
        memories: dict[str, Memory] = {}
        for id in ids:
            with suppress(NotFound):
                memories[id] = self._whole(id)
        return memories

    def _whole(self, id: str) -> Memory:
        """Return a memory as it is stored, also a sensitive one, whose value a reader does not see. Raises NotFound."""
        memory = self.memory.get(id, namespace=self.namespace)
        return self.memory.get(id, namespace=self.namespace, reveal=True) if memory.sensitive else memory

    def _records(self, filters: Mapping[str, Any], sort_by: ListOrder = "created") -> Iterator[Memory]:
        return every_memory(self.memory, namespace=self.namespace, filters=filters, sort_by=sort_by)

    def _put(self, ops: Sequence[PutOp]) -> None:
        end = monotonic() + _PATIENCE_S
        while True:
            try:
                ids = self._stored(ops)
                break
            except Conflict:  # another put of one of the keys came between, and is replaced: the last put counts
                if monotonic() > end:
                    raise
                sleep(random.uniform(0, _PAUSE_S))
        for id in ids:
            self._delete(id)

    def _stored(self, ops: Sequence[PutOp]) -> list[str]:
        """Store what is put, in one transaction, and return the ids of what is to be deleted after it."""
        now = datetime.now(UTC)
        items: list[dict[str, Any]] = []
        fewer: list[str] = []
        deleted_ids: list[str] = []
        earlier = self._by_id([record_id(tuple(op.namespace), op.key) for op in ops])
        for op in ops:
            id = record_id(tuple(op.namespace), op.key)
            if op.value is None:
                deleted_ids.append(id)
                continue
            memories = memories_of(op, self._fields, now)
            items += memories
            if id in earlier and earlier[id].metadata["texts"] > len(memories) - 1:
                fewer += [f"{id}/{number}" for number in range(len(memories) - 1, earlier[id].metadata["texts"])]
        if items:
            report = self.memory.import_items(
                items,
                namespace=self.namespace,
                batch_size=len(items),
                on_error="abort",
                owned=_OWNED,
                replace=True,
                overwrite=True,
            )
            if report.rejected:
                raise InvalidInput(f"{report.rejected[0].reason}")
        return [*deleted_ids, *fewer]

    def _delete(self, id: str) -> None:
        """Delete a record with its texts, or one text."""
        for one in [id, *(memory.id for memory in self._texts(id))]:
            try:
                self.memory.forget(one, namespace=self.namespace)
            except NotFound:
                continue

    def _texts(self, id: str) -> Iterator[Memory]:
        if "/" not in id:
            yield from self._records(within(TEXT, record=id))

    def _omitted(self, record: Memory) -> bool:
        return bool((self.ttl_config or {}).get("omit_expired")) and expired(record, datetime.now(UTC))

    def _refresh(self, records: Sequence[Memory]) -> None:
        now = datetime.now(UTC)
        for record in records:
            if (metadata := refreshed(record, now)) is not None:
                try:
                    self.memory.update(
                        record.id, namespace=self.namespace, metadata=metadata, expected_version=record.tag
                    )
                except (NotFound, Conflict):  # deleted since it was read, or put anew, with a time of its own
                    continue

    def _list(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        prefix = next((list(one.path) for one in op.match_conditions or () if one.match_type == "prefix"), [])
        whole = prefix[: prefix.index("*")] if "*" in prefix else prefix
        records = (one for one in self._records(within(RECORD, tuple(whole))) if not self._omitted(one))
        paths = {tuple(record.metadata["path"]) for record in records}
        matches = (path for path in paths if all(_matches(one, path) for one in op.match_conditions or ()))
        cut = {path[: op.max_depth] if op.max_depth is not None else path for path in matches}
        return sorted(cut)[op.offset : op.offset + op.limit]


def _several(ops: Any) -> list[Any]:
    if not isinstance(ops, Iterable):
        raise InvalidInput(f"A batch is a list of operations of LangGraph's store, not {type(ops).__name__}.")
    return list(ops)


def _matches(condition: MatchCondition, path: tuple[str, ...]) -> bool:
    """Return whether ``path`` begins, or ends, as the condition says; "*" stands for any one label."""
    labels = tuple(condition.path)
    if len(labels) > len(path):
        return False
    part = path[: len(labels)] if condition.match_type == "prefix" else path[len(path) - len(labels) :]
    return all(label in (one, "*") for one, label in zip(part, labels, strict=True))
