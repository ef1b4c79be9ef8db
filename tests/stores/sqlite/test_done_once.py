"""A verb of several transactions is done once under an Idempotency-Key, by whatever server over the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.errors import LimitExceeded
from semmem.stores import kept_answers


@pytest.fixture
def mem(tmp_path: Path) -> Iterator[Semmem]:
    with semmem.connect(f"sqlite://{tmp_path}/notes.db", embedder="hashing") as mem:
        yield mem


def once(mem: Semmem, work: Callable[[], object]) -> tuple[str, bool]:
    assert mem.store.serving is not None
    return mem.store.serving.once(b"key", b"request", lambda: str(work()), together=False, keep_days=1.0)


def test_a_request_that_a_server_is_at_work_on_is_not_begun_by_another(
    mem: Semmem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_answers, "_PATIENCE_S", 0.0)
    mem.remember("Bob likes tea.", namespace="b")
    before = sorted(tmp_path.iterdir())
    with semmem.connect(f"sqlite://{tmp_path}/notes.db", embedder="hashing") as other:

        def work() -> None:
            with pytest.raises(LimitExceeded, match="Another server is still at work"):
                once(other, lambda: other.rename_namespace("b", "c"))
            mem.rename_namespace("b", "c")

        assert once(mem, work) == ("None", False)
        assert once(other, lambda: other.rename_namespace("b", "c")) == ("None", True)
        assert sorted(tmp_path.iterdir()) == before


def test_a_verb_that_fails_gives_its_claim_back(mem: Semmem) -> None:
    def fail() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        once(mem, fail)
    assert once(mem, lambda: "done") == ("done", False)


def test_a_verb_whose_answer_cannot_be_kept_has_succeeded_all_the_same(mem: Semmem, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "notes.db")) as file:
        file.execute("CREATE TRIGGER none BEFORE INSERT ON answered BEGIN SELECT raise(ABORT, 'none'); END")
        assert once(mem, lambda: mem.remember("Bob likes tea.", id="t").id) == ("t", False)
        file.execute("DROP TRIGGER none")
        assert once(mem, lambda: "again") == ("again", False)
