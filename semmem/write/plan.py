"""Plan a batch: decide, by what the store holds, which items are new, unchanged, changed or refused. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from reprlib import repr as shown
from typing import TYPE_CHECKING, Any, TypeAlias

from semmem.model.errors import BadItem, Conflict, InvalidInput
from semmem.model.exchange import Stored
from semmem.model.imported_items import MARK, NOTE_HASH, edited, hash_of
from semmem.model.memory_fields import STORED
from semmem.model.types import Memory, Rejected, SourceType, unhashed
from semmem.write.items import Draft, check_validity, payload_of, timed_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "REMEMBERING",
    "Outcome",
    "Plan",
    "Policy",
    "Refused",
    "Vectors",
    "batches",
    "check_batches",
    "no_longer",
    "planned",
    "updating",
]

Vectors: TypeAlias = "Mapping[tuple[str, str, int], NDArray[np.float32]]"
"""Stored vectors by (namespace, id, part)."""

_FIELDS = tuple(STORED)
_NAMED = 3
"""The keys of metadata that a refusal names."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How an item is compared with the stored memory of its id, and whether the item may replace it.

    With ``partial`` only the fields that the item has are compared and overwritten; otherwise a missing field means its
    default. ``may_replace`` says whether a given stored memory may be replaced; None means never. ``mark`` is metadata
    that a source adds to each of its memories. The mark is not compared, and metadata keys that an item leaves out stay
    as they are. With an empty mark only a mark left by another import is ignored; with None, metadata is a field like
    any other. With ``keep_edits`` a memory that was edited by hand since its import is not replaced. With ``guarded``
    the text is taken for another one and not compared, so that nothing tells whether somebody has guessed it.
    ``source_type`` is that of a new memory whose item gives none.
    """

    partial: bool = False
    may_replace: Callable[[Memory], bool] | None = None
    mark: Mapping[str, Any] | None = None
    keep_edits: bool = False
    guarded: bool = False
    source_type: SourceType | None = None


REMEMBERING = Policy()
"""The policy of ``remember``: the whole item is compared, and nothing is replaced."""


def updating(stored: Memory, changes: Collection[str]) -> Policy:
    """Return the policy of an update of ``stored``, which gives the fields ``changes``."""
    return Policy(partial=True, may_replace=lambda _: True, guarded=stored.sensitive and "text" in changes)


@dataclass(frozen=True, slots=True)
class Refused:
    """An item that is not written: its place, its (namespace, id), the reason, and the class of the error."""

    position: int
    name: tuple[str, str]
    reason: str
    kind: type[BadItem | Conflict] = Conflict


@dataclass(frozen=True, slots=True)
class Plan:
    """What happens to each draft of a batch. A changed draft holds the memory as it is to be, and what it ``replaces``.

    ``repeats`` are the places of items that repeat an earlier item of the batch, by (namespace, id).
    """

    new: list[Draft] = field(default_factory=list)
    changed: list[Draft] = field(default_factory=list)
    unchanged: list[Draft] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    repeats: dict[tuple[str, str], list[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened to one batch; ``names`` are those of its good items, with the ids that were made for them.

    ``repeated`` are the memories stored before that items without an id say again.
    """

    remembered: int = 0
    unchanged: int = 0
    replaced: int = 0
    rejected: tuple[Rejected, ...] = ()
    degraded: Mapping[str, str] = field(default_factory=dict)
    names: frozenset[tuple[str, str]] = frozenset()
    repeated: frozenset[tuple[str, str]] = frozenset()
    corroborated: int = 0
    contradictions: int = 0

    def with_more(self, other: Outcome) -> Outcome:
        """Return it with what became of more items of the same batch."""
        return Outcome(
            self.remembered + other.remembered,
            self.unchanged + other.unchanged,
            self.replaced + other.replaced,
            (*self.rejected, *other.rejected),
            {**self.degraded, **other.degraded},
            self.names | other.names,
            self.repeated | other.repeated,
            self.corroborated + other.corroborated,
            self.contradictions + other.contradictions,
        )


