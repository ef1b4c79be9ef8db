"""Expected numbers, re-measured: a metric below what is written down, by more than its tolerance, fails."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.datasets import DatasetError

__all__ = ["EXPECTED", "Checked", "Expected", "check", "expectations", "rewritten"]

EXPECTED = Path(__file__).resolve().parents[2] / "expected.toml"


@dataclass(frozen=True, slots=True)
class Expected:
    """One line of ``expected.toml``: ``recipe`` on ``data`` gives at least ``value - tolerance`` of ``metric``.

    With ``less`` it is so much more than that other condition gives: what a leg, or an edge, is worth.
    """

    data: str
    recipe: str
    embedder: str
    metric: str
    value: float
    tolerance: float
    group: str = "headline"
    less: str | None = None

    @property
    def conditions(self) -> tuple[str, ...]:
        """What has to be measured for it."""
        return (self.recipe,) if self.less is None else (self.recipe, self.less)

    def of(self, measures: Mapping[str, Mapping[str, Mapping[str, float]]]) -> float:
        """Return what was measured, from ``measures`` (condition to group to metric)."""
        value = measures[self.recipe][self.group][self.metric]
        return value if self.less is None else value - measures[self.less][self.group][self.metric]


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
    return [Checked(e, e.of(measures)) for e in expected]


def rewritten(text: str, checked: Sequence[Checked]) -> str:
    """Return the file's text with the measured values in place of the expected ones; all else stays as it is.

    Raises DatasetError when not every line was measured: half a file of new numbers would be of two versions.
    """
    pieces = re.split(r"(?m)^(value = .*)$", text)
    if len(pieces) // 2 != len(checked):
        raise DatasetError(f"{len(checked)} of {len(pieces) // 2} numbers were measured; all data sets must be here.")
    by_row = {c.expected: c.measured for c in checked}
    values = [by_row[e] for e in (Expected(**row) for row in tomllib.loads(text)["expect"])]
    pieces[1::2] = [f"value = {value:.4f}" for value in values]
    return "".join(pieces)
