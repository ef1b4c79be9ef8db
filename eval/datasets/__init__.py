"""Data sets: one loader for each format. ``load(path)`` recognises the format; add formats to ``FORMATS``.

A format is a module with ``NAME``, ``recognises(path) -> bool`` and ``load(path, **options) -> Corpus``.
No text of any set is part of this project, except those in ``eval/data``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from eval.datasets import beir, folder, hipporag, locomo, longmemeval, own
from eval.datasets.corpus import Corpus, DatasetError, Query
from eval.datasets.known_questions import shared_with

__all__ = [
    "FORMATS",
    "KNOWN_SHA256",
    "SEALED",
    "Corpus",
    "DatasetError",
    "Query",
    "data_root",
    "is_known_copy",
    "load",
    "refuse_sealed",
    "shared_with",
]

# Asked in this order: the special forms of a folder before the plain one.
FORMATS: Mapping[str, ModuleType] = {m.NAME: m for m in (longmemeval, locomo, beir, folder, hipporag, own)}

KNOWN_SHA256: Mapping[str, str] = {
    "agentnotes_a": "8f1deef4cdb691b414c3e2d32845992380b3c42d0ddf82b6ff6d061fa932836b",
    "hotpotqa100": "ff3ce210551f10bcd9c2d0311b0639e0196dfa54003de52bfb3f0e301a0e9454",
    "locomo3": "de28d3d9dbf5beaa0216c64cdff79b293942de0d7d201067dbf654fc5747239b",
    "locomo3.json": "27b443bf293ec20ac4954a31168e9073126d984e1504bc1964407230735a0d06",
    "longmemeval_mini": "52a04b3039296884d8bc91a94a5f5d9a567d6580ea8c7c03d374b5399c4caad1",
    "musique100": "2f02f810714ec53453c75cde6e7c8b74b1150e84e4815473053621e392a54b79",
    "vaswani": "4d5e8e0e66b43886de7e9d987b14cd5565a6f1308b1efadf6e6841f28c536ff0",
}
"""sha256 of the files of a set, concatenated in the order its loader reads them, by the name of its folder or file."""

SEALED: Mapping[str, str] = {
    "helpdesk": "9abe7e02a56e0fb7af0a20e39d935afac96ae1a418e30543e2633017377bbeb9",
    "family": "7d2396c1307980537185e3564206cc0209939b7f739745a4d8611ffabd0e16f8",
}
"""Sets in this repository whose sha256 was written down before a recipe was first asked (ADR 0072)."""


def data_root() -> Path:
    """Return where evaluation data lie: ``SEMMEM_EVAL_DATA``, else ``shared/data`` beside the repository."""
    if folder := os.environ.get("SEMMEM_EVAL_DATA"):
        return Path(folder)
    return Path(__file__).resolve().parents[3] / "shared" / "data"


def load(
    path: str | Path, *, format: str | None = None, sha256: str | None = None, sealed: bool = False, **options: Any
) -> Corpus:
    """Load the data set at ``path``, or of that name under ``data_root()`` when there is no such path.

    ``format`` names one of ``FORMATS``; without it the first that recognises the path is taken. ``sha256`` is
    checked when given. ``options`` go to the loader. Raises DatasetError with one sentence, also for a sealed set
    unless ``sealed``: whoever asks it counts the look.
    """
    place = Path(path)
    if not place.exists() and not place.is_absolute() and (data_root() / place).exists():
        place = data_root() / place
    if not place.exists():
        raise DatasetError(f"There is no data set at {path}; pass its path, or set SEMMEM_EVAL_DATA to where sets lie.")
    place = place.resolve()
    if format is None:
        format = next((name for name, module in FORMATS.items() if module.recognises(place)), None)
        if format is None:
            raise DatasetError(
                f"{path} has the form of no known data set ({', '.join(sorted(FORMATS))}); {folder.advice(place)}."
            )
    elif format not in FORMATS:
        raise DatasetError(f"There is no format {format!r}; choose one of {', '.join(sorted(FORMATS))}.")
    corpus: Corpus = FORMATS[format].load(place, **options)
    if sha256 is not None and sha256 != corpus.sha256:
        raise DatasetError(f"{path} has the sha256 {corpus.sha256}, not {sha256}; fetch the file again.")
    if not sealed:
        refuse_sealed(Path(path), corpus.queries)
    return corpus


def refuse_sealed(path: Path, queries: Sequence[Query]) -> None:
    """Raise DatasetError for a sealed set, or questions of one: a look that is not counted would tell about it."""
    if shared := shared_with(queries, SEALED):
        name, count = shared
        raise DatasetError(
            f"{path} has {count} questions of {name}, which is sealed (ADR 0072), and each look at it is counted: "
            f"measure it by `python -m eval held-out eval/data --set {name}`."
        )


def is_known_copy(path: str | Path, corpus: Corpus) -> bool | None:
    """Tell whether ``corpus`` is byte for byte the set known under that name; None for a name that is not known."""
    sha256 = KNOWN_SHA256.get(Path(path).name)
    return None if sha256 is None else sha256 == corpus.sha256
