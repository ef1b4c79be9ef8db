"""Read the file of the reference MCP memory server: JSON lines of entities with observations, and of relations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from semmem.importers import BadRow, Reject, lines, refuse
from semmem.model.imported_items import Item, RowError, item

__all__ = ["items_of", "read"]


def read(path: Path, *, reject: Reject | None = None) -> Iterator[Item]:
    """Yield an item for each observation, titled with its entity and tagged with its type, and for each relation.

    An entity without observations becomes one memory of its name and type. Ids are made from the content, so a file
    that has grown adds only its new lines. An invalid line goes to ``reject``; without ``reject`` it raises BadItem.
    """
    report = reject or refuse
    for where, row in lines(path, report):
        try:
            yield from items_of(where, row, report)
        except RowError as error:
            report(BadRow(where, str(error)))


def items_of(where: str, row: Any, report: Reject = refuse) -> Iterator[Item]:
    """Yield the items of one row of the file. Raises RowError for an invalid row; see ``read``."""
    kind = row.get("type") if isinstance(row, Mapping) else None
    if kind == "entity":
        name, what = _string(row, "name"), row.get("entityType")
        what = what.strip() if isinstance(what, str) else ""
        observations = row.get("observations") or []
        if not isinstance(observations, list):
            raise RowError(f"its observations are {type(observations).__name__}, not a list.")
        shared: dict[str, Any] = {
            "title": _readable(name),
            "tags": [what] if what else None,
            "metadata": {"entity": name},
        }
        if not observations:
            yield item(where, id=name, text=f"{_readable(name)}: {_readable(what)}" if what else name, **shared)
        for number, observation in enumerate(observations, 1):
            if isinstance(observation, str) and observation.strip():
                result = item(where, id=f"{name}:{_hash(observation)}", text=observation, **shared)
                result.id_of_content = True
                yield result
            else:
                report(BadRow(f"{where}, observation {number}", "it holds no text."))
    elif kind == "relation":
        one, other, tie = (_string(row, name) for name in ("from", "to", "relationType"))
        yield item(
            where,
            id=f"{one}|{tie}|{other}",
            text=f"{_readable(one)} {_readable(tie)} {_readable(other)}",
            metadata={"relation": {"from": one, "to": other, "type": tie}},
        )
    else:
        raise RowError('it is not an object with "type" entity or relation.')


def _string(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise RowError(f"its {name!r} is no name.")
    return value


def _readable(name: str) -> str:
    """Return a name in words: Petra_Lindqvist and worksAt become Petra Lindqvist and works at."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ") if " " not in name else name


def _hash(text: str) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=6).hexdigest()
