"""Vectors for what is stored: those that are missing, or all of them anew by another embedder while readers go on.

Another embedder fills a shadow of the table, in batches, so that an interrupted call can go on; recalls and new
memories use the old vectors meanwhile. When few are missing, the shadow takes the place of the table at once.
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
"""Memories embedded and stored at a time: what an interrupted call does twice at most."""
_FEW = 32
"""Vectors that may be missing when writers are made to wait; beyond, they are made while all go on."""
_ROUNDS = 8
"""How often it is tried to catch up with writers; then they wait for as many as there are."""
_PATIENCE = 900.0
_PAUSE = 0.3
Progress = Callable[[int], None] | None


def fill_in(vectors: VectorStore, encoder: Encoder, progress: Progress = None) -> Rebuilt:
    """Embed, in batches, the memories that have no vector. Interrupted, it can go on later.

    Raises EmbedderUnavailable when there is no embedder, EmbedderMismatch when another one fills the store.
    """
    embedder = encoder.found()
    if isinstance(embedder, str):
        raise EmbedderUnavailable(embedder)
    with vectors.rebuilding():
        return Rebuilt(embedded=_pass(vectors, embedder, shadow=False, done=0, progress=progress))


def replace_vectors(
    vectors: VectorStore, encoder: Encoder, wanted: str | Embedder, progress: Progress = None
) -> Rebuilt:
    """Let the embedder ``wanted`` fill the store from now on, with a vector for every memory.

    Where it does already, what is missing is filled in. Raises EmbedderUnavailable, Conflict when another process
    rebuilds, StoreUnavailable when the table of the vectors stays in use; the next call then goes on.
    """
    embedder = encoder.named(wanted)
    its = identity(embedder)
    with vectors.rebuilding():
        if dict(vectors.claim_embedder(its)) == its:
            encoder.adopt(embedder)
            dropped = vectors.drop_shadow()
            return Rebuilt(_pass(vectors, embedder, shadow=False, done=0, progress=progress), dropped=dropped)
        encoder.expect(embedder)
        kept, dropped = vectors.open_shadow(its)
        made = _pass(vectors, embedder, shadow=True, done=kept, progress=progress)
        vectors.index_shadow(embedder.dimensions)
        end = time.monotonic() + _PATIENCE
        rounds = 0
        while True:
            late = vectors.swap_shadow(its, _embedding(embedder), _FEW if rounds < _ROUNDS else None)
            if late is not None:
                break
            if time.monotonic() > end:
                raise StoreUnavailable(
                    "The vectors are made, but somebody reads the old ones all the time, such as a backup; call the "
                    "same rebuild again later, and it goes on from here."
                )
            caught_up = _pass(vectors, embedder, shadow=True, done=kept + made, progress=progress)
            made += caught_up
            rounds += caught_up > _FEW
            if not caught_up:
                time.sleep(_PAUSE)
        encoder.adopt(embedder)
        return Rebuilt(made + late, kept, dropped)


def _pass(vectors: VectorStore, embedder: Embedder, *, shadow: bool, done: int, progress: Progress) -> int:
    """Embed what is missing, in order, from the first to the last; return how many."""
    its = identity(embedder)
    made, after = 0, ("", 0)
    while rows := vectors.missing_vectors(after, BATCH, shadow=shadow):
        made_now = _embedding(embedder)([memory for _, memory in rows])
        found = [(memory.namespace, ord, vector) for (ord, memory), vector in zip(rows, made_now, strict=True)]
        vectors.add_vectors(found, its, shadow=shadow)
        after = (rows[-1][1].namespace, rows[-1][0])
        made += len(rows)
        if progress is not None:
            progress(done + made)
    return made


def _embedding(embedder: Embedder) -> Callable[[Sequence[Memory]], Any]:
    return lambda memories: embed_texts(embedder, [embedded_text(memory) for memory in memories])
