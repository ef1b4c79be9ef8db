"""The curve of confidence that was fitted on this machine to the cosines of an embedder, kept for its recalls.

``python -m eval confidence --keep`` writes it, a file in the data folder for each embedder, found by the name and the
fingerprint of the embedder: another model, or the same one with another prefix, does not use it. A process reads each
file once.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

from semmem.files import data_folder, keep_state, state
from semmem.model.errors import InvalidInput

__all__ = ["Curve", "FittedCurve", "keep", "kept"]

Curve: TypeAlias = "tuple[tuple[float, ...], float]"
"""The weight of each leg's match, by the names of the legs in order, and the constant."""

_LOG = logging.getLogger(__name__)
_LEGS = (("dense",), ("dense", "lexical"))
"""The sets of legs whose curve depends on the embedder; the lexical leg alone has no cosines."""


@dataclass(frozen=True, slots=True)
class FittedCurve:
    """The curves of confidence of an embedder by the legs that answer, and the floor for ``min_confidence="auto"``."""

    curves: Mapping[tuple[str, ...], Curve]
    floor: float


def keep(name: str, fingerprint: str, fitted: FittedCurve) -> Path:
    """Keep the curve of an embedder for the recalls of processes that begin from now on; return its file.

    Raises OSError where it cannot be written, InvalidInput for a user without a home folder.
    """
    file = _file(name, fingerprint)
    curves = {
        " + ".join(legs): dict(zip(legs, fitted.curves[legs][0], strict=True)) | {"constant": fitted.curves[legs][1]}
        for legs in _LEGS
    }
    keep_state(file, {"embedder": name, "fingerprint": fingerprint, "curves": curves, "floor": fitted.floor})
    kept.cache_clear()
    return file


@lru_cache(maxsize=16)
def kept(name: str, fingerprint: str) -> FittedCurve | None:
    """Return the curve that was fitted to an embedder on this machine, None where none was or it cannot be read."""
    with suppress(InvalidInput):  # a user without a home folder has none
        file = _file(name, fingerprint)
        if os.path.lexists(file):
            try:
                return _read(state(file), name, fingerprint)
            except (KeyError, TypeError, ValueError, AttributeError):
                _LOG.warning("%s holds no curve of confidence; fit it again: python -m eval confidence --keep", file)
    return None


def _read(values: Mapping[str, Any], name: str, fingerprint: str) -> FittedCurve:
    if (values["embedder"], values["fingerprint"]) != (name, fingerprint):
        raise ValueError("It is the curve of another embedder.")
    curves: dict[tuple[str, ...], Curve] = {}
    for legs in _LEGS:
        numbers = values["curves"][" + ".join(legs)]
        curves[legs] = tuple(_number(numbers[leg]) for leg in legs), _number(numbers["constant"])
    floor = _number(values["floor"])
    if not 0 <= floor <= 1:
        raise ValueError(floor)
    return FittedCurve(curves, floor)


def _number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(value)
    return number


def _file(name: str, fingerprint: str) -> Path:
    digest = blake2b(f"{name}\x1f{fingerprint}".encode(), digest_size=12).hexdigest()
    return data_folder() / "confidence" / f"{digest}.json"
