"""Items of a LangGraph store as memories: one record, and one memory for each text that is searched. Pure.

A record holds the value, a text memory what is at one indexed path of it. Both say in their metadata what they are, and
below which paths they lie, so that a prefix is a filter on an index. (Tags would be searched and embedded.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from heapq import heappop, heappush
from typing import Any

from langgraph.store.base import InvalidNamespaceError, Item, PutOp, SearchItem, get_text_at_path

from semmem.model.errors import InvalidInput
from semmem.model.metadata_filters import check_conditions
from semmem.model.types import Memory

__all__ = [
    "RECORD", "TEXT", "check", "check_expiry", "check_fields", "check_ttl", "expired", "item_of", "latest_first",
    "memories_of", "record_id", "refreshed", "searched_item", "texts_of", "within",
]  # fmt: skip

RECORD, TEXT = "record", "text"
_LONGEST_TTL = 525_960_000
"""Minutes of a thousand years."""
_NO_KEY = re.compile(r"[\x00-\x1f'\"\\;]")
"""LangGraph's stores refuse filters with such keys, which look like attacks on a database."""

_LONGEST_GIVEN = 400_000
"""Characters of the JSON of a value whose order of keys is kept; the order of a larger one is the database's."""

_EXPIRY = ("default_ttl", "refresh_on_read", "sweep_interval_minutes", "omit_expired")
"""What LangGraph's stores take as ``ttl``."""
Path = tuple[str, ...]


def record_id(path: Path, key: str) -> str:
    """Return the id of the record of ``key``."""
    return f"lg:{_hash([*path], key)}"


def within(kind: str, path: Path = (), value: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return the filter for the memories of a kind below ``path`` whose value contains ``value``."""
    below = {"below": {_hash([*path]): True}} if path else {}
    return {"metadata": {"langgraph": kind, **below, **({"value": dict(value)} if value else {}), **more}}


def _keys(value: Any) -> Iterator[str]:
    """Yield the keys of mappings, at any depth."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _keys(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _keys(inner)


def texts_of(value: Mapping[str, Any], fields: Sequence[str]) -> list[str]:
    """Return the texts at the paths ``fields`` of a value, those without a letter left out."""
    texts = [text for field in fields for text in get_text_at_path(value, field)]
    return [text for text in texts if text.strip()]


def check(op: Any) -> None:
    """Raise InvalidInput for an operation with an argument of a wrong type or out of range, before any is done.

    Raises InvalidNamespaceError for a namespace or a label that LangGraph's own stores refuse, and for a string in the
    place of a namespace, whose letters would be the labels.
    """
    for name in ("limit", "offset", "max_depth"):
        value = getattr(op, name, 0)
        missing = value is None and name == "max_depth"
        if not missing and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise InvalidInput(f"{name} must be a whole number from 0, not {value!r}.")
    check_ttl("ttl", getattr(op, "ttl", None))
    filters = getattr(op, "filter", None)
    if filters is not None and not isinstance(filters, Mapping):
        raise InvalidInput(f"filter must be a mapping, such as {{'kind': 'note'}}, not {type(filters).__name__}.")
    try:
        check_conditions(filters or {}, sign="$")
    except RecursionError:
        raise InvalidInput("The filter is nested too deeply; flatten it.") from None
    if wrong_key := next((key for key in _keys(filters) if _NO_KEY.search(key)), None):
        raise InvalidInput(
            f"Invalid filter key: {wrong_key!r:.100} has a quote, a backslash, ; or a control character."
        )
    if not isinstance(getattr(op, "key", ""), str):
        raise InvalidInput(f"key must be a string, not {type(op.key).__name__}.")
    if isinstance(op, PutOp):
        check_fields("index", op.index, or_false=True)
    conditions = getattr(op, "match_conditions", None) or ()
    if wrong := next((one for one in conditions if one.match_type not in ("prefix", "suffix")), None):
        raise InvalidInput(f"match_type must be 'prefix' or 'suffix', not {wrong.match_type!r}.")
    paths = [getattr(op, "namespace", ()), getattr(op, "namespace_prefix", ()), *(one.path for one in conditions)]
    for path in paths:
        if isinstance(path, str) or not isinstance(path, Iterable):
            shown = (path,) if isinstance(path, str) and path else ("users", "ana")
            raise InvalidNamespaceError(f"A namespace is a tuple of labels, such as {shown!r}, not {path!r}.")
        for label in path:
            if not isinstance(label, str) or not label or "." in label or "\0" in label:
                raise InvalidNamespaceError(
                    f"A label of a namespace is a string without a dot or a NUL, not {label!r}."
                )


def check_fields(name: str, value: Any, *, or_false: bool = False) -> None:
    """Raise InvalidInput unless ``value`` is None, a list of paths in a value, or with ``or_false`` False."""
    if value is None or (or_false and value is False):
        return
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(one, str) for one in value):
        false = "False, or " if or_false else ""
        raise InvalidInput(f"{name} must be {false}a list of paths in a value, such as ['text'], not {value!r:.100}.")


