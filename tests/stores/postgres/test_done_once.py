"""A verb that takes connections of its own is done once under an Idempotency-Key, and nobody waits for its claim."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.errors import LimitExceeded
from semmem.stores import kept_answers
from tests.stores.audit import connections_left, sql

CLAIM = "FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE locktype = 'advisory' AND datname = "


def once(mem: Semmem, key: bytes, work: Callable[[], object], *, together: bool = False) -> tuple[str, bool]:
    assert mem.store.serving is not None
    return mem.store.serving.once(key, b"request", lambda: str(work()), together=together, keep_days=1.0)


@pytest.mark.parametrize("size", [1, 2])
def test_as_many_verbs_as_the_pool_has_connections_wait_for_none_of_each_others_claims(own_url: str, size: int) -> None:
    answers: dict[bytes, tuple[str, bool]] = {}
    all_claimed = threading.Barrier(size, timeout=60)
    with semmem.connect(own_url, embedder="hashing", pool_size=size) as mem:

        def ask(key: bytes) -> None:
            def work() -> int:
                all_claimed.wait()
                return len(mem.store.namespaces())

            answers[key] = once(mem, key, work)

        threads = [threading.Thread(target=ask, args=(f"{number}".encode(),)) for number in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(100)
        assert set(answers.values()) == {("0", False)}
        assert len(answers) == size
        assert {once(mem, key, list) for key in answers} == {("0", True)}
    assert connections_left(own_url) == 0


def test_a_verb_whose_claim_is_lost_after_its_work_is_not_done_again(store_url: str) -> None:
    with semmem.connect(store_url, embedder="hashing") as mem:
        mem.remember("Bob likes tea.", namespace="b")

        def work() -> None:
            mem.rename_namespace("b", "c")
            assert sql(store_url, f"SELECT pg_terminate_backend(pid) {CLAIM} current_database()") == [(True,)]

        assert once(mem, b"key", work) == ("None", False)
        assert [one.name for one in mem.namespaces()] == ["c"]
        assert once(mem, b"key", work) == ("None", True)


def test_a_verb_whose_answer_cannot_be_kept_has_succeeded_all_the_same(store_url: str) -> None:
    with semmem.connect(store_url, embedder="hashing") as mem:
        sql(store_url, "ALTER TABLE semmem.answered ADD CONSTRAINT none CHECK (answer IS NULL)")
        try:
            assert once(mem, b"key", lambda: mem.remember("Bob likes tea.", id="t").id) == ("t", False)
        finally:
            sql(store_url, "ALTER TABLE semmem.answered DROP CONSTRAINT none")
        assert once(mem, b"key", lambda: "again") == ("again", False)


@pytest.mark.parametrize(("first", "second"), [(False, False), (False, True), (True, False)])
def test_a_claim_for_a_verb_of_one_transaction_and_one_for_any_other_exclude_each_other(
    store_url: str, monkeypatch: pytest.MonkeyPatch, first: bool, second: bool
) -> None:
    monkeypatch.setattr(kept_answers, "_PATIENCE_S", 0.0)
    with (
        semmem.connect(store_url, embedder="hashing") as mem,
        semmem.connect(store_url, embedder="hashing") as other,
    ):

        def work() -> str:
            with pytest.raises(LimitExceeded, match="Another server is still at work"):
                once(other, b"key", list, together=second)
            return "done"

        assert once(mem, b"key", work, together=first) == ("done", False)
        monkeypatch.setattr(kept_answers, "_PATIENCE_S", 10.0)  # a closed connection gives its claim up soon
        assert once(other, b"key", list, together=second) == ("done", True)
