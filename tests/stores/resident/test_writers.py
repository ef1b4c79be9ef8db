"""Namespaces in memory while others write: no change is missed, and a recall that a writer overtakes begins again."""

from __future__ import annotations

import random
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from semmem.model.errors import NotFound
from semmem.model.types import Filters
from semmem.stores.postgres import postings
from semmem.write.ingest import Ingest
from tests.stores.resident.trio import QUESTIONS, Trio, answer, change, opened, recalled
from tests.stores.test_stale_parts import LONG, cut_shorter
from tests.waiting import until

pytestmark = pytest.mark.nodes


@pytest.mark.slow
def test_writers_beside_readers_are_never_missed(module_url: str, space: str) -> None:
    with ExitStack() as stack:
        trio = opened(stack, module_url)
        change(trio.writer, space, ("many", 0))
        trio.warm(space)
        stop, same, wrong = threading.Event(), [], []

        def state() -> Any:
            scope = trio.plain.store.scope((space,), Filters(), (), ())
            return scope.states

        def read(question: str) -> None:
            while not stop.is_set():
                before = state()
                try:
                    pair = [answer(mem, question, namespace=space) for mem in (trio.kept, trio.plain)]
                except NotFound:  # forgotten between a recall and the explanation of its hit
                    continue
                if state() == before:  # nobody has written meanwhile, so the two were asked of one moment
                    same.append(question)
                    if pair[0] != pair[1]:
                        wrong.append(pair)

        readers = [threading.Thread(target=read, args=(question,)) for question in QUESTIONS[:2]]
        for reader in readers:
            reader.start()
        chance = random.Random(7)
        for number in range(300, 315):
            change(trio.writer, space, (chance.choice(("few", "few", "update", "forget")), number))
            if number % 3:
                threading.Event().wait(0.05)
                continue
            compared = len(same)  # nobody writes until a reader has asked both of one moment
            until(lambda: len(same) > compared or not any(reader.is_alive() for reader in readers))  # noqa: B023
        stop.set()
        for reader in readers:
            reader.join()
        assert wrong == []
        assert len(same) >= 5
        for question in QUESTIONS:
            assert answer(trio.kept, question, namespace=space) == answer(trio.plain, question, namespace=space)


def test_a_recall_that_writers_overtake_is_begun_again(
    module_url: str, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        trio = recalled(stack, module_url, space)
        present, writes = trio.models.present, iter(range(3))

        def overtaken(namespaces: Any) -> Any:
            models = present(namespaces)
            for number in writes:  # once: behind the look at the model, before the texts are asked for
                trio.writer.remember(f"The barometer fell on day {number}.", id=f"b{number}", namespace=space)
            return models

        monkeypatch.setattr(trio.models, "present", overtaken)
        found = trio.kept.recall("barometer", namespace=space)
        assert {hit.memory.id for hit in found[:3]} == {"b0", "b1", "b2"}
        assert answer(trio.kept, "barometer", namespace=space) == answer(trio.plain, "barometer", namespace=space)


def test_a_recall_that_is_always_overtaken_asks_first_the_second_time(
    module_url: str, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        trio = recalled(stack, module_url, space)
        reader: Any = trio.kept._here.reader
        assumed, models, seen = reader._assumed, dict(trio.models._models), dict(reader._scopes)
        tried = []

        def always(*asked: Any) -> Any:
            """Take to be so what was so before the first writer came, each time again, and let another one come."""
            trio.models._models.update(models)
            reader._scopes.update(seen)
            tried.append(assumed(*asked))
            trio.writer.remember(f"The barometer fell on day {len(tried)}.", id=f"b{len(tried)}", namespace=space)
            return tried[-1]

        monkeypatch.setattr(reader, "_assumed", always)
        found = [trio.kept.recall("barometer", namespace=space) for _ in range(2)]
        assert [one is not None for one in tried] == [True] * 2  # a recall assumes once, and then checks
        assert [{hit.memory.id for hit in one[: at + 1]} for at, one in enumerate(found)] == [{"b1"}, {"b1", "b2"}]
        monkeypatch.undo()
        assert answer(trio.kept, "barometer", namespace=space) == answer(trio.plain, "barometer", namespace=space)


def test_what_a_later_splitter_cuts_anew_is_recalled_at_once(
    module_url: str, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        trio = opened(stack, module_url)
        trio.writer.remember(LONG, id="long", namespace=space)
        change(trio.writer, space, ("few", 1))
        trio.warm(space)
        cut_shorter(monkeypatch, 9)
        make_anew, asked = Ingest.make_anew, []

        def made(ingest: Ingest, drafts: Any) -> None:
            make_anew(ingest, drafts)
            for question in ("long report number 12", *QUESTIONS):
                asked.append(question)
                assert answer(trio.kept, question, namespace=space) == answer(trio.plain, question, namespace=space)

        monkeypatch.setattr(Ingest, "make_anew", made)
        trio.writer.maintain()
        assert len(asked) >= 5


def test_a_backup_that_is_restored_is_what_is_recalled_though_its_numbers_are_older(
    other_url: str, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        trio = opened(stack, other_url)
        change(trio.writer, "n", ("few", 1))
        trio.writer.remember("The barometer fell.", id="b", namespace="n")
        trio.writer.backup(tmp_path / "before.semmem")
        trio.writer.forget("b", namespace="n")
        change(trio.writer, "n", ("few", 20))
        trio.warm("n")
        trio.writer.forget(namespace="n", everything=True)  # and nobody asks before it is there again
        trio.writer.restore(tmp_path / "before.semmem")
        for question in ("barometer", *QUESTIONS):
            assert answer(trio.kept, question, namespace="n") == answer(trio.plain, question, namespace="n")
        assert [hit.memory.id for hit in trio.kept.recall("barometer", namespace="n", recipe="lexical")] == ["b"]


def test_a_namespace_in_memory_outlives_the_merges_that_its_writers_and_maintain_make(
    trio: Trio, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "FLUSH_AT", 4)
    change(trio.writer, space, ("many", 0))
    trio.warm(space)
    read = list[str]()
    monkeypatch.setattr(trio.models, "_load", lambda namespace, *_: read.append(namespace))
    merges = list[int]()
    mark = postings.mark_merged

    def noted(connection: Any, segments: Any) -> Any:
        merges.append(len(segments))
        return mark(connection, segments)

    monkeypatch.setattr(postings, "mark_merged", noted)
    for n in range(4 * postings.COMPACT_AT):
        trio.writer.remember(f"The otter was seen on day {n}.", namespace=space)
        assert answer(trio.kept, "otter", namespace=space) == answer(trio.plain, "otter", namespace=space)
    trio.writer.maintain()
    assert answer(trio.kept, "otter", namespace=space) == answer(trio.plain, "otter", namespace=space)
    assert len(merges) >= 2
    assert list(trio.kept.resident) == [space]
    assert read == []
