"""SQL as named text: a file holds statements, each opened by ``-- name --`` and a line that says why it exists."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

__all__ = ["migrations", "statements"]

_NAME = re.compile(r"^-- (\w+) --$", re.MULTILINE)


@cache
def statements(backend: str) -> Mapping[str, str]:
    """Return every statement of ``sql/{backend}/*.sql`` by name. Raises ValueError when a name is used twice."""
    found: dict[str, str] = {}
    folder = files("semmem.stores") / "sql" / backend
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        if not file.name.endswith(".sql"):
            continue
        pieces = _NAME.split(file.read_text(encoding="utf-8"))
        for name, body in zip(pieces[1::2], pieces[2::2], strict=True):
            if name in found:
                raise ValueError(f"The statement {name} is defined twice for {backend}.")
            found[name] = body.strip().rstrip(";")
    return MappingProxyType(found)


@cache
def migrations(backend: str) -> tuple[tuple[int, str, str], ...]:
    """Return (number, name, SQL) of every migration of ``backend``, in order from 1 without a gap."""
    folder = files("semmem.stores") / "sql" / backend / "migrations"
    found = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return tuple(
        (int(f.name.split("_", 1)[0]), f.name.removesuffix(".sql"), f.read_text(encoding="utf-8")) for f in found
    )
