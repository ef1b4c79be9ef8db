"""Turn what the command line names into files and a fusion."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from eval.datasets import DatasetError
from eval.foreign.compared import plain_fusion
from eval.systems.model import Fusion, load
from eval.systems.verdicts import with_weights
from semmem.model.errors import InvalidInput

__all__ = ["fusion_of", "named_paths"]


def named_paths(words: Sequence[str]) -> dict[str, Path]:
    """Return files by name: of ``NAME=FILE`` the name, else the file's own. Raises DatasetError for a repeated name."""
    out: dict[str, Path] = {}
    for word in words:
        name, equals, file = word.partition("=")
        path = Path(file if equals and not Path(word).exists() else word)
        name = name if equals and path == Path(file) else path.stem
        if not path.is_file():
            raise DatasetError(f"There is no file {path}; pass what a retriever returned.")
        if name in out:
            raise DatasetError(f"Two files have the name {name!r}; write NAME=FILE.")
        out[name] = path
    return out


def fusion_of(
    legs: Sequence[str], system: str | None, name: str | None, weights: str | None, constant: float | None
) -> Fusion:
    """Return the fusion of these legs: a system's, or reciprocal rank fusion. Raises InvalidInput and DatasetError."""
    numbers = _weights(weights)
    if system is None:
        if name is not None:
            raise InvalidInput("--fusion names one of a system's; add --system, or leave it out for rank fusion.")
        if constant is not None and not 0 <= constant < math.inf:
            raise InvalidInput(f"The rank constant is a number of 0 or more, such as 60, not {constant:g}.")
        return plain_fusion(legs, numbers, 60 if constant is None else constant)
    if constant is not None:
        raise InvalidInput("--constant is of rank fusion; a --system has its own, so leave one of the two out.")
    model = load(system)
    mine = [one for one in model.fusions if name in (None, one.name) and {leg.name for leg in one.legs} == set(legs)]
    if not mine:
        there = "; ".join(f"{one.name}: {', '.join(leg.name for leg in one.legs)}" for one in model.fusions)
        raise InvalidInput(
            f"{model.title} has no fusion {'of' if name is None else f'{name!r} of'} the legs {', '.join(legs)}; "
            f"its fusions and legs are {there}."
        )
    return with_weights(mine[0], numbers) if numbers else mine[0]


def _weights(words: str | None) -> list[float]:
    try:
        numbers = [float(part) for part in words.split(",")] if words else []
    except ValueError:
        raise InvalidInput(f"Weights are numbers with commas between them, such as .7,.3, not {words!r}.") from None
    if not all(0 <= number < math.inf for number in numbers):
        raise InvalidInput(f"Weights are numbers of 0 or more, such as .7,.3, not {words!r}.")
    return numbers
