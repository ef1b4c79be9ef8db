"""Make missing vectors, or replace all vectors by those of another embedder while readers and writers go on.

The new embedder fills a shadow of the vector table in batches, so that an interrupted rebuild can continue. Meanwhile
recalls and new memories use the old vectors. When only a few are missing, the shadow replaces the table at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from semmem.embedders.binding import Encoder, embed_texts, identity
from semmem.model.errors import EmbedderUnavailable, StoreUnavailable
from semmem.model.protocols import Embedder
from semmem.model.reports import Rebuilt
from semmem.model.store import VectorStore
from semmem.model.types import Memory
from semmem.text.passages import embedded_text

__all__ = ["fill_in", "replace_vectors"]

BATCH = 256
"""Memories embedded and stored at a time; an interrupted call repeats at most this many."""
_FEW = 32
"""While more vectors than this are missing, they are made without making writers wait."""
_ROUNDS = 8
"""How often the rebuild tries to catch up with writers before it makes them wait, however many vectors are missing."""
_PATIENCE = 900.0
_PAUSE = 0.3
Progress = Callable[[int], None] | None


def fill_in(vectors: VectorStore, encoder: Encoder, progress: Progress = None) -> Rebuilt:
    """Embed, in batches, the memories that have no vector; an interrupted call can be repeated to continue.

    Raises EmbedderUnavailable when there is no embedder, EmbedderMismatch when another one fills the store.
    """
    embedder = encoder.embedder_or_reason()
    if isinstance(embedder, str):
        raise EmbedderUnavailable(embedder)
    with vectors.rebuilding():
        return Rebuilt(embedded=_pass(vectors, embedder, shadow=False, earlier=0, progress=progress))


def replace_vectors(
    vectors: VectorStore, encoder: Encoder, choice: str | Embedder, progress: Progress = None
) -> Rebuilt:
    """Let the embedder ``choice`` fill the store from now on, with a vector for every memory.

    Where it fills the store already, only missing vectors are made. Raises EmbedderUnavailable where there is none,
    Conflict while another process rebuilds, and StoreUnavailable while the table of vectors stays in use; the next call
    continues.
    """
    embedder = encoder.named(choice)
    own_identity = identity(embedder)
    with vectors.rebuilding():
        if dict(vectors.claim_embedder(own_identity)) == own_identity:
            encoder.adopt(embedder)
            dropped = vectors.drop_shadow()
            return Rebuilt(_pass(vectors, embedder, shadow=False, earlier=0, progress=progress), dropped=dropped)
        encoder.expect(embedder)
        earlier, dropped = vectors.open_shadow(own_identity)
        count = _pass(vectors, embedder, shadow=True, earlier=earlier, progress=progress)
        vectors.index_shadow(embedder.dimensions)
        end = time.monotonic() + _PATIENCE
        rounds = 0
        while True:
            late = vectors.swap_shadow(own_identity, _embedding(embedder), _FEW if rounds < _ROUNDS else None)
            if late is not None:
                break
            if time.monotonic() > end:
                raise StoreUnavailable(
                    "The new vectors are made, but another program, such as a backup, reads the old ones; call the "
                    "same rebuild again later, and it continues from here."
                )
            caught_up = _pass(vectors, embedder, shadow=True, earlier=earlier + count, progress=progress)
            count += caught_up
            rounds += caught_up > _FEW
            if not caught_up:
                time.sleep(_PAUSE)
        encoder.adopt(embedder)
        return Rebuilt(count + late, earlier, dropped)


def _pass(vectors: VectorStore, embedder: Embedder, *, shadow: bool, earlier: int, progress: Progress) -> int:
    """Embed all memories without a vector, in order; return how many."""
    own_identity = identity(embedder)
    count, after = 0, ("", 0)
    while rows := vectors.missing_vectors(after, BATCH, shadow=shadow):
        made_now = _embedding(embedder)([memory for _, memory in rows])
        vector_rows = [(memory.namespace, ord, vector) for (ord, memory), vector in zip(rows, made_now, strict=True)]
        vectors.add_vectors(vector_rows, own_identity, shadow=shadow)
        after = (rows[-1][1].namespace, rows[-1][0])
        count += len(rows)
        if progress is not None:
            progress(earlier + count)
    return count


def _embedding(embedder: Embedder) -> Callable[[Sequence[Memory]], Any]:
    def vectors(memories: Sequence[Memory]) -> Any:
        def name_of(place: int) -> str:
            return f"memory {memories[place].id!r} of namespace {memories[place].namespace!r}"

        return embed_texts(embedder, [embedded_text(memory) for memory in memories], name_of)

    return vectors
