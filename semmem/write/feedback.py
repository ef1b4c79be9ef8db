"""Record judgments of people and agents about the memories of logged recalls; no ranking changes."""

from __future__ import annotations

from collections.abc import Sequence

from semmem.model.errors import InvalidInput, NotFound
from semmem.model.filters import person, string, strings
from semmem.model.recall_log import LoggedRecall
from semmem.model.store import RecallStore

__all__ = ["judge", "unknown_recall"]


def unknown_recall(id: str, namespaces: Sequence[str]) -> NotFound:
    """Return the error for a recall that is not in the log of these namespaces."""
    return NotFound(
        f"There is no recall {id!r} in the log of {', '.join(map(repr, namespaces))}; recalls are logged if the "
        "setting recall_log is on, for keep_recall_log_days."
    )


def judge(
    life: RecallStore,
    recall_id: str,
    useful: Sequence[str],
    not_useful: Sequence[str],
    namespaces: str | Sequence[str],
    made_by: str | None,
) -> int:
    """Record which memories were useful for a logged recall; return the number of recorded judgments.

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
        raise unknown_recall(id, names)
    judged = {(_home(one, names, logged), one): answer == "useful" for answer, ids in answers.items() for one in ids}
    missing = sorted(life.judge(id, judged, who))
    if missing:
        namespace, first = missing[0]
        raise NotFound(f"There is no memory {first!r} in namespace {namespace!r}; no judgment was stored.")
    return len(judged)


def _home(id: str, names: Sequence[str], logged: Sequence[LoggedRecall]) -> str:
    """Return the first of ``names`` in whose row of the recall ``id`` stands, else the first one that was asked."""
    rows = sorted(logged, key=lambda row: names.index(row.namespaces[0]))
    return next((row for row in rows if any(hit.id == id for hit in row.hits)), rows[0]).namespaces[0]
