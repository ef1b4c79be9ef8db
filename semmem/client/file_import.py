"""The file of another program, brought into a namespace: which memories are its own, and which rows were bad, where."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace as changed
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from semmem.client.memory import Semmem
from semmem.importers import FORMATS, BadRow, mark, owned, reader, told_apart
from semmem.model.errors import BadItem, Conflict, SemmemError
from semmem.model.imported_items import MARK, hashed
from semmem.write.screening import redacted, without_credentials
from semmem.write.sync import ImportReport

__all__ = ["FileImport", "numbered"]

_NUMBERED = re.compile(r"Item (\d+)(?: \(id .*?\))?: ", re.DOTALL)


def numbered(error: SemmemError) -> tuple[int, str] | None:
    """Return the position in an error of remember_many or import_items, and the reason behind it; None without one."""
    match = _NUMBERED.match(error.message)
    return None if match is None else (int(match[1]), error.message[match.end() :])


class FileImport:
    """One import of ``files`` of a format; ``options`` are those of its reader.

    What came of it: ``bad_rows``, rows that were imported in part, the namespaces of the memories, and how many
    ``credentials`` were taken out of their texts, which is done where ``redacts``.
    """

    def __init__(
        self, format: str, files: Sequence[Path], options: Mapping[str, Any], *, namespace: str, redacts: bool
    ) -> None:
        self._format = format
        self._row = FORMATS[format]
        self._files = files
        self._options = options
        self._namespace = namespace
        self._redacts = redacts and self._row.redacts
        self._wheres: list[str] = []
        self._keep: set[str] = set()
        self.bad_rows: list[BadRow] = []
        self.incomplete: list[BadRow] = []
        self.namespaces: set[str] = set()
        self.credentials = 0

    def run(
        self,
        mem: Semmem,
        *,
        on_error: Literal["abort", "skip"],
        batch_size: int,
        replace: bool,
        moved: bool,
        prune: bool,
        unowned: Callable[[], None],
        progress: Callable[[ImportReport], None],
    ) -> ImportReport:
        """Store the rows, and return the report. ``unowned`` is called where the memories may be another source's.

        Raises what reading and storing raise; an error of one row says where the row stands.
        """
        row, file = self._row, self._files[0]
        apart = told_apart(self._format, file, mem, self._namespace, replace=replace, moved=moved)
        own = owned(self._format, file, moved=moved, **apart)
        if row.whole and not own:
            unowned()
        marked = row.marked and (replace or self._format != "jsonl")
        try:
            report = mem.import_items(
                self._items(apart, self._note if on_error == "skip" else None),
                namespace=self._namespace,
                batch_size=batch_size,
                on_error=on_error,
                owned=own if replace or row.whole else None,
                replace=replace or bool(row.whole and own),
                overwrite=replace,
                prune=prune and bool(own),
                keep=self._keep,
                mark={MARK: mark(file, apart.get("name"))} if marked else None,
                progress=progress,
            )
        except (BadItem, Conflict) as error:
            if (place := numbered(error)) is None:
                raise
            position, reason = place
            raise type(error)(f"{self._wheres[position]}: {reason}") from error
        self.bad_rows += [BadRow(self._wheres[bad.position], bad.reason) for bad in report.rejected]
        return report if row.whole else changed(report, gone=())

    def _note(self, bad: BadRow) -> None:
        (self.incomplete if bad.imported else self.bad_rows).append(bad)
        self._keep.update([bad.id] if bad.id else [])

    def _items(self, apart: Mapping[str, Any], reject: Callable[[BadRow], None] | None) -> Iterator[Any]:
        """Yield the items of the files, and note where each stands."""
        read = reader(self._format)
        for one in chain.from_iterable(read(file, reject=reject, **self._options, **apart) for file in self._files):
            if self._redacts:
                one["text"], count = redacted(one["text"])
                one.update({name: without_credentials(one[name]) for name in ("title", "metadata") if name in one})
                self.credentials += count
            if self._row.whole and self._format != "markdown":  # which leaves a secret note without one
                hashed(one)
            self._wheres.append(one.where)
            own = one.get("namespace") or self._namespace
            self.namespaces.update([own] if isinstance(own, str) else [])
            yield one
