"""Read CSV tables: one memory per row; columns by a map, by remember's argument names, or as metadata."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from semmem.importers import BadRow, Reject, moment, opened, refuse
from semmem.model import field_kinds, memory_fields
from semmem.model.errors import InvalidInput
from semmem.model.imported_items import Item, RowError, item

__all__ = ["FIELDS", "column_map", "read"]

FIELDS = ("text", "id", "namespace", *(name for name in memory_fields.Fields.__annotations__ if name != "vector"))
"""The fields that a column can fill; a header of that name, in any case, fills the field."""
_DELIMITERS = ",;\t|"
_SEPARATED = re.compile(r"(?s)(.+):([^\w\s]{1,3}|\s)\Z")
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_LONGEST_CELL = 20_000_000
_SAMPLE = 65_536


def column_map(arguments: Sequence[str]) -> dict[str, tuple[str, str | None]]:
    """Return {field: (header, separator)} from ``text=Body`` and ``tags=Labels:;``. Raises InvalidInput."""
    columns: dict[str, tuple[str, str | None]] = {}
    for one in arguments:
        name, mark, header = one.partition("=")
        if not mark or not header or name not in FIELDS:
            raise InvalidInput(f"--column takes FIELD=HEADER with a field of {', '.join(FIELDS)}, not {one!r}.")
        if name in columns:
            raise InvalidInput(f"--column names {name} twice; a memory has it once.")
        apart = _SEPARATED.match(header) if name == "tags" else None
        columns[name] = (apart[1], apart[2]) if apart else (header, None)
    return columns


def read(
    path: Path,
    *,
    reject: Reject | None = None,
    columns: Mapping[str, tuple[str, str | None]] | None = None,
    delimiter: str | None = None,
    drop_others: bool = False,
) -> Iterator[Item]:
    """Yield one item per row; ``where`` is the line of the file on which the row begins.

    ``columns`` maps a field to (header, separator of tags, else "," and ";"). Other columns go to metadata unchanged,
    or are dropped with ``drop_others``. A row without an id gets one made from its content, so reading the row again
    changes nothing; a row that is sensitive, or becomes so by the setting credentials, needs an id. With
    ``delimiter=None`` the delimiter is found from the header. An invalid row goes to ``reject``; without ``reject`` it
    raises BadItem. Raises InvalidInput for a file without the needed columns.
    """
    report = reject or refuse
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
    with TextIOWrapper(opened(path), encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        sample = file.read(_SAMPLE)
        file.seek(0)
        rows = csv.reader(file, delimiter=delimiter or _delimiter(sample), strict=True)
        header: list[str] = []
        places: dict[str, int] = {}
        separator: str | None = None
        for line, row in _rows(rows, report):
            if not header:
                header = [name.strip() or f"column {number}" for number, name in enumerate(row, 1)]
                places, separator = _places(path, header, columns or {})
                continue
            where = f"line {line}"
            try:
                yield _item(where, row, header, places, separator, drop_others, path.stem)
            except RowError as error:
                report(BadRow(where, str(error)))
    if not header:
        raise InvalidInput(f"{path} is empty; a table begins with a line of headers.")


def _rows(rows: Any, reject: Reject) -> Iterator[tuple[int, list[str]]]:
    """Yield (line on which it begins, cells) for each row that is not blank."""
    while True:
        line = rows.line_num + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            reason = str(error).rstrip(".")
            if rows.line_num > line:
                one = f"it is not CSV ({reason}), and all of it is left out; is there a quote too many or too few?"
                reject(BadRow(f"lines {line} to {rows.line_num}", one))
            else:
                reject(BadRow(f"line {line}", f"it is not CSV ({reason})."))
            continue
        if any(cell.strip() for cell in row):
            yield line, row


def _delimiter(sample: str) -> str:
    """Return the delimiter of the header line: the sniffer's, else its most frequent character, else a comma."""
    first = next((line for line in sample.splitlines() if line.strip()), "")
    try:
        return csv.Sniffer().sniff(first, _DELIMITERS).delimiter
    except csv.Error:
        return max(_DELIMITERS, key=first.count)


