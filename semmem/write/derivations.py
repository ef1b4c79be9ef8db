"""Make anew what an older splitter, likeness or extractor made of memories that are stored; see adr/0043.

``maintain`` does it, some hundreds of memories at a time, while others read and write. Each step ends with a mark up to
where it came, so that an interrupted call goes on there and repeats one step at most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from semmem.extractors import Rules
from semmem.model.exchange import DerivationVersion
from semmem.model.history import Made, PendingComparison
from semmem.model.protocols import Embedder, Extractor
from semmem.model.reports import Rebuilt
from semmem.model.store import Store, VersionStore
from semmem.model.store.derivations import Span, made_again, spans, stale
from semmem.text.tokens import LANGUAGES
from semmem.write.ingest import MAX_CHARS, Ingest, derivation_now
from semmem.write.items import Draft, parts_of
from semmem.write.rebuild import extracted

__all__ = ["Renewal", "count_stale", "mark_extracted"]

AT_ONCE = 200
"""The most memories that one step makes anew."""


def _stale(
    store: Store, life: VersionStore, extractor: Extractor, namespace: str | None = None
) -> Sequence[tuple[str, Span, frozenset[str]]]:
    """Return (namespace, span, what of it is stale), of one namespace or of all, ascending."""
    now = derivation_now(extractor)
    each = life.derivations(namespace).items()
    found = [(name, span) for name, (last, marks) in each for span in spans(marks, last)]
    found = [(name, span) for name, span in found if stale(span.derivation, now)]
    spoken = store.languages() if found else {}
    stale_spans = [(name, span, stale(span.derivation, _now_in(extractor, spoken.get(name)))) for name, span in found]
    return [one for one in stale_spans if one[2]]


def _now_in(extractor: Extractor, language: str | None) -> DerivationVersion:
    """Return the derivation version of writes in a namespace of ``language``, on which the version of rules depends."""
    if type(extractor) is Rules and language in LANGUAGES:
        extractor = Rules(language)
    return derivation_now(extractor)


def count_stale(store: Store, extractor: Extractor, namespace: str | None = None) -> int:
    """Return how many memories an older version made, in one namespace or in all."""
    if (life := store.life) is None:
        return 0
    stale_spans = _stale(store, life, extractor, namespace)
    return sum(life.count_made(name, span.after, span.upto) for name, span, _ in stale_spans)


def mark_extracted(store: Store, extractor: Extractor, work: Callable[[], Rebuilt]) -> Rebuilt:
    """Do ``work``, which extracts all memories again, and record that this extractor has made their concepts."""
    life, now = store.life, derivation_now(extractor)
    before = {} if life is None else life.derivations()
    report = work()
    for namespace, (last, marks) in before.items():
        for span in spans(marks, last):
            derivation = span.derivation._replace(extractor=now.extractor, version=now.version)
            if life is not None and span.derivation.extractor and derivation != span.derivation:
                life.mark_made(namespace, span._replace(derivation=derivation))
    return report


class Renewal:
    """Makes anew what is stale in a store, with the splitter, likeness and extractor of this process."""

    def __init__(
        self,
        store: Store,
        ingest: Ingest,
        extractor: Extractor,
        embedder: Callable[[], Embedder | str],
        language: str = "english",
    ) -> None:
        self._store = store
        self._ingest = ingest
        self._extractor = extractor
        self._embedder = embedder
        self._language = language
        self._now = derivation_now(extractor)

    def maintain(self) -> dict[str, int]:
        """Return how many memories were ``rebuilt``, and how many are ``stale`` still, where not 0.

        Those of another language, those that the extractor cannot read, and those whose parts depend on an embedder
        that is not here stay as they are.
        """
        if (life := self._store.life) is None:
            return {}
        stale_spans = _stale(self._store, life, self._extractor)
        spoken = self._store.languages() if stale_spans else {}
        rebuilt = 0
        for namespace, span, what in stale_spans:
            if spoken.get(namespace, self._language) == self._language:
                rebuilt += self._renewed(life, namespace, span, what)
        remaining = count_stale(self._store, self._extractor) if stale_spans else 0
        return {name: count for name, count in (("rebuilt", rebuilt), ("stale", remaining)) if count}

    def _renewed(self, life: VersionStore, namespace: str, span: Span, what: frozenset[str]) -> int:
        """Make the memories of one span anew; return how many."""
        count, after, derivation = 0, span.after, made_again(span.derivation, self._now)
        while rows := life.made_between(namespace, after, span.upto, AT_ONCE):
            if not self._step(life, namespace, rows, what):
                return count
            count += len(rows)
            life.mark_made(namespace, Span(after, rows[-1].row_id, derivation))
            after = rows[-1].row_id
        if after < span.upto:  # nothing is left there: who commits later records for itself what has made it
            life.mark_made(namespace, Span(after, span.upto, derivation))
        return count

    def _step(self, life: VersionStore, namespace: str, rows: Sequence[Made], what: frozenset[str]) -> bool:
        """Make some memories anew; return whether all of them could be."""
        cut: list[Draft] | None = self._cut(rows) if "splitter" in what else []
        if cut is None:
            return False
        if cut:
            self._ingest.make_anew(cut)
        written = {draft.memory.id for draft in cut}
        rest = [row for row in rows if row.memory.id not in written]
        if "extractor" in what and not self._reextract(namespace, [row_id for row in rest for row_id in row.row_ids]):
            return False
        if "likeness" in what:
            self._ingest.compare_anew(
                namespace, [PendingComparison(row.row_id, _began(row), row.memory) for row in rest]
            )
        return True

    def _cut(self, rows: Sequence[Made]) -> list[Draft] | None:
        """Return those memories that are cut in other places now; None where the embedder is not here to say so.

        A given vector stands for a whole text, which is not cut.
        """
        vector_store = self._store.vectors
        recorded = None if vector_store is None else vector_store.embedder()
        if recorded is not None and recorded["name"].startswith("external:"):
            return []
        embedder_or_reason = self._embedder()
        embedder = None if isinstance(embedder_or_reason, str) else embedder_or_reason
        if embedder is None and recorded is not None:
            return None
        drafts = []
        for row in rows:
            same: dict[str, Any] = {"replaces": row.memory, "replaced_payload": row.payload, "text_at": row.text_at}
            draft = Draft(0, row.memory, row.payload, None, frozenset(("id",)), **same)
            lengths = tuple(map(len, parts_of(draft, embedder, MAX_CHARS)))
            if (lengths if len(lengths) > 1 else ()) != row.lengths:
                drafts.append(draft)
        return drafts

    def _reextract(self, namespace: str, row_ids: Sequence[int]) -> bool:
        """Extract memories again; return whether all of them could be read."""
        memories = self._store.indexed_memories([namespace], row_ids)
        extractions = extracted(self._extractor, memories)
        self._store.reindex(namespace, extractions, language=self._language)
        return len(extractions) == len(memories)


def _began(row: Made) -> datetime:
    at = row.text_at or row.memory.created_at
    assert at is not None
    return at
