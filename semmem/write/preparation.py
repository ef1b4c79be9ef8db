"""What can be done for a batch before its turn: checking, screening and reading its items, which needs no store.

While one batch is written, and mostly waits for the server, a thread prepares the next one, for a long list with other
processes. What is then stored is the same, for nothing here depends on what is stored.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeVar, cast

from semmem.embedders import Known, vector_key
from semmem.embedders.binding import embed_texts
from semmem.extractors import Rules
from semmem.model.errors import BadItem, Conflict, EmbedderMismatch, InvalidInput
from semmem.model.exchange import Extraction
from semmem.model.field_kinds import Switch
from semmem.model.filters import at_time
from semmem.model.process.machine import processors
from semmem.model.protocols import Embedder, Extractor
from semmem.model.store import Store, vectors_of
from semmem.model.types import Memory, Rejected
from semmem.text.passages import MAX_CHARS, embedded_text, read_text, split
from semmem.write.bulk import EXTRACT, LIKENESS, SCREEN, Pool, TextRow
from semmem.write.items import Draft, drafted, giver, id_of, payload_of, pieces_of
from semmem.write.likeness import Likeness, comparable, keys_of
from semmem.write.plan import Refused, batches
from semmem.write.rebuild import prepare
from semmem.write.screening import Screening, screened

__all__ = [
    "FEWEST",
    "Batch",
    "Keys",
    "OnError",
    "Preparation",
    "Prepared",
    "Readers",
    "Reading",
    "Refusals",
    "check_vector",
    "checked",
    "in_advance",
    "screened_all",
]

FEWEST = 4_000
"""A list with fewer items is read by this process alone, because workers have to be started first."""
T = TypeVar("T")
B = TypeVar("B")
OnError = Literal["abort", "skip"]
Batch = Sequence[tuple[int, Any]]
"""Items, each with its position in the list or stream."""
CheckVector = Callable[[Draft, Mapping[str, Any] | None], Mapping[str, Any] | None]
"""Takes a draft and what embedder fills the store, where that is known; returns the latter. Raises InvalidInput or
EmbedderMismatch."""
Keys = Mapping[tuple[str, str], tuple[Memory, tuple[int, ...]]]
"""By (namespace, id) a memory, and the keys by which it is found by what is like it."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """The items of a batch in their order, each checked or refused, and the keys of those whose keys are known.

    ``items`` are those that were given, as (position, item), for the ``namespace`` of those that name none.
    ``extractions`` are what was found in texts ahead, by the text that the extractor reads and the title; ``vectors``
    came with the items or were made ahead, as ``embedders.Known`` takes them. ``workers`` can compare a share of the
    memories.
    """

    drafts: Sequence[Draft | Refused]
    items: Batch
    namespace: str
    keys: Keys = field(default_factory=dict)
    extractions: Mapping[tuple[str, str | None], Extraction] = field(default_factory=dict)
    vectors: Mapping[tuple[str, str], bytes] = field(default_factory=dict)
    workers: Pool | None = None

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
            self.rejected.append(Rejected(refused.position, refused.name[1] or None, refused.reason))
        elif refused.kind is Conflict:
            raise Conflict(f"Item {refused.position}: {refused.reason}", names=frozenset((refused.name,)))
        else:
            id = f" (id {refused.name[1]!r})" if refused.name[1] else ""
            reason = f"Item {refused.position}{id}: {refused.reason}"
            raise BadItem(reason, position=refused.position, id=refused.name[1] or None)

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
                self.add(Refused(draft.position, ("", draft.memory.id if draft.named else ""), error.message, BadItem))
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
        if recorded["name"].startswith("external:"):
            raise EmbedderMismatch(
                f"This store holds given vectors of {recorded['dimensions']} dimensions and this vector has "
                f"{offered['dimensions']}; give one of the same model."
            )
        raise EmbedderMismatch(
            f"This store was filled by {recorded['name']} ({recorded['dimensions']} dimensions) and this vector is "
            f"{offered['name']}; give no vector, use another store, or run `semmem rebuild --embedder NAME`."
        )
    return recorded


def checked(batch: Iterable[tuple[int, Any]], namespace: str) -> list[Draft | Refused]:
    """Check the items of a batch, given as (position, item)."""
    drafts: list[Draft | Refused] = []
    for index, item in batch:
        try:
            drafts.append(_as_exported(drafted(index, item, namespace), item))
        except InvalidInput as error:
            drafts.append(Refused(index, ("", id_of(item) or ""), error.message, BadItem))
    return drafts


def screened_all(
    drafts: Iterable[Draft | Refused], screening: Screening, kinds: Mapping[int, tuple[str, ...]] = MappingProxyType({})
) -> list[Draft | Refused]:
    """Screen the drafts of a batch; ``kinds`` are those of the credentials in some texts, by their position."""
    passed: list[Draft | Refused] = []
    for draft in drafts:
        if isinstance(draft, Refused):
            passed.append(draft)
            continue
        try:
            passed.append(screened(draft, screening, kinds=kinds.get(draft.position)))
        except InvalidInput as error:
            passed.append(Refused(draft.position, ("", draft.memory.id if draft.named else ""), error.message, BadItem))
    return passed


def _as_exported(draft: Draft, item: object) -> Draft:
    """Return a draft with what an export says besides the fields of ``remember``. Raises InvalidInput.

    That is when its text began, and whether its time was taken from the clock, so that it is no content.
    """
    if getattr(item, "id_of_content", False):
        draft = replace(draft, id_of_content=True)
    untimed = getattr(item, "untimed", None)
    if untimed is not None and Switch().checked("untimed", untimed):
        draft = replace(draft, untimed=True, payload=payload_of(draft.memory, timed=False))
    value = getattr(item, "text_at", None)
    if value is None:
        return draft
    begun = at_time("text_at", value)
    at = draft.memory.created_at
    return replace(draft, text_at=begun if at is not None and at < begun <= datetime.now(UTC) else None)


def vectors_with(items: Batch) -> dict[tuple[str, str], bytes]:
    """Return the vectors that came with items, as an export has them."""
    vectors: dict[tuple[str, str], bytes] = {}
    for _, item in items:
        for text, packed in getattr(item, "vectors", {}).items():
            try:
                vectors[item.embedder, text] = base64.b64decode(packed, validate=True)
            except (binascii.Error, TypeError, ValueError):
                continue  # an invalid vector: the text is embedded instead
    return vectors


@dataclass(frozen=True, slots=True)
class Reading:
    """Reads whole batches where there is no store: checks, screens, splits, extracts, embeds, and finds the keys.

    All of it depends on the items alone (adr/0058), so the one who stores a batch need not trust who has read it: what
    is missing, or made by another embedder, is made again.
    """

    screening: Screening
    extractor: Extractor
    compares: bool
    embedder: Embedder | None = None

    def __call__(self, batch: Batch, namespace: str, stored: Collection[int] = ()) -> Prepared:
        """Return a batch as prepared; nothing is read of the items at the positions ``stored``."""
        drafts = screened_all(checked(batch, namespace), self.screening)
        read = [one for one in drafts if isinstance(one, Draft) and one.position not in stored]
        pieces = [(draft, memory) for draft, memory, _, parts in pieces_of(read, self.embedder) if parts == 0]
        memories = [memory for _, memory in pieces]
        prepare(self.extractor, memories)
        texts = {(read_text(memory), memory.title) for memory in memories}
        extractions = {(text, title): self.extractor.extract(text, title) for text, title in texts}
        alike = [draft for draft in read if self.compares and comparable(draft.memory)]
        each = zip(alike, keys_of([draft.memory for draft in alike]), strict=True)
        keys = {draft.name: (draft.memory, found) for draft, found in each}
        vectors = vectors_with(batch)
        vectors |= self._made([memory for draft, memory in pieces if draft.vector is None], vectors)
        return Prepared(drafts, batch, namespace, keys, extractions, vectors)

    def _made(self, memories: Sequence[Memory], known: Mapping[tuple[str, str], bytes]) -> dict[tuple[str, str], bytes]:
        """Return the vectors of memories, without those that have no direction."""
        if self.embedder is None or not memories:
            return {}
        texts = [embedded_text(memory) for memory in memories]
        wrong: dict[int, str] = {}
        rows = embed_texts(Known(self.embedder, known), texts, unusable=wrong).astype("<f4")
        by = self.embedder.fingerprint
        return {(by, vector_key(text)): rows[i].tobytes() for i, text in enumerate(texts) if i not in wrong}


class Readers(Protocol):
    """Several that read batches side by side, such as the workers of a cluster (``semmem.scale``)."""

    def read(self, batches: Iterable[tuple[Batch, Collection[int]]], namespace: str) -> Generator[Prepared, None, None]:
        """Yield batches in their order as prepared; each comes with the positions of which nothing need be read."""
        ...


class Preparation:
    """Prepares batches: checks and screens their items, and reads ahead what ``extractor`` and ``likeness`` will read.

    With ``ahead`` a list is read while the batch before is written. With up to ``workers`` processes a long list is
    read by them, if the extractor is the rules.
    """

    def __init__(
        self, screening: Screening, extractor: Extractor, likeness: Likeness, *, ahead: bool, workers: int
    ) -> None:
        self._screening: Screening = screening
        self._extractor = extractor
        self._likeness = likeness
        self._ahead = ahead
        self._workers = workers if type(extractor) is Rules else 0

    def batch(self, batch: Sequence[tuple[int, Any]], namespace: str) -> Prepared:
        """Return a batch of (position, item) with its items checked and screened."""
        drafts = screened_all(checked(batch, namespace), self._screening)
        return Prepared(drafts, batch, namespace, vectors=vectors_with(batch))

    def coming(self, items: Iterable[Any], namespace: str, batch_size: int) -> Generator[Prepared, None, None]:
        """Yield the batches of a list or a stream. Of a stream none is taken early: it may wait for our answer."""
        work = batches(enumerate(items), batch_size)
        long = isinstance(items, list | tuple) and len(items) > batch_size
        count = self._workers if long and processors() > 1 and len(cast(Sized, items)) >= FEWEST else 0
        if not long or (not self._ahead and count < 1):
            yield from (self.batch(batch, namespace) for batch in work)
            return
        with (
            Pool(count, getattr(self._extractor, "language", "english")) as pool,
            closing(in_advance(work, partial(self._read, pool, namespace))) as coming,
        ):
            try:
                for batch in coming:  # noqa: UP028  # "yield from" would end that generator before the workers
                    yield batch
            finally:
                pool.kill()  # who stops early waits for the thread that reads, and not for a worker that hangs

    def _read(self, pool: Pool, namespace: str, batch: Sequence[tuple[int, Any]]) -> Prepared:
        """Return a batch with all that depends on no store and will be asked for; workers or this thread read it."""
        drafts = checked(batch, namespace)
        if not len(pool) or batch[0][0] == 0:  # the first is read by this process, while the workers start
            drafts = screened_all(drafts, self._screening)
            ahead = {} if len(pool) else read_ahead(drafts, self._extractor, MAX_CHARS)
            return Prepared(drafts, batch, namespace, self._with_keys(drafts, {}), ahead, workers=pool)
        rows, wholes = self._rows(drafts)
        found = pool.read(rows)
        by_position = {index: (rows[place], found[place]) for index, place in wholes.items()} if found else {}
        kinds = {index: one.credentials for index, (_, one) in by_position.items()}
        drafts = screened_all(drafts, self._screening, kinds if self._screening != "off" else {})
        texts = {draft.position: draft.memory.text for draft in drafts if isinstance(draft, Draft)}
        likeness = {index: one.likeness for index, (row, one) in by_position.items() if row.text == texts.get(index)}
        extractions = {  # a text that was redacted is read anew
            (row.text + row.suffix, row.title): one.extraction
            for row, one in zip(rows, found, strict=False)
            if one.extraction is not None
        }
        return Prepared(drafts, batch, namespace, self._with_keys(drafts, likeness), extractions, workers=pool)

    def _rows(self, drafts: Sequence[Draft | Refused]) -> tuple[list[TextRow], dict[int, int]]:
        """Return what workers have to read, and where the whole text of each draft is in it, by its position.

        A text that is split here may be split elsewhere in its turn, to the embedder's limit; then it is read there.
        """
        rows: list[TextRow] = []
        wholes: dict[int, int] = {}
        screens = SCREEN if self._screening != "off" else 0
        for draft in drafts:
            if isinstance(draft, Refused) or draft.memory.sensitive:
                continue
            memory = draft.memory
            parts = [memory.text] if draft.vector is not None else split(memory.text, max_chars=MAX_CHARS)
            suffix = read_text(memory)[len(memory.text) :]
            alike = LIKENESS if self._likeness.compares(memory) else 0
            wholes[draft.position] = len(rows)
            what = screens | alike | (EXTRACT if len(parts) == 1 else 0)
            rows.append(TextRow(memory.text, suffix, memory.title, memory.author, what))
            if len(parts) > 1:
                rows += [TextRow(part, suffix, memory.title, None, EXTRACT) for part in parts]
        return rows, wholes

    def _with_keys(self, drafts: Sequence[Draft | Refused], likeness: Mapping[int, tuple[int, ...]]) -> Keys:
        """Return the keys by which memories like a draft are found; those in ``likeness``, by position, are known."""
        accepted = [draft for draft in drafts if isinstance(draft, Draft)]
        at_hand = {
            draft.name: (draft.memory, likeness[draft.position]) for draft in accepted if draft.position in likeness
        }
        keys = self._likeness.keys(accepted, at_hand)
        return {draft.name: (draft.memory, keys[draft.name]) for draft in accepted if draft.name in keys}


def read_ahead(
    drafts: Iterable[Draft | Refused], extractor: Extractor, most_chars: int
) -> dict[tuple[str, str | None], Extraction]:
    """Return what the rules find in the texts of new memories.

    Any other extractor may ask a model, or may not be safe between threads; nothing is done for it.
    """
    if type(extractor) is not Rules:
        return {}
    memories = [
        draft.memory
        for draft in drafts
        if isinstance(draft, Draft) and not draft.memory.sensitive and len(draft.memory.text) <= most_chars
    ]
    texts = {(read_text(memory), memory.title) for memory in memories}
    return {(text, title): extractor.extract(text, title) for text, title in texts}


def in_advance(batches: Iterable[B], work: Callable[[B], T]) -> Generator[T, None, None]:
    """Yield what ``work`` returns for each batch, or raise its error; a thread works on the next one meanwhile."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="semmem-prepare") as pool:
        waiting: Future[T] | None = None
        for batch in batches:
            coming = pool.submit(copy_context().run, work, batch)
            if waiting is not None:
                yield waiting.result()
            waiting = coming
        if waiting is not None:
            yield waiting.result()
