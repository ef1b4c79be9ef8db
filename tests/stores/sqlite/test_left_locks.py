"""The files that locks beside a SQLite file are for are removed where a killed process has left them, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.stores.sqlite import connection
from semmem.stores.sqlite.store import SqliteStore

LEFT = ["notes.db-rebuild", "notes.db-request-0123456789abcdef"]


def refused() -> Exception:
    return LookupError("Somebody has the lock.")


def locks(file: Path) -> list[str]:
    return sorted(path.name for path in file.parent.glob("*-re*"))


def test_maintain_removes_the_locks_that_killed_processes_have_left(mem: Semmem, file: Path) -> None:
    for name in LEFT:
        (file.parent / name).touch()
    mem.maintain()
    assert locks(file) == []


def test_maintain_removes_no_lock_that_is_held_and_nothing_of_others(mem: Semmem, file: Path) -> None:
    others = ["notes.db-request-plan", "other.db-rebuild", "other.db-request-0123456789abcdef"]
    for name in others:
        (file.parent / name).touch()
    store = mem.store
    assert isinstance(store, SqliteStore)
    with semmem.connect(f"sqlite://{file}", embedder="none") as other, store.held("rebuild", refused):
        other.maintain()
        assert locks(file) == sorted([LEFT[0], *others])
        with pytest.raises(LookupError), store.held("rebuild", refused):
            pass
    assert locks(file) == sorted(others)


def test_who_opens_a_left_lock_while_it_is_removed_holds_the_one_that_others_see(
    mem: Semmem, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = mem.store
    assert isinstance(store, SqliteStore)
    (file.parent / LEFT[0]).touch()
    locked = connection._locked

    def late(handle: int) -> bool:
        monkeypatch.setattr(connection, "_locked", locked)
        mem.maintain()
        return locked(handle)

    monkeypatch.setattr(connection, "_locked", late)
    with store.held("rebuild", refused):
        assert locks(file) == LEFT[:1]
        with pytest.raises(LookupError), store.held("rebuild", refused):
            pass
    assert locks(file) == []
