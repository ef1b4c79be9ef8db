"""Life: the verbs about what becomes of a memory after it was remembered. It wires the parts and holds no logic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from semmem.client.connection import Connection, legs_at
from semmem.model.errors import Conflict, InvalidInput, NotFound
from semmem.model.filters import at_time, shown_by, string, whole
from semmem.model.life import MADE_BY, Link, Version, checked_link
from semmem.model.store import LifeStore, life_of
from semmem.model.types import Memory, Undecided, masked
from semmem.read.explanation.absence import what_became
from semmem.read.recall import Recaller
from semmem.read.tracing import observed

__all__ = ["Life"]


class Life(Connection):
    """The versions and the links of memories."""

    @observed
    def history(
        self,
        id: str,
        *,
        namespace: str = "default",
        reveal: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> Sequence[Version]:
        """Return the versions of the memory ``id``, oldest first, the current one last. Raises NotFound.

        ``limit`` and ``offset`` return a page of them. The last ``keep_versions`` earlier versions of a memory are kept
        (a setting, 100). Each version says which fields it changed, when, and by whom if a name was given;
        ``version.diff(other)`` compares two versions. The versions of a forgotten memory are returned until it is gone
        for good.

        ``reveal`` shows the texts of sensitive versions: all versions up to the one that became sensitive. Without it,
        such a version does not say whether its text changed.
        """
        where, shown = string("namespace", namespace), shown_by(reveal)
        if limit is not None:
            whole("limit", limit, 1, 10_000, example=100)
        if isinstance(offset, bool) or not isinstance(offset, int) or not 0 <= offset < 2**31:
            raise InvalidInput(f"offset must be a whole number from 0, not {offset!r}.")
        life, id = self._life(), self._whole_id(namespace, id)
        versions = life.history(where, id, limit, offset)
        if not versions and not (offset and life.history(where, id, 1)):
            raise self._unknown(id, namespace)
        return [replace(one, memory=shown(one.memory), changed=_shown_changes(one, reveal)) for one in versions]

    @observed
    def forgotten(self, *, namespace: str = "default", limit: int = 100) -> Sequence[Version]:
        """Return the forgotten memories that ``restore_memory`` can bring back, the latest forgotten first.

        Each is the version that it was last, with ``forgotten_at`` and ``forgotten_by``. Raises InvalidInput.
        """
        whole("limit", limit, 1, 10_000, example=100)
        versions = self._life().all_forgotten(string("namespace", namespace), limit)
        return [replace(one, memory=masked(one.memory)) for one in versions]

    @observed
    def restore_memory(self, id: str, *, namespace: str = "default") -> Memory:
        """Bring the forgotten memory ``id`` back, and return it. Raises NotFound, Conflict.

        The memory comes back with its versions; its concepts and its vector are computed again. This works until
        ``maintain`` removes the memory, ``keep_forgotten_days`` after it was forgotten. A memory that was forgotten
        with ``hard``, or with its whole namespace, cannot be brought back.
        """
        where, name = namespace, self._whole_id(namespace, id)
        current = self.store.stored_memories([(where, name)])  # what has expired under this id is swept, with all of it
        forgotten = self._life().forgotten(where, name)
        if current:
            again = "it has been remembered anew since it was forgotten" if forgotten else "it is not forgotten"
            raise Conflict(f"There is a memory {id!r} in namespace {namespace!r}: {again}; nothing was changed.")
        if forgotten is None:
            raise NotFound(
                f"There is no forgotten memory {id!r} in namespace {namespace!r}: there was none, or it is gone."
            )
        from semmem.write.versions import restored

        embedder = None if self.store.vectors is None else self.store.vectors.embedder()
        return masked(self._ingest.restore(restored(forgotten, embedder, datetime.now(UTC))))

    def _version_at(self, namespace: str, id: str, as_of: Any) -> Memory:
        """Return the version of a memory that was valid at a time. Raises NotFound, InvalidInput."""
        at = at_time("as_of", as_of)
        version = self._life().version_at(namespace, id, at)
        if version is None:
            raise NotFound(
                f"No version of {id!r} in namespace {namespace!r} was valid at {at.isoformat()}; see its history."
            )
        return version

    @contextmanager
    def _recaller_at(self, namespaces: Sequence[str], as_of: Any) -> Iterator[Recaller]:
        """Give the recaller that reads the versions that were valid at a time. Raises InvalidInput."""
        from semmem.stores.past import past

        store, earlier = past(self.store, namespaces, at_time("as_of", as_of))
        language = self._recaller.language
        legs = legs_at(store, earlier, self._legs, language)
        reader = Recaller(
            store, legs, self._encoder.embedder_or_reason, language, self._encoder.renewed,
            load_reranker=self._recaller.load_reranker,
        )  # fmt: skip
        try:
            yield reader
        finally:
            reader.close()

    def _life(self) -> LifeStore:
        """Return where the versions, links and changes are. Raises InvalidInput for a store that keeps none."""
        return life_of(self.store)

    @observed
    def link(self, id: str, type: str, to: str, *, namespace: str = "default", made_by: str | None = None) -> Link:
        """Link the memory ``id`` to the memory ``to``, and return the link; an existing one stays as it is.

        ``type`` is ``supersedes`` (``id`` is the newer memory), ``resolved-by``, ``part-of``, ``see-also`` or
        ``contradicts``. In a recall, the newest superseding memory takes the place of the memory that it supersedes;
        the superseded one moves down, and its hit names the newer one in ``superseded_by``. Older near-duplicates of
        the superseded one, as semmem has linked them, fall with it; ``unlink`` undoes that. Raises NotFound for an
        unknown id. Raises InvalidInput for an unknown type, a link to itself, a circle of ``supersedes``, and a chain
        of more than 10 of them.
        """
        from semmem.write.likeness import fall_with

        row = self._link(id, type, to, namespace, made_by)
        (link,) = self._life().link(row.namespace, [row])
        if more := fall_with(self.store, link):
            self._life().link(row.namespace, more, skip=True)
        return link

    @observed
    def unlink(self, id: str, type: str, to: str, *, namespace: str = "default") -> bool:
        """Remove a link; return whether there was one. Raises NotFound for an unknown id, InvalidInput."""
        from semmem.write.likeness import fall_with

        row = self._link(id, type, to, namespace)
        fallen = fall_with(self.store, row)
        was_linked = self._life().unlink(row.namespace, row.from_id, row.type, row.to_id)
        if was_linked and fallen:
            self._unlink_ours(fallen)
        if not was_linked:
            self._check_stored(row.from_id, row.namespace)
            self._check_stored(row.to_id, row.namespace)
        return was_linked

    def _unlink_ours(self, links: Sequence[Link]) -> None:
        """Remove those of some links from one memory that semmem made."""
        stored = self._life().links(links[0].namespace, [links[0].from_id])
        ours = {(one.type, one.to_id) for one in stored if one.made_by == MADE_BY}
        for one in links:
            if (one.type, one.to_id) in ours:
                self._life().unlink(one.namespace, one.from_id, one.type, one.to_id)

    @observed
    def links(self, id: str, *, namespace: str = "default") -> Sequence[Link]:
        """Return the links from and to a memory. Raises NotFound for an unknown id."""
        id = self._whole_id(namespace, id)
        links = self._life().links(namespace, [id])
        if not links:
            self._check_stored(id, namespace)
        return links

    @observed
    def contradictions(self, *, namespace: str = "default", limit: int = 100) -> Sequence[Link]:
        """Return the contradictions that wait for a decision, newest first: links from a newer memory to an older one.

        A decision is a link ``supersedes`` between the two, in either direction, ``unlink`` where both hold, or
        ``forget``. Raises InvalidInput.
        """
        return self._undecided("contradicts", namespace, limit)

    @observed
    def near_duplicates(self, *, namespace: str = "default", limit: int = 100) -> Sequence[Link]:
        """Return the near-duplicates that wait for a decision, newest first: links from a newer memory to an older one.

        semmem made these links (see-also). A decision is a link ``supersedes`` between the two, ``unlink`` to keep
        both, or ``forget``. Raises InvalidInput.
        """
        return self._undecided("see-also", namespace, limit)

    def _undecided(self, type: Undecided, namespace: str, limit: int) -> Sequence[Link]:
        whole("limit", limit, 1, 10_000, example=100)
        return self._life().undecided(string("namespace", namespace), type, limit)

    def _link(self, id: str, type: str, to: str, namespace: str, made_by: str | None = None) -> Link:
        ends = self._whole_id(namespace, id), self._whole_id(namespace, to, "to")
        return checked_link(namespace, ends[0], type, ends[1], made_by)

    def _check_stored(self, id: str, namespace: str) -> None:
        if not self.store.get(namespace, [id]):
            raise self._unknown(id, namespace)

    def _unknown(self, id: str, namespace: str) -> NotFound:
        became = what_became(self.store, namespace, id)
        return NotFound(
            became or f"There is no memory {id!r} in namespace {namespace!r}; `semmem list` shows what is stored."
        )


def _shown_changes(version: Version, reveal: bool) -> tuple[str, ...]:
    """Return the fields that a version changed, without a text that is not shown."""
    hidden = version.memory.sensitive and not reveal
    return tuple(name for name in version.changed if not (hidden and name == "text"))
