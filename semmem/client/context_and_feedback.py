"""What an agent does with what it recalled: read it in a prompt, and say whether it was useful."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from semmem.client.connection import Connection
from semmem.client.recall_log import log_context, whole_recall_id
from semmem.client.recalling import answered
from semmem.model.filters import at_time, strings
from semmem.model.store import life_of
from semmem.model.types import Memory, is_valid
from semmem.read.context import Context, check_budget, composed
from semmem.read.result import Recall
from semmem.write.feedback import judge

__all__ = ["context", "feedback", "pinned"]

_MOST_PINNED = 1_000
"""Pinned memories that are read for one context; its budget has place for far fewer."""


def context(
    mem: Connection, query: str, namespace: str | Sequence[str], token_budget: int, arguments: Mapping[str, Any]
) -> Context:
    """Return the memories that answer ``query`` as a block for a prompt; see ``Semmem.context``."""
    check_budget("token_budget", token_budget)
    result = answered(mem, query, namespace, arguments)
    at = None if arguments["as_of"] is None else at_time("as_of", arguments["as_of"])
    scope = result.candidates.scope
    memories = pinned(mem, scope.namespaces, frozenset(scope.exclude), at)
    superseded = result.superseded((one.namespace, one.id) for one in memories)
    block = composed(result, memories, token_budget, _short_of(mem, result, memories, superseded), superseded)
    return log_context(mem, result, arguments, block) if mem.settings.recall_log else block


def _short_of(
    mem: Connection, result: Recall, pinned: Sequence[Memory], superseded: Mapping[tuple[str, str], str]
) -> Mapping[tuple[str, str], str]:
    """Return the short ids of what a context may show."""
    names = {(one.namespace, one.id) for one in pinned}
    names |= {(namespace, newer) for (namespace, _), newer in superseded.items()}
    for hit in result.hits:
        names |= {(hit.namespace, id) for id in (hit.id, hit.superseded_by) if id is not None}
    return mem.short_names(names)


def pinned(mem: Connection, namespaces: Sequence[str], out: Collection[str], at: datetime | None) -> Sequence[Memory]:
    """Return the pinned memories of some namespaces that are valid, now or at a time, whole, in order.

    Those with the ids ``out`` are left out. None in a store that keeps no such thing.
    """
    all_names = mem.store.life.pinned(namespaces, _MOST_PINNED) if mem.store.life is not None else ()
    names = [name for name in all_names if name[1] not in out]
    if at is not None:
        then = [life_of(mem.store).version_at(*name, at) for name in names]
        return [memory for memory in then if memory is not None and not memory.sensitive]
    whole = mem.store.whole_memories(names) if names else {}
    found = [whole[name][0] for name in names if name in whole]
    now = datetime.now(UTC)
    return [memory for memory in found if is_valid(memory.valid_from, memory.valid_to, now)]


def feedback(
    mem: Connection,
    recall_id: str,
    useful: Sequence[str],
    not_useful: Sequence[str],
    namespace: str | Sequence[str],
    made_by: str | None,
) -> int:
    """Record which memories of a recall were useful and which were not; see ``Semmem.feedback``."""
    names = strings("namespace", namespace)
    useful, not_useful = (
        mem.whole_ids(names, strings(name, ids)) for name, ids in (("useful", useful), ("not_useful", not_useful))
    )
    id = whole_recall_id(mem.store, names, recall_id)
    return judge(life_of(mem.store), id, useful, not_useful, names, made_by)
