"""Which code made a thing that is kept: lists and stores of another version of semmem must not pass for this one's."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import semmem

__all__ = ["WRITES", "fingerprint"]

WRITES = ("extractors", "embedders", "stores", "ingest.py", "stop_words.py", "text.py", "tokens.py")
"""The parts of semmem that decide what a store holds."""


def fingerprint(*parts: str) -> str:
    """Return a short hash of semmem's source, or of the named files and folders of it."""
    root = Path(semmem.__file__).parent
    chosen = [root / part for part in parts] or [root]
    files = {f for at in chosen for f in ([at] if at.is_file() else [*at.rglob("*.py"), *at.rglob("*.sql")])}
    total = blake2b(digest_size=4)
    for path in sorted(files):
        total.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return total.hexdigest()