def planned(
    drafts: Iterable[Draft],
    stored: Mapping[tuple[str, str], Stored],
    vectors: Vectors,
    *,
    policy: Policy,
    now: datetime,
    earlier_names: Collection[tuple[str, str]] = (),
) -> Plan:
    """Return the plan of a batch.

    ``stored`` holds the stored memories that have the names of the drafts, ``vectors`` the stored vectors of those
    drafts that come with one. ``earlier_names`` are those of earlier batches of the same source, which may
    use an id only once.
    """
    plan = Plan()
    firsts: dict[tuple[str, str], Draft] = {}
    for draft in drafts:
        first = firsts.setdefault(draft.name, draft)
        if first is not draft:
            if _same_content(first, draft) and _same_vector(first.vector, draft.vector):
                plan.repeats.setdefault(draft.name, []).append(draft.position)
            else:
                plan.refused.append(_twice(draft, first, policy))
            continue
        current = stored.get(draft.name) if draft.named else None
        if current is None:
            plan.new.append(_of_source(draft, policy))
        elif not policy.guarded and _same(current, draft, vectors, policy):
            plan.unchanged.append(draft)
        elif policy.partial and draft.name in earlier_names:
            plan.refused.append(_twice(draft, draft, policy))
        elif policy.keep_edits and edited(current.memory) and _same_note(current.memory, draft.memory):
            plan.unchanged.append(draft)
        elif policy.may_replace is not None and policy.may_replace(current.memory):
            if policy.keep_edits and edited(current.memory) and not _is_note(current.memory, draft.memory):
                plan.refused.append(Refused(draft.position, draft.name, _EDITED))
                continue
            plan.changed.append(revised(current, draft, now, policy))
        else:
            plan.refused.append(_id_in_use(draft, policy, current, vectors))
    for refused in [one for one in plan.refused if one.name in plan.repeats]:
        if firsts[refused.name].position == refused.position:  # a repeated item shares the fate of the first one
            plan.refused.extend(replace(refused, position=index) for index in plan.repeats.pop(refused.name))
    return plan


def revised(stored: Stored, draft: Draft, now: datetime, policy: Policy) -> Draft:
    """Return ``draft`` as the successor of a stored memory; fields that the draft does not have stay as they are."""
    timed = draft.timed or timed_of(stored.memory, stored.payload)
    changes = {name: getattr(draft.memory, name) for name in _FIELDS if name in draft.fields}
    changes["metadata"] = _merged(stored.memory.metadata, draft, policy.mark)
    same = not policy.guarded and (draft.memory.text == stored.memory.text or "text" not in draft.fields)
    changes |= _validity(stored.memory, draft, now, same)
    memory = unhashed(replace(stored.memory, **changes, updated_at=now, version=stored.memory.version + 1))
    begun = stored.text_at if same else now
    of: dict[str, Any] = {"replaces": stored.memory, "replaced_payload": stored.payload}
    of["text_at"] = draft.text_at or (None if "created_at" in draft.fields else begun)
    return replace(draft, memory=memory, payload=payload_of(memory, timed=timed), **of)


def _validity(stored: Memory, draft: Draft, now: datetime, same: bool) -> dict[str, datetime | None]:
    """Return from when until when the new version is valid.

    A new text is valid from now on, unless the draft says from when. An end in the past belongs to the old text and is
    dropped. Raises InvalidInput where the end is before the beginning.
    """
    begins = draft.memory.valid_from if "valid_from" in draft.fields else stored.valid_from
    ends = draft.memory.valid_to if "valid_to" in draft.fields else stored.valid_to
    if not same:
        begins = begins if "valid_from" in draft.fields else None
        ends = ends if "valid_to" in draft.fields or (ends is not None and ends > now) else None
    check_validity(begins, ends)
    return {"valid_from": begins, "valid_to": ends}


_EDITED = (
    "It was edited by hand since it was imported, and what is imported has changed too; semmem import with --replace "
    "overwrites it."
)


def no_longer(draft: Draft, policy: Policy) -> Refused:
    """Return the refusal of a draft whose id somebody else has written since the plan was made."""
    if draft.replaces is None:
        return _id_in_use(draft, policy)
    return Refused(
        draft.position, draft.name, f"Another writer has changed {shown(draft.memory.id)} just now; try again."
    )


