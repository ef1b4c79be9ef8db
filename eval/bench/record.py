"""The record of a run of the benchmark: what it has measured so far, in a file of its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from eval.datasets import DatasetError
from semmem.files import new_file

__all__ = ["Record"]


class Record:
    """The rows that a run has measured so far, by name, in ``measured.json`` of its folder.

    ``kind`` names the rows there, such as ``sizes``; ``free`` is an option on which no number depends, and ``newer``
    has the options that older records lack, as these had them. Raises DatasetError for a folder with a run of another
    plan or kind, or with anything else in it.
    """

    def __init__(
        self,
        folder: Path,
        plan: Mapping[str, Any],
        kind: str,
        free: str = "",
        newer: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.file, self._plan, self._kind = folder / "measured.json", dict(plan), kind
        self.rows: dict[str, dict[str, Any]] = {}
        if self.file.exists():
            try:
                found = json.loads(self.file.read_text(encoding="utf-8"))
                other, self.rows = {**newer, **found["plan"]}, dict(found[kind])
            except (ValueError, TypeError, KeyError):
                raise DatasetError(f"{self.file} is no record of such a run; give another folder by --out.") from None
            if {**other, free: plan.get(free)} != {**plan, free: plan.get(free)}:
                raise DatasetError(f"{folder} holds a run with other options; give another folder by --out.")
        elif any(folder.iterdir()):
            raise DatasetError(f"{folder} holds other files; give a new or empty folder by --out.")
        self._write()

    def note(self, name: str, row: dict[str, Any]) -> None:
        """Keep a row, on the disk too; a run that is ended meanwhile leaves the record as it was."""
        self.rows[name] = row
        self._write()

    def _write(self) -> None:
        text = json.dumps({"plan": self._plan, self._kind: self.rows}, indent=1)
        with new_file(self.file, force=True) as file:
            file.write(text.encode())
