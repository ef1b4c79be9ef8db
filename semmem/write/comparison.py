"""Compare texts with others of their namespace: which contradict each other, and which are near-duplicates.

It opens nothing and depends on the texts alone, so workers of a bulk can do a share of it (``write.bulk``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from heapq import nlargest
from typing import Literal, NamedTuple, TypeAlias

from semmem.concepts.likeness import ALIKE, Outline, changed, may_be_alike, outlines, resemblance
from semmem.model.history import MADE_BY, Link
from semmem.model.types import LinkType

__all__ = ["MOST_ALIKE", "Group", "Links", "OnContradiction", "Text", "by_namespace", "compared"]

MOST_ALIKE = 3
"""The most links from one memory to older near-duplicates."""

OnContradiction: TypeAlias = Literal["report", "supersede", "ignore"]
Name: TypeAlias = tuple[str, str]
At: TypeAlias = tuple[float, int, int]


class Text(NamedTuple):  # which goes to a worker in a third of the time of a dataclass
    """A text to compare, and its place in time: when the text began, then the order of writing."""

    name: Name
    text: str
    title: str | None
    author: str | None
    at: At


Group: TypeAlias = tuple[Text, Sequence[Text]]
"""A text, and the others of its namespace that share keys with it."""
Links: TypeAlias = dict[tuple[Name, LinkType, Name], At]
"""Links from the newer text to the older one, each with the time of the newer one. Those of several shares of the
groups add up.
"""


def by_namespace(found: Links) -> dict[str, list[Link]]:
    """Return the links of each namespace, those of the oldest texts first."""
    links: dict[str, list[Link]] = defaultdict(list)
    for (namespace, newer), type, (_, older) in sorted(found, key=found.__getitem__):
        links[namespace].append(Link(namespace, newer, type, older, made_by=MADE_BY))
    return links


def compared(groups: Iterable[Group], policy: OnContradiction) -> Links:
    """Return the links between the text of each group and the others.

    Where a value changed several times, each text contradicts only the one just before it. A near-duplicate is linked
    with the MOST_ALIKE texts that are most similar to it.
    """
    outlines_by_name: dict[Name, list[Outline]] = {}
    verdicts: dict[tuple[Name, Name], bool] = {}
    found: Links = {}

    def outlined(one: Text) -> list[Outline]:
        if one.name not in outlines_by_name:
            outlines_by_name[one.name] = outlines(one.text, one.author)
        return outlines_by_name[one.name]

    def contradicts(newer: Text, older: Text) -> bool:
        pair = newer.name, older.name
        if pair not in verdicts:
            who = {"older_author": older.author, "newer_author": newer.author}
            same_subject = _of_one_title(newer, older)
            verdicts[pair] = same_subject and changed(outlined(older), outlined(newer), **who) is not None
        return verdicts[pair]

    for one, others in groups:
        alike: list[tuple[float, At, Text, Text]] = []
        for other in others:
            if other.name == one.name or not _of_one_title(one, other):
                continue
            older, newer = sorted((one, other), key=lambda text: text.at)
            if not contradicts(newer, older):
                if _of_one_length(older.text, newer.text) and may_be_alike(one.text, other.text):
                    share = resemblance(older.text, newer.text)
                    alike += [(share, other.at, newer, older)] if share >= ALIKE else []
            elif not any(older.at < text.at < newer.at and contradicts(text, older) for text in others):
                found[newer.name, "contradicts", older.name] = newer.at
                if policy == "supersede":
                    found[newer.name, "supersedes", older.name] = newer.at
        for _, _, newer, older in nlargest(MOST_ALIKE, alike, key=lambda pair: pair[:2]):
            found[newer.name, "see-also", older.name] = newer.at
    return found


def _of_one_title(one: Text, other: Text) -> bool:
    """Return whether two texts may have the same subject: texts with different titles have not."""
    return not (one.title and other.title and one.title != other.title)


def _of_one_length(one: str, other: str) -> bool:
    """Return whether two texts may be near-duplicates: the shorter one has more than half the length of the longer."""
    return 2 * min(len(one), len(other)) > max(len(one), len(other))
