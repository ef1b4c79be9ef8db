"""The write pipeline: check, split, extract, embed, store. Streams in bounded memory, one transaction a batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from reprlib import repr as shown
from typing import Any, Literal

from semmem.drafts import Draft, check_namespace, drafted
from semmem.errors import BadItem, Conflict, EmbedderMismatch, EmbedderUnavailable, InvalidInput
from semmem.protocols import Embedder, Extractor, Row, Store
from semmem.searched import encoded_text
from semmem.text import content_key, split
from semmem.types import IngestReport, Memory, Rejected
from semmem.upkeep import Knowledge, Upkeep

__all__ = ["MAX_CHARS", "Ingest"]

MAX_CHARS = 1_400
"""A longer text is split; each part is remembered by itself and found as its parent."""
_MOST_BATCH_CHARS = 20_000_000
"""A batch of long texts ends before its number of items is reached."""
OnError = Literal["abort", "skip"]


class Ingest:
    """Wires a store, an extractor and an embedder (a function that finds it when first needed, or returns a reason)."""

    def __init__(self, store: Store, extractor: Extractor, embedder: Callable[[], Embedder | str]) -> None:
        self._store = store
        self._upkeep = Upkeep(store, extractor)
        self._embedder = embedder

    def remember(self, item: Mapping[str, Any]) -> Memory:
        """Store one item and return the memory, or the one already stored under the same id with the same content."""
        draft = drafted(0, item, "default")
        self._check_vector(draft, None)
        rows, knowledge, _ = self._rows([draft])
        self._upkeep.written(rows, self._store.write(rows, on_conflict="abort"), knowledge)
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
        for batch in _batches(enumerate(items), batch_size):
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
        rows, knowledge, degraded = self._rows(list(drafts.values()))
        try:
            written = self._store.write(rows, on_conflict=on_error)
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
        unchanged = len(written.unchanged) + sum(map(len, repeats.values()))
        return IngestReport(len(written.new), unchanged, tuple(rejected), degraded=degraded)

    def _check_vector(self, draft: Draft, recorded: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Refuse a given vector in a store that an embedder fills, or of another length; return who fills the store.

        ``recorded`` is what an earlier item of the batch has found out, so that a batch asks the store once.
        """
        if draft.vector is None:
            return recorded
        offered = {"name": f"external:{len(draft.vector)}", "dimensions": len(draft.vector), "fingerprint": "given"}
        recorded = recorded or self._store.claim_embedder(offered)
        if recorded["name"] != offered["name"]:
            raise EmbedderMismatch(
                f"This store was filled by {recorded['name']} ({recorded['dimensions']} dimensions) and this vector is "
                f"{offered['name']}; give no vector, use another store, or run `semmem rebuild --embedder NAME`."
            )
        return recorded

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
            texts = [_encoded(pieces[i][1]) for i in bare]
            vectors |= dict(zip(bare, _embed(embedder, texts), strict=True))
        rows = []
        for i, (draft, memory, part, parts_) in enumerate(pieces):
            extraction = self._upkeep.extraction(memory, knowledge) if parts_ == 0 else None
            arrivals = self._upkeep.arrivals(memory, extraction, knowledge) if extraction is not None else ()
            content = content_key(memory.text)
            rows.append(Row(memory, part, parts_, extraction, vectors.get(i), content, draft.payload, arrivals))
        missing = reason and any(r.extraction is not None and r.vector is None for r in rows)
        return rows, knowledge, {"dense": reason} if missing and reason else {}

    def embed_missing(self, embedder: Embedder, progress: Callable[[int], None] | None = None) -> int:
        """Embed, in batches, the memories that have no vector; return how many. Interrupted, it can go on later."""
        done = 0
        after = ("", 0)
        while rows := self._store.missing_vectors(after, 256):
            vectors = _embed(embedder, [_encoded(memory) for _, memory in rows])
            self._store.add_vectors([(m.namespace, o, v) for (o, m), v in zip(rows, vectors, strict=True)])
            after = (rows[-1][1].namespace, rows[-1][0])
            done += len(rows)
            if progress is not None:
                progress(done)
        return done

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
        title = encoded_text(draft.memory.title, "", None, draft.memory.tags)
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


def _encoded(memory: Memory) -> str:
    return encoded_text(memory.title, memory.text, memory.author, memory.tags)


def _embed(embedder: Embedder, texts: Sequence[str]) -> Any:
    """Return unit vectors of shape (len(texts), dimensions). Raises EmbedderUnavailable when they are no such thing."""
    import numpy as np

    vectors = np.asarray(embedder.embed(texts), dtype=np.float32)
    norms = np.linalg.norm(vectors, axis=1) if vectors.shape == (len(texts), embedder.dimensions) else np.zeros(1)
    if not np.isfinite(norms).all() or not norms.all():
        raise EmbedderUnavailable(
            f"The embedder {embedder.name} returned an array of shape {vectors.shape} for {len(texts)} texts; it must "
            f"return finite vectors of {embedder.dimensions} dimensions that are not all 0."
        )
    return vectors if np.allclose(norms, 1, atol=1e-3) else vectors / norms[:, None]


def _conflict(draft: Draft, where: str) -> str:
    return f"The id {draft.memory.id!r} is already in {where} with other content; call update to change it."


def _id_of(item: Any) -> str | None:
    id = item.get("id") if isinstance(item, Mapping) else None
    return str(id) if id is not None else None


def _batches(items: Iterator[tuple[int, Any]], size: int) -> Iterator[list[tuple[int, Any]]]:
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
