"""A leg that finds memories by regular expressions: every /pattern/ of a question, in title or text, in any case.

A question without a pattern matches nothing, so the leg can stand beside the others in every recipe.
"""

from __future__ import annotations

import re

from semmem.model.errors import LegFailed
from semmem.model.filters import Within
from semmem.model.search import Found, Reader, Result

_PATTERN = re.compile(r"/((?:[^/\\\s]|\\.)(?:[^/\\]|\\.)*)/")
_LONGEST = 200


class RegexLeg:
    """Ranks by how many matches of the question's patterns a memory has; all patterns must match."""

    name = "regex"
    witness = (r"which crate is marked /[YZ]Q-\d{4}/", "ZQ-4071 stands behind the yellow door.")

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def search(self, query: str, *, limit: int = 10, offset: int = 0, filters: Within | None = None) -> Found:
        """Return results ``offset`` to ``offset + limit`` of the memories that match, and how many do."""
        patterns = [_compiled(raw) for raw in _PATTERN.findall(query)]
        if not patterns:
            return [], 0
        counted = []
        for memory in self.reader.memories(filters or Within()):
            places = [list(p.finditer(f"{memory.title or ''}\n{memory.text}")) for p in patterns]
            if all(places):
                counted.append((sum(map(len, places)), memory, places[0][0].group()))
        counted.sort(key=lambda found: (-found[0], found[1].id, found[1].namespace))
        most = counted[0][0] if counted else 1
        results = [
            Result(
                m.id,
                count / most,
                title=m.title,
                source=m.source,
                snippet=first,
                type="part" if m.parent_id else "memory",
                namespace=m.namespace,
            )
            for count, m, first in counted[offset : offset + limit]
        ]
        return results, len(counted)


def _compiled(raw: str) -> re.Pattern[str]:
    """Compile a pattern. Raises LegFailed with the reason, which then stands in what is degraded."""
    if len(raw) > _LONGEST:
        raise LegFailed(f"A pattern has {len(raw)} characters; at most {_LONGEST} are searched for.")
    try:
        return re.compile(raw, re.IGNORECASE)
    except re.error as error:
        raise LegFailed(f"/{raw}/ is no regular expression: {error}.") from None