def _same(stored: Stored, draft: Draft, vectors: Vectors, policy: Policy) -> bool:
    if draft.vector is not None and not _same_vector(draft.vector, vectors.get((*draft.name, 0))):
        return False
    apart = {"expires_at", "created_at"} if draft.untimed else {"expires_at"}  # what the hash leaves out
    if draft.payload == stored.payload and not (policy.partial and apart & draft.fields):
        return True
    before, item = stored.memory, draft.memory
    if not policy.partial:
        timed = before.sensitive and timed_of(before, stored.payload)
        return before.sensitive and draft.timed == timed and _same_fields(before, item, timed)
    return not _differing(stored, draft, policy)


def _differing(stored: Stored, draft: Draft, policy: Policy) -> list[str]:
    """Return the fields in which an item differs from the stored memory of its id, in the order of _FIELDS."""
    before, item = stored.memory, draft.memory
    if not policy.partial:
        names = [name for name in _FIELDS if draft.timed or name != "created_at"]
        return [name for name in names if not _alike(getattr(before, name), getattr(item, name))]
    # a ttl counts from its first time
    excluded = {"expires_at"} if "ttl" in draft.fields and before.expires_at is not None else set()
    replaceable = policy.may_replace is not None and policy.may_replace(before)
    if not replaceable and before.source_type is None:  # it was stored before there were source types
        excluded.add("source_type")

    def same(name: str) -> bool:
        if name == "metadata":
            new = replace(item, sensitive=before.sensitive)
            return _same_metadata(unhashed(before).metadata, unhashed(new).metadata, policy.mark)
        return _alike(getattr(before, name), getattr(item, name))

    return [name for name in _FIELDS if name in draft.fields and name not in excluded and not same(name)]


def _same_content(one: Draft, other: Draft) -> bool:
    """Return whether two items have the same content; sensitive items are compared field by field, not by hash."""
    if one.memory.sensitive and other.memory.sensitive:
        return one.timed == other.timed and _same_fields(one.memory, other.memory, one.timed)
    return one.payload == other.payload


def _same_fields(one: Memory, other: Memory, timed: bool) -> bool:
    names = (name for name in _FIELDS if timed or name != "created_at")
    return all(_alike(getattr(one, name), getattr(other, name)) for name in names)


def _same_metadata(stored: Mapping[str, Any], new: Mapping[str, Any], mark: Mapping[str, Any] | None) -> bool:
    if mark:
        return all(key in stored and _alike(stored[key], new[key]) for key in new.keys() - mark.keys())
    if mark is not None and MARK not in new:
        stored = {key: value for key, value in stored.items() if key != MARK}
    return _alike(stored, new)