def _places(
    path: Path, header: list[str], columns: Mapping[str, tuple[str, str | None]]
) -> tuple[dict[str, int], str | None]:
    """Return the column of each field, and the separator of tags."""
    for name in header:
        if header.count(name) > 1:
            raise InvalidInput(f"{path} has two columns {name!r}; give each a name of its own.")
    listed = ", ".join(" ".join(name.split()) for name in header)  # a header cell may hold several lines
    places: dict[str, int] = {}
    for field, (name, _) in columns.items():
        if name not in header:
            raise InvalidInput(f"{path} has no column {name!r} for {field}; its columns are {listed}.")
        places[field] = header.index(name)
    explicit = set(places.values())
    for place, name in enumerate(header):
        if name.lower() in FIELDS and place not in explicit:
            places.setdefault(name.lower(), place)
    if "text" not in places:
        raise InvalidInput(f"{path} has no column 'text'; its columns are {listed}. Say --column text=ONE_OF_THEM.")
    return places, columns["tags"][1] if "tags" in columns else None


def _item(
    where: str,
    row: list[str],
    header: list[str],
    places: Mapping[str, int],
    separator: str | None,
    drop_others: bool,
    stem: str,
) -> Item:
    if len(row) > len(header):
        raise RowError(f"it has {len(row)} cells and the header {len(header)}; is a quote or a delimiter missing?")
    if any("\udc80" <= sign <= "\udcff" for cell in row for sign in cell):
        raise RowError("it is not UTF-8; save the table as UTF-8.")
    cells = row + [""] * (len(header) - len(row))
    values = {field: cells[place] for field, place in places.items() if cells[place].strip()}
    if "text" not in values:
        raise RowError(f"its text ({' '.join(header[places['text']].split())}) is empty.")
    fields: dict[str, Any] = dict(values)
    others = {name: cells[place] for place, name in enumerate(header) if place not in places.values() and cells[place]}
    for name in FIELDS[3:]:
        read = _READERS.get(type(memory_fields.FIELDS[name].kind))
        fields[name] = values.get(name) if read is None else read(name, values.get(name))
    fields["metadata"] = {**(fields["metadata"] or {}), **({} if drop_others else others)} or None
    if separator and values.get("tags"):
        fields["tags"] = _tags("tags", values["tags"], separator)
    if "id" not in fields and fields["sensitive"]:
        raise RowError("it is sensitive and has no id, and an id made from its cells would reveal them; give it one.")
    if "id" in fields:
        return item(where, **fields)
    raw = json.dumps([header, cells]).encode()
    result = item(where, id=f"{stem}:{blake2b(raw, digest_size=8).hexdigest()}", **fields)
    result.id_of_content = True
    return result


def _object(name: str, cell: str | None) -> dict[str, Any]:
    try:
        value = json.loads(cell) if cell else {}
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise RowError(f"its {name} must be a JSON object, not {cell!r:.100}.")
    return value


def _tags(name: str, cell: str | None, separator: str | None = None) -> list[str] | None:
    parts = (cell or "").split(separator) if separator else re.split(r"[;,]", cell or "")
    return list(dict.fromkeys(filter(None, (part.strip() for part in parts)))) or None


def _whole(name: str, cell: str | None) -> int | None:
    try:
        return None if cell is None else int(cell)
    except ValueError:
        raise RowError(f"its {name} must be a whole number, not {cell!r:.100}.") from None


def _number(name: str, cell: str | None) -> float | None:
    try:
        return None if cell is None else float(cell)
    except ValueError:
        raise RowError(f"its {name} must be a number from 0 to 1, not {cell!r:.100}.") from None


def _flag(name: str, cell: str | None) -> bool | None:
    shown = None if cell is None else cell.strip().lower()
    if shown is not None and shown not in _FLAGS:
        raise RowError(f"its {name} must be true or false, yes or no, 1 or 0, not {cell!r:.100}.")
    return None if shown is None else _FLAGS[shown]


def _lasting(name: str, cell: str | None) -> float | str | None:
    """Return seconds as a number; a value with a unit is returned unchanged."""
    try:
        return None if cell is None else float(cell)
    except ValueError:
        return str(cell).strip()


def _time(name: str, cell: str | None) -> Any:
    return None if cell is None else moment(cell.strip())


_READERS: Mapping[type[field_kinds.Kind], Callable[[str, str | None], Any]] = {
    field_kinds.Json: _object,
    field_kinds.Tags: _tags,
    field_kinds.Whole: _whole,
    field_kinds.Share: _number,
    field_kinds.Time: _time,
    field_kinds.Switch: _flag,
    field_kinds.Duration: _lasting,
}
"""How the cell of a field is read; of other kinds as it stands."""
