"""An embedder that computes the vector of a text once, however many recipes, stores and runs ask for it.

There is one file of vectors for each model (its fingerprint is in the name). Each vector has the commit at which it was
made, so that a result says where its vectors are from, and their hash.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from eval.experiments.evidence.provenance import COMMIT
from semmem.config import Settings
from semmem.embedders import load
from semmem.model.errors import EmbedderUnavailable, MissingExtra

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from semmem.model.protocols import Embedder

__all__ = ["KeptVectors", "keeping"]

_AT_ONCE = 500
_LARGEST = 200_000


class KeptVectors:
    """An embedder that computes, by ``embedder``, only the vectors that are not in the SQLite file ``file`` yet.

    Without a file the vectors are in memory alone.
    """

    def __init__(self, embedder: Embedder, file: Path | None = None) -> None:
        self._embedder = embedder
        self.name, self.dimensions, self.max_tokens = embedder.name, embedder.dimensions, embedder.max_tokens
        self._lock = Lock()
        self._used: dict[bytes, tuple[bytes, str]] = {}
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(file or ":memory:", timeout=60, check_same_thread=False, isolation_level=None)
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS kept (text BLOB PRIMARY KEY, vector BLOB, made TEXT) WITHOUT ROWID"
        )

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the embedder's weights."""
        return self._embedder.fingerprint

    def count_tokens(self, text: str) -> int:
        """Return how many tokens ``text`` has for this model."""
        return self._embedder.count_tokens(text)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of shape (len(texts), dimensions)."""
        return self._kept(texts, self._embedder.embed, "")

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of questions, which are those of ``embed`` where the embedder makes no difference."""
        if (embed := getattr(self._embedder, "embed_questions", None)) is None:
            return self.embed(texts)
        return self._kept(texts, embed, "question\0")

    def _kept(self, texts: Sequence[str], embed: Callable[[Sequence[str]], Any], kind: str) -> NDArray[np.float32]:
        keys = [hashlib.sha256((kind + text).encode("utf-8", "surrogatepass")).digest() for text in texts]
        with self._lock:
            by_key = self._known_vectors(dict.fromkeys(keys))
            new = {key: text for key, text in zip(keys, texts, strict=True) if key not in by_key}
            if new:
                vectors = np.ascontiguousarray(embed(list(new.values())), dtype=np.float32)
                rows = [(key, vector.tobytes(), COMMIT or "") for key, vector in zip(new, vectors, strict=True)]
                self._db.executemany("INSERT OR IGNORE INTO kept VALUES (?, ?, ?)", rows)
                by_key |= {key: (vector, commit) for key, vector, commit in rows}
            if len(self._used) < _LARGEST:
                self._used |= by_key
        if not keys:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        return np.stack([np.frombuffer(by_key[key][0], dtype=np.float32) for key in keys])

    def _known_vectors(self, keys: dict[bytes, None]) -> dict[bytes, tuple[bytes, str]]:
        by_key = {key: self._used[key] for key in keys if key in self._used}
        rest = [key for key in keys if key not in by_key]
        for start in range(0, len(rest), _AT_ONCE):
            some = rest[start : start + _AT_ONCE]
            marks = ",".join("?" * len(some))
            rows = self._db.execute(f"SELECT text, vector, made FROM kept WHERE text IN ({marks})", some)  # noqa: S608
            by_key |= {key: (vector, commit) for key, vector, commit in rows}
        return by_key

    def origin(self) -> dict[str, Any]:
        """Return the model of the vectors used so far, how many were computed at which commit, and their sha256."""
        with self._lock:
            total = hashlib.sha256()
            for key in sorted(self._used):
                total.update(key + self._used[key][0])
            commits = Counter(commit for _, commit in self._used.values())
        return {
            "model": self.name,
            "fingerprint": self.fingerprint,
            "used": len(self._used),
            "made at": dict(sorted(commits.items())),
            "sha256": total.hexdigest(),
        }


def keeping(name: str | None, folder: Path | None = None) -> Embedder | str | None:
    """Return semmem's embedder ``name`` with a file of its vectors in ``folder``; ``name`` where semmem has none.

    With the name alone, semmem itself raises its error for a missing embedder.
    """
    if name == "none":
        return name
    try:
        embedder = load(name or "minilm", path=Settings.load().model)
    except (EmbedderUnavailable, MissingExtra):
        return name
    if folder is None:
        return KeptVectors(embedder)
    file_name = re.sub(r"[^\w.-]+", "_", f"{embedder.name}-{embedder.fingerprint[:16]}")
    return KeptVectors(embedder, folder / f"{file_name}.sqlite")
