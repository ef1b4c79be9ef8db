"""The texts that a memory has had, and one that expires or is old, for the tests of what becomes of memories."""

from __future__ import annotations

from typing import Any

from semmem.client.memory import Semmem
from semmem.model.store import Store


def texts(mem: Semmem, id: str) -> list[str]:
    return [one.memory.text for one in mem.history(id)]


def let_expire(mem: Semmem, id: str) -> None:
    """Let the time of a memory be over, as if it had been remembered long ago."""
    expire(mem.store, id)


def let_end(mem: Semmem, id: str) -> None:
    """Let a memory be valid no longer, as if it had been remembered with an end that is over by now."""
    store = mem.store
    if store.kind == "SQLite":
        store._run(lambda c: c.execute("UPDATE memory SET valid_to = 1 WHERE id = ?", (id,)))
    else:
        store.run(lambda c: c.execute("UPDATE memory SET valid_to = now() WHERE id = %s", (id,)))


def expire(store: Store, id: str) -> None:
    """Do the same in a store by itself."""
    if store.kind == "SQLite":
        store._run(lambda c: c.execute("UPDATE memory SET expires_at = 1 WHERE id = ?", (id,)))
    else:
        store.run(lambda c: c.execute("UPDATE memory SET expires_at = now() WHERE id = %s", (id,)))


def written_then(store: Store, *ids: str) -> None:
    """Let memories be as old as they say, as if they had been stored at the time that was given for them."""
    run: Any = store._run if store.kind == "SQLite" else store.run
    mark = "?" if store.kind == "SQLite" else "%s"
    for id in ids:
        run(lambda c, id=id: c.execute(f"UPDATE memory SET last_seen = NULL WHERE id = {mark}", (id,)))