def check_ttl(name: str, value: Any) -> None:
    """Raise InvalidInput unless ``value`` is a number of minutes above 0, or None for one that stays."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _LONGEST_TTL):
        return
    raise InvalidInput(f"{name} must be a number of minutes above 0, or None for an item that stays, not {value!r}.")


def check_expiry(ttl: Any) -> None:
    """Raise InvalidInput unless ``ttl`` is None or a configuration of expiry, with keys that are known."""
    if ttl is None:
        return
    if not isinstance(ttl, Mapping):
        raise InvalidInput(f"ttl must be a mapping, such as {{'default_ttl': 60}}, not {ttl!r:.100}.")
    if unknown := [name for name in ttl if name not in _EXPIRY]:
        raise InvalidInput(f"ttl has no key {unknown[0]!r}; choose one of {', '.join(_EXPIRY)}.")
    check_ttl("default_ttl", ttl.get("default_ttl"))


def memories_of(op: PutOp, fields: Sequence[str], now: datetime) -> list[dict[str, Any]]:
    """Return the items of ``remember_many`` that one item becomes, the record first. Raises InvalidInput."""
    path, value, ttl = tuple(op.namespace), op.value, op.ttl
    if not isinstance(value, Mapping):
        raise InvalidInput(f"The value of {op.key!r} must be a mapping, not {type(value).__name__}.")
    try:
        plain = json.loads(json.dumps(value, allow_nan=False))
    except RecursionError:
        raise InvalidInput(f"The value of {op.key!r} is nested too deeply; flatten it.") from None
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"The value of {op.key!r} cannot be stored as JSON: {error}.") from None
    below = {_hash([*path[:depth]]): True for depth in range(1, len(path) + 1)}
    id = record_id(path, op.key)
    texts = [] if op.index is False else texts_of(plain, fields if op.index is None else op.index)
    record = {
        "id": id,
        "text": " ".join([*path, op.key]).strip() or op.key or id,
        "session": json.dumps(path, ensure_ascii=False),
        "source_type": None,
        "metadata": {
            "langgraph": RECORD,
            "below": below,
            "path": list(path), "key": op.key, "value": plain, "texts": len(texts), "written": now.isoformat(),
            **_as_given(plain),
            **({} if ttl is None else {"ttl": ttl, "expires": (now + timedelta(minutes=ttl)).isoformat()}),
        },
    }  # fmt: skip
    text_records = [
        {
            "id": f"{id}/{number}",
            "text": text,
            "source_type": None,
            "metadata": {"langgraph": TEXT, "below": below, "record": id, "value": plain},
        }
        for number, text in enumerate(texts)
    ]
    return [record, *text_records]


def item_of(record: Memory) -> Item:
    """Return the item of a record."""
    return Item(**_fields(record))


def searched_item(record: Memory, score: float | None) -> SearchItem:
    """Return the item of a record as a search gives it."""
    return SearchItem(**_fields(record), score=score)


def expired(record: Memory, now: datetime) -> bool:
    """Return whether the time of an item is over."""
    expires = record.metadata.get("expires")
    return isinstance(expires, str) and datetime.fromisoformat(expires) <= now


def latest_first(records: Iterable[Memory]) -> Iterator[Memory]:
    """Yield records in the order of their items' ``updated_at``, the latest first; they come in that of the memories'.

    A memory is also updated when the time of its item begins anew, which no item is. So a record waits until no record
    to come can have been put later.
    """
    waiting: list[tuple[float, int, Memory]] = []
    for number, record in enumerate(records):
        updated = record.updated_at
        while waiting and updated is not None and -waiting[0][0] >= updated.timestamp():
            yield heappop(waiting)[2]
        heappush(waiting, (-_fields(record)["updated_at"].timestamp(), number, record))
    while waiting:
        yield heappop(waiting)[2]


def refreshed(record: Memory, now: datetime) -> dict[str, Any] | None:
    """Return the metadata of a record whose time begins anew, None for one that does not expire."""
    ttl = record.metadata.get("ttl")
    if not isinstance(ttl, int | float):
        return None
    return {**record.metadata, "expires": (now + timedelta(minutes=ttl)).isoformat()}


def _fields(record: Memory) -> dict[str, Any]:
    metadata = record.metadata
    created = record.created_at or datetime.fromtimestamp(0, UTC)
    return {
        "namespace": tuple(metadata["path"]),
        "key": metadata["key"],
        "value": json.loads(metadata["given"]) if "given" in metadata else metadata["value"],
        "created_at": created,
        "updated_at": max(created, datetime.fromisoformat(metadata["written"])),  # put, and a moment later stored
    }


def _as_given(value: Any) -> dict[str, str]:
    """Return the JSON text of a value whose keys a database would put into another order, unless it is very large.

    PostgreSQL keeps the keys of an object by their length, then by their bytes.
    """
    text = json.dumps(value, ensure_ascii=False)
    return (
        {} if len(text) > _LONGEST_GIVEN or text == json.dumps(_as_kept(value), ensure_ascii=False) else {"given": text}
    )


def _as_kept(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_kept(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {key: _as_kept(value[key]) for key in sorted(value, key=_place_of)}


def _place_of(key: str) -> tuple[int, bytes]:
    written = key.encode(errors="surrogatepass")
    return len(written), written


def _hash(*parts: Any) -> str:
    return blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
