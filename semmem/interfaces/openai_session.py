"""The ``Session`` of OpenAI's Agents SDK over a namespace: a chat that is kept, and can be recalled from.

The protocol is that of https://openai.github.io/openai-agents-python/sessions/ ; an object needs no import of it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from semmem.client.pages import every_memory
from semmem.interfaces.arguments import check_limit, check_memory, check_namespace
from semmem.model.errors import InvalidInput, NotFound
from semmem.model.imported_items import RowError, plain_text
from semmem.model.types import Memory, source_type_of

if TYPE_CHECKING:
    from semmem.client.memory import Semmem

__all__ = ["SemmemSession"]

_SOURCE = "openai-agents"
_PAGE = 1000
_LONGEST = 999_000
_TICK = timedelta(microseconds=1)


class SemmemSession:
    """One session of the Agents SDK: ``Runner.run(agent, "…", session=SemmemSession("chat-7", memory))``.

    Every item is a memory of ``namespace`` in the session ``session_id``: its text is what was said, or the call of a
    tool in words, and the item itself is kept in its metadata as it was, so that ``get_items`` gives it back equal. An
    item may have a million characters of JSON: one with a large image in it is refused. Of a NUL character, which no
    store keeps in a text, the text has U+FFFD; the item has it as it was.
    """

    session_settings: Any = None

    def __init__(self, session_id: str, memory: Semmem, *, namespace: str = "default") -> None:
        if not isinstance(session_id, str) or not session_id.strip():
            raise InvalidInput(f"session_id must be a name, not {session_id!r:.100}.")
        check_memory(memory)
        check_namespace(namespace)
        self.session_id = session_id
        self._memory = memory
        self.namespace = namespace

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the last ``limit`` items, or all, oldest first."""
        most = limit if limit is not None else getattr(self.session_settings, "limit", None)
        check_limit(most, or_all=True)
        if most is not None and most <= 0:
            return []
        turns = await asyncio.to_thread(self._turns, most)
        return [json.loads(turn.metadata["item"]) for turn in turns]

    async def add_items(self, items: Sequence[Any]) -> None:
        """Append items; all of them or none. Raises InvalidInput for what is no list of items."""
        if isinstance(items, Mapping | str | bytes) or not isinstance(items, Iterable):
            raise InvalidInput(f"add_items takes a list of items, not one {type(items).__name__}; nothing was added.")
        if items := list(items):
            await asyncio.to_thread(self._add, items)

    async def pop_item(self) -> Any | None:
        """Remove the last item and return it, None where there is none."""
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Remove every item of the session."""
        await asyncio.to_thread(self._memory.forget, namespace=self.namespace, filters=self._filters)

    @property
    def _filters(self) -> dict[str, Any]:
        return {"sessions": [self.session_id], "metadata": {"source": _SOURCE}}

    def _turns(self, limit: int | None) -> list[Memory]:
        """Return the last turns, oldest first."""
        size = _PAGE if limit is None else min(_PAGE, limit)
        newest = every_memory(self._memory, namespace=self.namespace, filters=self._filters, limit=size)
        turns = islice(newest, limit)
        return sorted(turns, key=lambda turn: (turn.position or 0, turn.created_at or datetime.min.replace(tzinfo=UTC)))

    def _add(self, items: list[Any]) -> None:
        last = self._turns(1)
        position = (last[0].position or 0) + 1 if last else 0
        now = datetime.now(UTC)
        if last and last[0].created_at is not None:
            now = max(now, last[0].created_at + _TICK)  # the newest is listed first, and is the last turn
        texts = [_as_json(item, number) for number, item in enumerate(items)]
        self._memory.remember_many(
            [
                {
                    "text": _words(item).replace("\x00", "\ufffd"),
                    "author": str(item.get("name") or item.get("role") or item.get("type") or "item"),
                    "source_type": source_type_of(item.get("role") or item.get("type")),
                    "session": self.session_id,
                    "position": position + number,
                    "created_at": now + number * _TICK,
                    "metadata": {"source": _SOURCE, "item": texts[number]},
                }
                for number, item in enumerate(items)
            ],
            namespace=self.namespace,
            batch_size=len(items),
        )

    def _pop(self) -> Any | None:
        while turns := self._turns(1):
            item = json.loads(turns[0].metadata["item"])  # first: what cannot be read is not forgotten
            try:
                self._memory.forget(turns[0].id, namespace=self.namespace)
            except NotFound:  # another process has taken it
                continue
            return item
        return None


def _as_json(item: Any, number: int) -> str:
    """Return an item as the JSON that is stored. Raises InvalidInput for one that is no JSON, or too long."""
    if not isinstance(item, Mapping):
        raise InvalidInput(f"An item of a session must be a mapping, not {type(item).__name__}.")
    try:
        text = json.dumps(item, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"Item {number} is not JSON: {str(error).rstrip('.')}; nothing was added.") from None
    if not _all_named(item):
        raise InvalidInput(
            f"Item {number} has a key that is not a string, which JSON does not allow; nothing was added."
        )
    if len(json.dumps(text)) > _LONGEST:
        raise InvalidInput(
            f"Item {number} has {len(text):,} characters of JSON, and a session stores at most {_LONGEST:,} of each; "
            "leave large parts such as images out of it. Nothing was added."
        )
    return text


def _all_named(value: Any) -> bool:
    """Return whether every key of the mappings in a value is a string."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _all_named(one) for key, one in value.items())
    return not isinstance(value, list | tuple) or all(map(_all_named, value))


def _words(item: Any) -> str:
    """Return what an item says: its text, else the call of a tool or its output, else the item as JSON."""
    try:
        return plain_text(item.get("content"))
    except RowError:
        pass
    if isinstance(item.get("name"), str) and "arguments" in item:
        return f"{item['name']}({item['arguments']})"
    if isinstance(item.get("output"), str) and item["output"].strip():
        return str(item["output"])
    return json.dumps(item, ensure_ascii=False)
