"""Use: what an agent does with what it recalled: read it in a prompt, say whether it was useful. It holds no logic."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from semmem.client.recall_log import RecallLog
from semmem.model.filters import at_time, string, strings
from semmem.model.keywords import FilterValues
from semmem.model.recipe import Recipe
from semmem.model.reports import Judgement
from semmem.model.store import life_of
from semmem.model.types import Filters, Memory, MinConfidence
from semmem.read.context import Context, check_budget, composed
from semmem.read.tracing import observed
from semmem.write.feedback import judge

if TYPE_CHECKING:
    from semmem.read.result import Recall

__all__ = ["Use"]

_MOST_PINNED = 1_000
"""Pinned memories that are read for one context; its budget has place for far fewer."""


class Use(RecallLog):
    """The verbs of an agent that uses what it recalled."""

    if TYPE_CHECKING:

        def _answered(self, query: str, namespace: str | Sequence[str], arguments: Mapping[str, Any]) -> Recall:
            """The facade's own."""
            ...

    @observed
    def context(
        self,
        query: str,
        *,
        namespace: str | Sequence[str] = "default",
        token_budget: int = 2000,
        limit: int = 20,
        recipe: str | Recipe | None = None,
        filters: Filters | FilterValues | Mapping[str, Any] | None = None,
        exclude: Sequence[str] = (),
        min_confidence: MinConfidence = 0.0,
        as_of: datetime | date | str | None = None,
        now: datetime | date | str | None = None,
    ) -> Context:
        """Return the memories that answer ``query`` as a block for a prompt, within ``token_budget``.

        Pinned memories of the namespaces come first, whatever the question and the filters are, within half of the
        budget; the most important come first, and of equal ones the newest. ``exclude`` keeps the memories with these
        ids out, pinned or not.

        The block stands between two tags and says that it is data. Each memory is one line of JSON with its id,
        namespace, author, times and text; no text can end the block. Memories are whole, best first; if a long one does
        not fit, its found passage is shown. ``left_out`` lists the memories without room. The other arguments are those
        of ``recall``; with ``as_of``, memories that are pinned now appear as they were then. Raises InvalidInput.
        """
        check_budget("token_budget", token_budget)
        arguments = {
            "limit": limit, "recipe": recipe, "filters": filters, "exclude": exclude, "min_confidence": min_confidence,
            "as_of": as_of, "now": now,
        }  # fmt: skip
        result = self._answered(query, namespace, arguments)
        at = None if as_of is None else at_time("as_of", as_of)
        pinned = self._pinned(result.candidates.scope.namespaces, frozenset(result.candidates.scope.exclude), at)
        block = composed(result, pinned, token_budget, self._short_of(result, pinned))
        return self._log_context(result, arguments, block) if self.settings.recall_log else block

    def _short_of(self, result: Recall, pinned: Sequence[Memory]) -> Mapping[tuple[str, str], str]:
        """Return the short ids of what a context may show."""
        names = {(one.namespace, one.id) for one in pinned}
        for hit in result.hits:
            names |= {(hit.namespace, id) for id in (hit.id, hit.superseded_by) if id is not None}
        return self._short_names(names)

    def _pinned(self, namespaces: Sequence[str], out: Collection[str], at: datetime | None) -> Sequence[Memory]:
        """Return the pinned memories of some namespaces, whole, in order, without the ids ``out``.

        None in a store that keeps no such thing.
        """
        all_names = self.store.life.pinned(namespaces, _MOST_PINNED) if self.store.life is not None else ()
        names = [name for name in all_names if name[1] not in out]
        if at is not None:
            then = [life_of(self.store).version_at(*name, at) for name in names]
            return [memory for memory in then if memory is not None and not memory.sensitive]
        whole = self.store.whole_memories(names) if names else {}
        return [whole[name][0] for name in names if name in whole]

    @observed
    def feedback(
        self,
        recall_id: str,
        *,
        useful: Sequence[str] = (),
        not_useful: Sequence[str] = (),
        namespace: str | Sequence[str] = "default",
        made_by: str | None = None,
    ) -> int:
        """Record which memories of a recall were useful and which were not; return how many judgments were stored.

        ``recall_id`` is the ``id`` of a recall; recalls have one if the setting ``recall_log`` is on. ``useful`` and
        ``not_useful`` are ids of memories in its namespaces, returned or not; a later judgment replaces an earlier one.
        Judgments are labels for ``python -m eval`` and change no ranking. Raises NotFound for an unknown recall or
        memory, InvalidInput.
        """
        names = strings("namespace", namespace)
        useful, not_useful = (
            self._whole_ids(names, strings(name, ids)) for name, ids in (("useful", useful), ("not_useful", not_useful))
        )
        id = self._whole_recall_id(names, recall_id)
        return judge(life_of(self.store), id, useful, not_useful, names, made_by)

    @observed
    def judgements(self, *, namespace: str = "default") -> Sequence[Judgement]:
        """Return the relevance judgments that ``feedback`` has stored in a namespace, oldest first.

        Their ``as_dict`` values, one a line, are a file of questions that ``python -m eval`` reads.
        """
        return life_of(self.store).judgements(string("namespace", namespace))

    def _with_accesses(self, namespace: str, memories: Sequence[Memory]) -> tuple[Memory, ...]:
        """Return memories of one namespace with how often recalls returned them, and when one last did."""
        if self.store.life is None:
            return tuple(memories)
        ids = [memory.id for memory in memories]
        stored, waiting = self.store.life.accesses(namespace, ids), self._accesses.waiting(namespace, ids)
        out = []
        for memory in memories:
            accesses = [access for of in (stored, waiting) if (access := of.get(memory.id)) is not None]
            last = max((access.last for access in accesses), default=None)
            out.append(replace(memory, access_count=sum(access.count for access in accesses), last_accessed=last))
        return tuple(out)
