"""Expected numbers, re-measured: a metric below what is written down, by more than its tolerance, fails."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.datasets import DatasetError

__all__ = ["EXPECTED", "Checked", "Expected", "check", "expectations"]

EXPECTED = Path(__file__).resolve().parent / "expected.toml"


@dataclass(frozen=True, slots=True)
class Expected:
    """One line of ``expected.toml``: ``recipe`` on ``data`` gives at least ``value - tolerance`` of ``metric``."""

    data: str
    recipe: str
    embedder: str
    metric: str
    value: float
    tolerance: float
    group: str = "headline"


@dataclass(frozen=True, slots=True)
class Checked:
    """What was expected, what was measured, and whether it may pass."""

    expected: Expected
    measured: float

    @property
    def ok(self) -> bool:
        """True unless the metric fell below what was expected by more than the tolerance."""
        return self.measured >= self.expected.value - self.expected.tolerance - 1e-12


def expectations(path: Path = EXPECTED) -> list[Expected]:
    """Read the file. Raises DatasetError with one sentence when it is absent or malformed."""
    try:
        rows = tomllib.loads(path.read_text(encoding="utf-8")).get("expect", [])
        return [Expected(**row) for row in rows]
    except FileNotFoundError:
        raise DatasetError(f"There is no file {path}; write the expected numbers there.") from None
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise DatasetError(f"{path} cannot be read: {error}.") from None


def check(expected: Sequence[Expected], measures: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[Checked]:
    """Compare ``measures`` (recipe to group to metric) of one corpus to what is expected of it."""
    return [Checked(e, measures[e.recipe][e.group][e.metric]) for e in expected]
