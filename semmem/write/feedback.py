"""Log recalls, and record judgements of people and agents about the recalled memories; no ranking changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from semmem.model.errors import InvalidInput, NotFound
from semmem.model.filters import person, string, strings
from semmem.model.store import LifeStore
from semmem.write.access import is_logging
from semmem.write.items import uuid7

__all__ = ["judge", "note_recall"]


def note_recall(
    life: LifeStore, query: str, recipe: str, namespaces: Sequence[str], hits: Sequence[tuple[str, str]]
) -> str | None:
    """Log a recall and return its id, a UUIDv7; None inside an ``unlogged`` block.

    ``hits`` are (namespace, id) in the order of rank. Each namespace stores the question and its own hits.
    """
    if not is_logging():
        return None
    recall_id = uuid7()
    life.note_recall(recall_id, query, recipe, {name: [i for n, i in hits if n == name] for name in namespaces})
    return recall_id


def judge(
    life: LifeStore,
    recall_id: str,
    useful: Sequence[str],
    not_useful: Sequence[str],
    namespaces: str | Sequence[str],
    made_by: str | None,
) -> int:
    """Record which memories were useful for a logged recall; return the number of recorded judgements.

    An id means the memory in the first of ``namespaces`` that had it among its hits, else in the first one asked.
    Raises NotFound for an unknown recall or memory, and InvalidInput where nothing is judged or an id is judged in both
    ways; then nothing is recorded.
    """
    id, who = string("recall_id", recall_id), person("made_by", made_by)
    answers = {"useful": strings("useful", useful), "not_useful": strings("not_useful", not_useful)}
    both = sorted(set(answers["useful"]) & set(answers["not_useful"]))
    if both:
        raise InvalidInput(f"{both[0]!r} is in useful and in not_useful; name it in one of the two.")
    if not (answers["useful"] or answers["not_useful"]):
        raise InvalidInput("No memory is judged; pass ids as useful or as not_useful.")
    names = strings("namespace", namespaces)
    logged = life.recalled(names, id)
    if not logged:
        raise NotFound(
            f"There is no recall {id!r} in the log of {', '.join(map(repr, names))}; recalls are logged if the "
            "setting recall_log is on, for keep_recall_log_days."
        )
    judged = {(_home(one, names, logged), one): answer == "useful" for answer, ids in answers.items() for one in ids}
    missing = sorted(life.judge(id, judged, who))
    if missing:
        namespace, first = missing[0]
        raise NotFound(f"There is no memory {first!r} in namespace {namespace!r}; no judgment was stored.")
    return len(judged)


def _home(id: str, names: Sequence[str], logged: Mapping[str, Sequence[str]]) -> str:
    spaces = [name for name in names if name in logged]
    return next((name for name in spaces if id in logged[name]), spaces[0])
