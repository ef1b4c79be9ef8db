"""What can be done for a batch before its turn: checking, screening and reading its items, which needs no store.

While one batch is written, and mostly waits for the server, a thread prepares the next one. What is then stored is the
same, for nothing here depends on what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

from semmem.concepts.names import alias_candidates
from semmem.model.errors import BadItem, Conflict, EmbedderMismatch, InvalidInput
from semmem.model.filters import at_time
from semmem.model.protocols import Extractor
from semmem.model.store import Store, vectors_of
from semmem.model.types import Memory, Rejected
from semmem.text.passages import read_text
from semmem.write.items import Draft, drafted, giver, id_of
from semmem.write.plan import Refused
from semmem.write.screening import Screening, screened

__all__ = ["Keys", "OnError", "Prepared", "Refusals", "check_vector", "in_advance", "prepared", "read_ahead"]

T = TypeVar("T")
B = TypeVar("B")
OnError = Literal["abort", "skip"]
CheckVector = Callable[[Draft, Mapping[str, Any] | None], Mapping[str, Any] | None]
"""Takes a draft and what embedder fills the store, where that is known; returns the latter. Raises InvalidInput or
EmbedderMismatch."""
Keys = Mapping[tuple[str, str], tuple[Memory, tuple[int, ...]]]
"""By (namespace, id) a memory, and the keys by which it is found by what is like it."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """The items of a batch in their order, each checked or refused, and the keys of those whose keys are known.

    ``items`` are those that were given, as (position, item), for the ``namespace`` of those that name none.
    """

    drafts: Sequence[Draft | Refused]
    items: Sequence[tuple[int, Any]]
    namespace: str
    keys: Keys = field(default_factory=dict)

    def items_at(self, position: int) -> list[tuple[int, Any]]:
        """Return the item at ``position`` as it was given, so that it can be stored by itself."""
        return [item for item in self.items if item[0] == position]


@dataclass(frozen=True, slots=True)
class Refusals:
    """What is not stored of a batch: the first such item raises an error, or, with ``skip``, all are gathered."""

    on_error: OnError
    rejected: list[Rejected] = field(default_factory=list)

    def add(self, refused: Refused) -> None:
        """Gather one. Raises Conflict or BadItem."""
        if self.on_error == "skip":
            self.rejected.append(Rejected(refused.at, refused.name[1] or None, refused.reason))
        elif refused.kind is Conflict:
            raise Conflict(f"Item {refused.at}: {refused.reason}", names=frozenset((refused.name,)))
        else:
            id = f" (id {refused.name[1]!r})" if refused.name[1] else ""
            reason = f"Item {refused.at}{id}: {refused.reason}"
            raise BadItem(reason, position=refused.at, id=refused.name[1] or None)

    def accepted(self, drafts: Iterable[Draft | Refused], check_vector: CheckVector) -> list[Draft]:
        """Return the drafts that can be stored, and gather the others. Raises Conflict or BadItem."""
        passed: list[Draft] = []
        recorded: Mapping[str, Any] | None = None
        for draft in drafts:
            if isinstance(draft, Refused):
                self.add(draft)
                continue
            try:
                recorded = check_vector(draft, recorded)
            except (InvalidInput, EmbedderMismatch) as error:
                self.add(Refused(draft.at, ("", draft.memory.id if draft.named else ""), error.message, BadItem))
                continue
            passed.append(draft)
        return passed


def check_vector(store: Store, draft: Draft, recorded: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Raise EmbedderMismatch for a given vector that does not fit the store; return what embedder fills the store.

    ``recorded`` is the answer for an earlier item of the batch, so that a batch asks the store once. In a store
    without an embedder the first vector decides, and the write records it.
    """
    if draft.vector is None:
        return recorded
    vectors = vectors_of(store)
    offered = giver(draft.vector)
    recorded = recorded or vectors.embedder() or offered
    if recorded["name"] != offered["name"]:
        raise EmbedderMismatch(
            f"This store was filled by {recorded['name']} ({recorded['dimensions']} dimensions) and this vector is "
            f"{offered['name']}; give no vector, use another store, or run `semmem rebuild --embedder NAME`."
        )
    return recorded


def prepared(batch: Iterable[tuple[int, Any]], namespace: str, screening: Screening) -> list[Draft | Refused]:
    """Check and screen the items of a batch, given as (position, item)."""
    drafts: list[Draft | Refused] = []
    for at, item in batch:
        try:
            drafts.append(screened(_begun(drafted(at, item, namespace), item), screening))
        except InvalidInput as error:
            drafts.append(Refused(at, ("", id_of(item) or ""), error.message, BadItem))
    return drafts


def _begun(draft: Draft, item: Any) -> Draft:
    """Return a draft with the time at which its text began, where an export says so. Raises InvalidInput."""
    value = getattr(item, "text_at", None)
    if value is None:
        return draft
    begun = at_time("text_at", value)
    at = draft.memory.created_at
    return replace(draft, text_at=begun if at is not None and at < begun <= datetime.now(UTC) else None)


def read_ahead(drafts: Iterable[Draft | Refused], extractor: Extractor, most_chars: int) -> None:
    """Read the texts of new memories with the rules, which remember what they have read last.

    Any other extractor may ask a model, or may not be safe between threads; nothing is done for it.
    """
    if getattr(extractor, "name", None) != "rules":
        return
    language = getattr(extractor, "language", "english")
    for draft in drafts:
        if isinstance(draft, Draft) and not draft.memory.sensitive and len(draft.memory.text) <= most_chars:
            alias_candidates(read_text(draft.memory), draft.memory.title, language=language)


def in_advance(batches: Iterable[B], work: Callable[[B], T]) -> Generator[T, None, None]:
    """Yield what ``work`` returns for each batch, or raise its error; a thread works on the next one meanwhile."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="semmem-prepare") as pool:
        waiting: Future[T] | None = None
        for batch in batches:
            coming = pool.submit(work, batch)
            if waiting is not None:
                yield waiting.result()
            waiting = coming
        if waiting is not None:
            yield waiting.result()
