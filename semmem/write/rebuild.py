"""Make missing vectors, or replace all vectors by those of another embedder, or find all concepts anew.

Readers and writers go on meanwhile, and an interrupted call is continued by the next one.

The new embedder fills the staging vectors in batches, so that an interrupted rebuild can continue. Meanwhile
recalls and new memories use the old vectors. When only a few are missing, the staging vectors replace the table at
once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from semmem.concepts.rules import extraction_of
from semmem.embedders.binding import EmbedderBinding, embed_texts, identity
from semmem.model.errors import EmbedderUnavailable, StoreUnavailable
from semmem.model.exchange import Extraction
from semmem.model.protocols import Embedder, Extractor
from semmem.model.reports import Rebuilt
from semmem.model.store import GraphStore, Store, VectorStore
from semmem.model.types import Memory
from semmem.text.passages import embedded_text, read_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["extracted", "fill_in", "prepare", "reextract", "replace_vectors"]

BATCH = 256
"""Memories embedded and stored at a time; an interrupted call repeats at most this many."""
_FEW = 32
"""While more vectors than this are missing, they are made without making writers wait."""
_ROUNDS = 8
"""How often the rebuild tries to catch up with writers before it makes them wait, however many vectors are missing."""
_PATIENCE = 900.0
_PAUSE = 0.3
_LOG = logging.getLogger(__name__)
Progress = Callable[[int], None] | None


def fill_in(vectors: VectorStore, binding: EmbedderBinding, progress: Progress = None) -> Rebuilt:
    """Embed, in batches, the memories that have no vector; an interrupted call can be repeated to continue.

    Raises EmbedderUnavailable when there is no embedder, EmbedderMismatch when another one fills the store.
    """
    embedder = binding.embedder_or_reason()
    if isinstance(embedder, str):
        raise EmbedderUnavailable(embedder)
    with vectors.rebuilding():
        return Rebuilt(embedded=_pass(vectors, embedder, staging=False, earlier=0, progress=progress))


def replace_vectors(
    vectors: VectorStore, binding: EmbedderBinding, choice: str | Embedder, progress: Progress = None
) -> Rebuilt:
    """Let the embedder ``choice`` fill the store from now on, with a vector for every memory.

    Where it fills the store already, only missing vectors are made. Raises EmbedderUnavailable where there is none,
    Conflict while another process rebuilds, and StoreUnavailable while the table of vectors stays in use; the next call
    continues.
    """
    embedder = binding.named(choice)
    own_identity = identity(embedder)
    with vectors.rebuilding():
        if dict(vectors.claim_embedder(own_identity)) == own_identity:
            binding.adopt(embedder)
            dropped = vectors.drop_staging()
            return Rebuilt(_pass(vectors, embedder, staging=False, earlier=0, progress=progress), dropped=dropped)
        binding.expect(embedder)
        earlier, dropped = vectors.open_staging(own_identity)
        count = _pass(vectors, embedder, staging=True, earlier=earlier, progress=progress)
        vectors.index_staging(embedder.dimensions)
        end = time.monotonic() + _PATIENCE
        rounds = 0
        while True:
            late = vectors.swap_staging(own_identity, _embedding(embedder), _FEW if rounds < _ROUNDS else None)
            if late is not None:
                break
            if time.monotonic() > end:
                raise StoreUnavailable(
                    "The new vectors are made, but another program, such as a backup, reads the old ones; call the "
                    "same rebuild again later, and it continues from here."
                )
            caught_up = _pass(vectors, embedder, staging=True, earlier=earlier + count, progress=progress)
            count += caught_up
            rounds += caught_up > _FEW
            if not caught_up:
                time.sleep(_PAUSE)
        binding.adopt(embedder)
        return Rebuilt(count + late, earlier, dropped)


def _pass(vectors: VectorStore, embedder: Embedder, *, staging: bool, earlier: int, progress: Progress) -> int:
    """Embed all memories without a vector, in order; return how many."""
    own_identity = identity(embedder)
    count, after = 0, ("", 0)
    while rows := vectors.missing_vectors(after, BATCH, staging=staging):
        made_now = _embedding(embedder)([memory for _, memory in rows])
        vector_rows = [
            (memory.namespace, row_id, vector) for (row_id, memory), vector in zip(rows, made_now, strict=True)
        ]
        vectors.add_vectors(vector_rows, own_identity, staging=staging)
        after = (rows[-1][1].namespace, rows[-1][0])
        count += len(rows)
        if progress is not None:
            progress(earlier + count)
    return count


def _embedding(embedder: Embedder) -> Callable[[Sequence[Memory]], Sequence[NDArray[np.float32]]]:
    def vectors(memories: Sequence[Memory]) -> Sequence[NDArray[np.float32]]:
        def name_of(place: int) -> str:
            return f"memory {memories[place].id!r} of namespace {memories[place].namespace!r}"

        texts = [embedded_text(memory) for memory in memories]
        made: Sequence[NDArray[np.float32]] = embed_texts(embedder, texts, name_of)
        return made

    return vectors


def prepare(extractor: Extractor, memories: Collection[Memory]) -> None:
    """Let an extractor that asks a model do so once for all ``memories``."""
    ask = getattr(extractor, "prepare", None)
    if ask is not None and len(memories) > 1:
        ask([(read_text(memory), memory.title) for memory in memories])


def extracted(extractor: Extractor, memories: Mapping[int, Memory]) -> list[tuple[int, Extraction]]:
    """Return the extraction of each memory by row id, without the memories that the extractor cannot read."""
    language: str = getattr(extractor, "language", "english")
    prepare(extractor, memories.values())
    pairs = []
    for row_id, memory in sorted(memories.items()):
        try:
            pairs.append((row_id, extraction_of(extractor, memory, language)))
        except Exception as error:  # noqa: BLE001  # an extractor may raise anything
            _LOG.info("%s cannot be read again: %s", memory.id, error)
    return pairs


def reextract(store: Store, extractor: Extractor, language: str, progress: Progress = None) -> Rebuilt:
    """Extract every memory again, as after a change of the extractor, while others read and write.

    An interrupted call is continued by the next one with the same extractor; ``progress`` includes the memories of the
    interrupted call. Raises Conflict while another process rebuilds.
    """
    graph = store.graph
    with nullcontext() if graph is None else graph.rebuilding():
        place, dropped = ({}, None) if graph is None else _place(graph, extractor)
        skipped = count = int(place.get("read", 0))
        changed = 0
        for namespace in store.namespaces():
            before = place.get("namespace", "")
            if namespace < before:
                continue
            after = int(place["ord"]) if namespace == before else 0
            store.set_language(namespace, language, done=False)
            place["namespace"] = namespace
            for batch in _batches(store, namespace, after):
                rows = dict(batch)
                prepare(extractor, rows.values())
                own: str = getattr(extractor, "language", "english")
                pairs = [(row_id, extraction_of(extractor, memory, own)) for row_id, memory in batch]
                changed += store.reindex(namespace, pairs)
                count += len(batch)
                if graph is not None:
                    graph.note_reextraction(place | {"ord": batch[-1][0], "read": count})
                if progress is not None:
                    progress(count)
            store.set_language(namespace, language, done=True)
        if graph is not None:
            graph.note_reextraction(None)
        return Rebuilt(dropped=dropped, read=count - skipped, skipped=skipped, changed=changed)


def _place(graph: GraphStore, extractor: Extractor) -> tuple[dict[str, Any], str | None]:
    """Return where an interrupted call with this extractor stopped, and whose interrupted call is discarded."""
    who = {name: str(getattr(extractor, name, "")) for name in ("name", "language", "version", "model")}
    ours = {**who, "semmem": version("semmem")}
    place = graph.reextraction()
    if place is None:
        return {"by": ours}, None
    return (dict(place), None) if place["by"] == ours else ({"by": ours}, str(place["by"]["name"]))


def _batches(store: Store, namespace: str, after: int) -> Iterator[Sequence[tuple[int, Memory]]]:
    while rows := store.indexed_after(namespace, after, BATCH):
        yield rows
        after = rows[-1][0]
