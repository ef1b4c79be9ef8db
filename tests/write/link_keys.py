"""The links of a memory, as comparable keys."""

from __future__ import annotations

import semmem


def links(mem: semmem.Semmem, id: str, space: str) -> set[tuple[str, str, str]]:
    return {link.key for link in mem.links(id, namespace=space)}
