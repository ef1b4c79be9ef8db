"""A folder of notes, written for a test."""

from __future__ import annotations

from pathlib import Path


def vault(folder: Path, **notes: str | bytes) -> Path:
    """Write notes; ``__`` in a name is a folder's end, and .md is added."""
    for name, text in notes.items():
        path = folder / f"{name.replace('__', '/')}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return folder
