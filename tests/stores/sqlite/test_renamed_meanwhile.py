"""A namespace of a file that another program renames while a recall or a rebuild reads it, and then fills again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.stores.sqlite import connection, renaming


def renamed_and_filled(mem: Semmem) -> None:
    """Rename a namespace, and give its name to a new one."""
    mem.rename_namespace("work", "archive")
    mem.remember("Bob rides a bicycle.", id="bicycle", namespace="work")


def test_a_recall_does_not_find_a_memory_of_the_new_namespace_by_the_words_of_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:{tmp_path}/notes.db"
    with semmem.connect(url, embedder="none") as reader, semmem.connect(url, embedder="none") as writer:
        writer.remember("Anna likes green tea.", id="tea", namespace="work")
        read, left = reader.store.indexed_memories, [renamed_and_filled]

        def indexed_memories(*given: Any, **named: Any) -> Any:
            while left:
                left.pop()(writer)
            return read(*given, **named)

        monkeypatch.setattr(reader.store, "indexed_memories", indexed_memories)
        found = reader.recall("Who likes green tea?", namespace="work", recipe="lexical")
        assert (left, [hit.id for hit in found]) == ([], [])
        assert [hit.id for hit in reader.recall("bicycle", namespace="work", recipe="lexical")] == ["bicycle"]


def test_the_row_of_an_old_name_goes_when_it_has_been_empty_for_a_day(mem: Semmem, file: Path) -> None:
    mem.remember("Anna likes green tea.", namespace="work")
    mem.rename_namespace("work", "archive")

    def rows() -> list[Any]:
        return mem.store._rows("namespace_last", {"namespace": "work"})  # type: ignore[attr-defined,no-any-return]

    mem.maintain()
    assert len(rows()) == 1
    mem.store._run(lambda c: c.execute("UPDATE namespace SET changed_at = 1"))  # type: ignore[attr-defined]
    mem.maintain()
    assert rows() == []
    assert mem.stats(namespace="archive").memories == 1


@pytest.mark.parametrize("verb", ["rename_namespace", "copy_namespace"])
def test_a_rebuild_waits_for_the_end_of_a_rename_or_a_copy(
    file: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setattr(connection, "_TRIES", 1)
    with semmem.connect(f"sqlite:{file}", embedder="hashing") as mover:
        mover.remember("Anna likes green tea.", namespace="work")
        monkeypatch.setattr(connection, "_BUSY_S", 0.01)
        set_limits, refused = renaming.set_limits, list[str]()
        with semmem.connect(f"sqlite:{file}", embedder="hashing") as other:

            def beside(*given: Any) -> Any:
                with pytest.raises(semmem.StoreUnavailable) as caught:
                    other.rebuild()
                refused.append(str(caught.value))
                return set_limits(*given)

            monkeypatch.setattr(renaming, "set_limits", beside)
            assert getattr(mover, verb)("work", "archive") == 1
            assert len(refused) == 1
            assert other.rebuild().embedded == 0


def test_a_rebuild_that_was_killed_does_not_keep_a_namespace_from_being_renamed(mem: Semmem, file: Path) -> None:
    mem.remember("Anna likes green tea.", namespace="work")
    file.with_name(f"{file.name}-rebuild").touch()
    assert mem.rename_namespace("work", "archive") == 1