def _merged(stored: Mapping[str, Any], draft: Draft, mark: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return the metadata of the memory that ``draft`` becomes."""
    new = draft.memory.metadata if "metadata" in draft.fields else None
    if mark:
        return {**stored, **(new or {}), **mark}
    if new is None or mark is None or MARK not in stored:
        return stored if new is None else new
    return {MARK: stored[MARK], **new}


def _of_source(draft: Draft, policy: Policy) -> Draft:
    """Return a new draft with the mark of its source and the source type."""
    given = draft.memory.source_type
    source_type = given if "source_type" in draft.fields else policy.source_type
    if not policy.mark and source_type == given:
        return draft
    metadata = {**draft.memory.metadata, **(policy.mark or {})}
    memory = replace(draft.memory, metadata=metadata, source_type=source_type)
    return replace(draft, memory=memory, payload=payload_of(memory, timed=draft.timed))


def _same_note(stored: Memory, new: Memory) -> bool:
    return bool(stored.metadata[NOTE_HASH] == new.metadata.get(NOTE_HASH))


def _is_note(stored: Memory, new: Memory) -> bool:
    """Return whether a stored memory, as it was edited, is what the note says now."""
    return hash_of(stored) == new.metadata.get(NOTE_HASH)


def _same_vector(one: NDArray[np.float32] | None, other: NDArray[np.float32] | None) -> bool:
    if one is None or other is None:
        return one is other
    return bool(one.shape == other.shape and (one == other).all())


def _twice(draft: Draft, first: Draft, policy: Policy) -> Refused:
    id = draft.memory.id
    if policy.partial:
        return Refused(
            draft.position,
            draft.name,
            f"The id {shown(id)} came earlier in the same source with other content; give each item an id of its own.",
        )
    where = f"item {first.position} of the same batch"
    return Refused(draft.position, draft.name, f"The id {shown(id)} is already in {where} with other content.", BadItem)


def _id_in_use(
    draft: Draft,
    policy: Policy,
    stored: Stored | None = None,
    vectors: Vectors | None = None,
) -> Refused:
    """Return the refusal of a draft whose id is stored; it names the fields that differ, where ``stored`` is given."""
    id = draft.memory.id
    other = "other content" if stored is None else _other(stored, draft, policy, vectors or {})
    if not policy.partial:
        reason = f"The id {shown(id)} is already in the store with {other}; call update to change it."
    elif policy.may_replace is None:
        reason = f"The id {shown(id)} is already stored with {other}; import with --replace to change it."
    else:
        reason = (
            f"The id {shown(id)} is already stored with {other}, and not as one of this source's own memories; "
            f"change it by update{', or import with --replace the first time too' if policy.mark else ''}."
        )
    return Refused(draft.position, draft.name, reason)


def _other(stored: Stored, draft: Draft, policy: Policy, vectors: Vectors) -> str:
    """Return "another text and title", or "other content" for a sensitive memory, so that nobody can guess its text."""
    if stored.memory.sensitive or policy.guarded:
        return "other content"
    names = _differing(stored, draft, policy)
    if "metadata" in names:
        keys = _other_keys(stored.memory.metadata, draft.memory.metadata, policy.mark)
        named = ", ".join(map(shown, keys[:_NAMED])) + (", …" if len(keys) > _NAMED else "")
        names = [f"metadata ({named})" if name == "metadata" and keys else name for name in names]
    if not _same_vector(draft.vector, vectors.get((*draft.name, 0))) and draft.vector is not None:
        names.append("vector")
    if not names:
        return "other content"
    listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"{'other' if names[0].startswith(('metadata', 'tags')) else 'another'} {listed}"


def _other_keys(stored: Mapping[str, Any], new: Mapping[str, Any], mark: Mapping[str, Any] | None) -> list[str]:
    """Return the keys of metadata whose values differ; keys that an item of a source leaves out stay as they are."""
    keys = new.keys() if mark else stored.keys() | new.keys()
    left_out = {*(mark or {}), MARK, NOTE_HASH}
    return sorted(
        key for key in keys - left_out if key not in stored or key not in new or not _alike(stored[key], new[key])
    )


def _alike(one: object, other: object) -> bool:
    """Return whether two values are equal after a round trip through the store, which returns 1e300 as an integer."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, bool) or isinstance(other, bool) or not isinstance(one, int | float):
        return type(one) is type(other) and bool(one == other)
    try:
        return one == other or (isinstance(other, int | float) and float(one) == float(other))
    except OverflowError:
        return False


_MOST_BATCH_CHARS = 20_000_000
"""A batch ends early once its texts have this many characters together."""


def check_batches(batch_size: object, on_error: object) -> None:
    """Raise InvalidInput for a ``batch_size`` or an ``on_error`` that ``remember_many`` does not take."""
    if on_error not in ("abort", "skip"):
        raise InvalidInput(f'on_error must be "abort" or "skip", not {on_error!r}.')
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or not 1 <= batch_size <= 100_000:
        raise InvalidInput(f"batch_size must be a whole number from 1 to 100000, not {shown(batch_size)}.")


def batches(items: Iterator[tuple[int, Any]], size: int) -> Iterator[list[tuple[int, Any]]]:
    """Yield batches of ``size`` pairs (position, item); batches of long texts hold fewer."""
    batch: list[tuple[int, Any]] = []
    chars = 0
    for index, item in items:
        batch.append((index, item))
        text = item.get("text") if isinstance(item, Mapping) else None
        chars += len(text) if isinstance(text, str) else 0
        if len(batch) == size or chars >= _MOST_BATCH_CHARS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch
