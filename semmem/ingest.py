"""The write pipeline: check, split, extract, embed, store. Streams in bounded memory, one transaction a batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from reprlib import repr as shown
from typing import Any, Literal

from semmem.drafts import Draft, check_namespace, drafted
from semmem.embedders import identity
from semmem.errors import BadItem, Conflict, EmbedderMismatch, EmbedderReplaced, InvalidInput
from semmem.protocols import Embedder, Extractor, Row, Store, Written
from semmem.reembedding import embed_texts
from semmem.searched import embedded_text, encoded_text, other_names
from semmem.text import content_key, split
from semmem.types import IngestReport, Memory, Rejected
from semmem.upkeep import Knowledge, Upkeep

__all__ = ["MAX_CHARS", "Ingest", "batches"]

MAX_CHARS = 1_400
"""A longer text is split; each part is remembered by itself and found as its parent."""
_MOST_BATCH_CHARS = 20_000_000
"""A batch of long texts ends before its number of items is reached."""
OnError = Literal["abort", "skip"]


class Ingest:
    """Wires a store, an extractor and an embedder (a function that finds it when first needed, or returns a reason)."""

    def __init__(
        self,
        store: Store,
        extractor: Extractor,
        embedder: Callable[[], Embedder | str],
        renewed: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store = store
        self._upkeep = Upkeep(store, extractor)
        self._embedder = embedder
        self._renewed = renewed

    def with_embedder(self, embedder: Callable[[], Embedder | str]) -> Ingest:
        """Return the same pipeline with another way to find the embedder."""
        other = copy(self)
        other._embedder = embedder
        return other

    def remember(self, item: Mapping[str, Any]) -> Memory:
        """Store one item and return the memory, or the one already stored under the same id with the same content."""
        draft = drafted(0, item, "default")
        self._check_vector(draft, None)
        if self._unchanged([draft]) and (stored := self._store.get(draft.memory.namespace, [draft.memory.id])):
            return stored[0]
        rows, knowledge, _, written = self._written([draft], "abort")
        self._upkeep.written(rows, written, knowledge)
        stored = self._store.get(draft.memory.namespace, [draft.memory.id])
        return stored[0] if stored else draft.memory

    def remember_many(
        self,
        items: Iterable[Mapping[str, Any]],
        *,
        namespace: str,
        batch_size: int,
        on_error: OnError,
        progress: Callable[[IngestReport], None] | None,
    ) -> IngestReport:
        """Store a stream of items, one transaction a batch; ``progress`` is called after each with what is stored."""
        if on_error not in ("abort", "skip"):
            raise InvalidInput(f'on_error must be "abort" or "skip", not {on_error!r}.')
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or not 1 <= batch_size <= 100_000:
            raise InvalidInput(f"batch_size must be a whole number from 1 to 100000, not {shown(batch_size)}.")
        check_namespace(namespace)
        if isinstance(items, Mapping | str | bytes) or not isinstance(items, Iterable):
            raise InvalidInput(f"remember_many takes a list or a stream of items, not one {type(items).__name__}.")
        started = time.monotonic()
        report = IngestReport()
        for batch in batches(enumerate(items), batch_size):
            done = self._batch(batch, namespace, on_error)
            report = IngestReport(
                report.remembered + done.remembered,
                report.unchanged + done.unchanged,
                report.rejected + done.rejected,
                time.monotonic() - started,
                {**report.degraded, **done.degraded},
            )
            if progress is not None:
                progress(report)
        return replace(report, seconds=time.monotonic() - started)

    def _batch(self, batch: Sequence[tuple[int, Any]], namespace: str, on_error: OnError) -> IngestReport:
        drafts: dict[tuple[str, str], Draft] = {}
        rejected: list[Rejected] = []
        recorded: Mapping[str, Any] | None = None
        repeats: dict[tuple[str, str], list[int]] = {}

        def refuse(at: int, id: str | None, reason: str) -> None:
            if on_error == "abort":
                raise BadItem(f"Item {at}{f' (id {id!r})' if id else ''}: {reason}", position=at, id=id)
            rejected.append(Rejected(at, id, reason))

        for at, item in batch:
            try:
                draft = drafted(at, item, namespace)
                recorded = self._check_vector(draft, recorded)
            except (InvalidInput, EmbedderMismatch) as error:
                refuse(at, _id_of(item), error.message)
                continue
            name = (draft.memory.namespace, draft.memory.id)
            earlier = drafts.setdefault(name, draft)
            if earlier is not draft:
                if earlier.payload == draft.payload:
                    repeats.setdefault(name, []).append(at)
                else:
                    refuse(at, draft.memory.id, _conflict(draft, f"item {earlier.at} of the same batch"))
        there = self._unchanged(drafts.values())
        try:
            fresh = [draft for name, draft in drafts.items() if name not in there]
            rows, knowledge, degraded, written = self._written(fresh, on_error)
        except Conflict as error:
            first = min((drafts[n] for n in error.names), key=lambda d: d.at, default=None)
            if first is None:
                raise
            raise Conflict(f"Item {first.at}: {_conflict(first, 'the store')}", names=error.names) from error
        self._upkeep.written(rows, written, knowledge)
        for name in written.conflicts:
            for at in (drafts[name].at, *repeats.pop(name, ())):
                refuse(at, name[1], _conflict(drafts[name], "the store"))
        rejected.sort(key=lambda r: r.position)
        unchanged = len(there) + len(written.unchanged) + sum(map(len, repeats.values()))
        return IngestReport(len(written.new), unchanged, tuple(rejected), degraded=degraded)

    def _unchanged(self, drafts: Iterable[Draft]) -> set[tuple[str, str]]:
        """Return which of ``drafts`` are stored just so: there is no need to read and embed them again."""
        given = {(draft.memory.namespace, draft.memory.id): draft.payload for draft in drafts if draft.named}
        stored = self._store.payloads(given) if given else {}
        return {name for name, payload in stored.items() if payload == given[name]}

    def _check_vector(self, draft: Draft, recorded: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Refuse a given vector in a store that an embedder fills, or of another length; return who fills the store.

        ``recorded`` is what an earlier item of the batch has found out, so that a batch asks the store once.
        """
        if draft.vector is None:
            return recorded
        offered = _giver(draft.vector)
        recorded = recorded or self._store.claim_embedder(offered)
        if recorded["name"] != offered["name"]:
            raise EmbedderMismatch(
                f"This store was filled by {recorded['name']} ({recorded['dimensions']} dimensions) and this vector is "
                f"{offered['name']}; give no vector, use another store, or run `semmem rebuild --embedder NAME`."
            )
        return recorded

    def _written(
        self, drafts: Sequence[Draft], on_conflict: str
    ) -> tuple[list[Row], Knowledge, dict[str, str], Written]:
        """Store what ``_rows`` makes of ``drafts``: again, if a rebuild of this very Semmem came in between."""
        rows, knowledge, degraded = self._rows(drafts)
        try:
            written = self._store.write(rows, on_conflict=on_conflict)
        except EmbedderReplaced:
            if not self._renewed():
                raise
            rows, knowledge, degraded = self._rows(drafts)
            written = self._store.write(rows, on_conflict=on_conflict)
        return rows, knowledge, degraded, written

    def _rows(self, drafts: Sequence[Draft]) -> tuple[list[Row], Knowledge, dict[str, str]]:
        """Split, extract and embed; return the rows, what they were read with, and why vectors are missing, if so."""
        embedder, reason = self._embedder_for(drafts)
        pieces: list[tuple[Draft, Memory, int, int]] = []
        for draft in drafts:
            parts = self._split(draft, embedder)
            if len(parts) == 1:
                pieces.append((draft, draft.memory, 0, 0))
                continue
            pieces.append((draft, draft.memory, 0, len(parts)))
            for number, text in enumerate(parts, 1):
                id = f"{draft.memory.id}#{number}"
                pieces.append((draft, replace(draft.memory, text=text, id=id, parent_id=draft.memory.id), number, 0))
        indexed = [i for i, piece in enumerate(pieces) if piece[3] == 0]
        knowledge = self._upkeep.knowledge(pieces[i][1] for i in indexed)
        vectors = {i: pieces[i][0].vector for i in indexed if pieces[i][0].vector is not None}
        bare = [i for i in indexed if i not in vectors]
        if embedder is not None and bare:
            texts = [embedded_text(pieces[i][1]) for i in bare]
            vectors |= dict(zip(bare, embed_texts(embedder, texts), strict=True))
        made_by = None if embedder is None else identity(embedder)
        rows = []
        for i, (draft, memory, part, parts_) in enumerate(pieces):
            extraction = self._upkeep.extraction(memory, knowledge) if parts_ == 0 else None
            arrivals = self._upkeep.arrivals(memory, extraction, knowledge) if extraction is not None else ()
            content = content_key(memory.text)
            vector = vectors.get(i)
            by = None if vector is None else made_by if draft.vector is None else _giver(vector)
            rows.append(Row(memory, part, parts_, extraction, vector, content, draft.payload, arrivals, by))
        missing = reason and any(r.extraction is not None and r.vector is None for r in rows)
        return rows, knowledge, {"dense": reason} if missing and reason else {}

    def _split(self, draft: Draft, embedder: Embedder | None) -> list[str]:
        """Return the parts of a text, each of which is embedded behind the title within the embedder's limit.

        A given vector stands for the whole of a text, so such a text is never split.
        """
        text = draft.memory.text
        if draft.vector is not None:
            return [text]
        most = embedder.max_tokens if embedder is not None else None
        if embedder is None or most is None:
            return split(text, max_chars=MAX_CHARS)
        names = (*draft.memory.tags, *other_names(draft.memory.metadata))
        title = encoded_text(draft.memory.title, "", None, names)
        if len(text) + len(title) <= most - 2 and text.isascii() and title.isascii():  # no token is less than a letter
            return [text]
        room = max(most // 2, most - embedder.count_tokens(title)) if title else most
        return split(text, max_chars=MAX_CHARS, max_tokens=room, count_tokens=embedder.count_tokens)

    def _embedder_for(self, drafts: Sequence[Draft]) -> tuple[Embedder | None, str | None]:
        """Return the embedder for texts without a given vector, or why there is none."""
        if all(d.vector is not None for d in drafts):
            return None, None
        found = self._embedder()
        if isinstance(found, str):
            return None, found
        return found, None


def _giver(vector: Any) -> dict[str, Any]:
    return {"name": f"external:{len(vector)}", "dimensions": len(vector), "fingerprint": "given"}


def _conflict(draft: Draft, where: str) -> str:
    return f"The id {draft.memory.id!r} is already in {where} with other content; call update to change it."


def _id_of(item: Any) -> str | None:
    id = item.get("id") if isinstance(item, Mapping) else None
    return str(id) if id is not None else None


def batches(items: Iterator[tuple[int, Any]], size: int) -> Iterator[list[tuple[int, Any]]]:
    """Yield (position, item) in batches of ``size``, of fewer where the texts are long."""
    batch: list[tuple[int, Any]] = []
    chars = 0
    for at, item in items:
        batch.append((at, item))
        text = item.get("text") if isinstance(item, Mapping) else None
        chars += len(text) if isinstance(text, str) else 0
        if len(batch) == size or chars >= _MOST_BATCH_CHARS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch
