"""Names that come late reach older memories, names that go are taken back, whatever else happens meanwhile."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.concepts.rules import extract
from semmem.model.errors import Conflict
from semmem.model.exchange import Extraction, Kind
from semmem.stores.packed_postings import FORWARD
from semmem.text.tokens import key
from semmem.write.relink import Upkeep
from tests.stores.audit import sql
from tests.stores.test_graph_hash import df_is_exact, rebuilt

BABBAGE_ENGINE = key(Kind.NAME, ("engine", "of", "babbage"))
# "the Engine of Babbage" is a span by itself; "Engine of babbage" is a mention only once the name is known.
MENTION = "It is said that parts of the Engine of babbage were kept."
TITLED = {"id": "title", "title": "Engine of Babbage", "text": "It was never finished.", "created_at": "2026-01-31"}


@pytest.fixture
def mem(store_url: str) -> Iterator[Semmem]:
    with semmem.connect(store_url, embedder="none", recipe="lexical", pool_size=6) as mem:
        yield mem


def holds(mem: Semmem, id: str, at: int = BABBAGE_ENGINE) -> bool:
    """Return whether a memory mentions a concept."""
    ((raw,),) = sql(mem, "SELECT entries FROM memory JOIN forward USING (namespace, ord) WHERE id = %s", id)
    return any(row[0] == at and row[2] > 0 for row in np.frombuffer(raw, dtype=FORWARD).tolist())


def fill(count: int) -> list[dict[str, Any]]:
    return [{"id": f"fill{n}", "text": f"Plain words number {n}."} for n in range(count)]


# ---------------------------------------------------------------------- reindexing


@pytest.mark.parametrize("folded", [False, True], ids=["pending", "folded"])
def test_reindexing_replaces_what_a_memory_holds_and_nothing_else(mem: Semmem, folded: bool) -> None:
    mem.remember("Tea and rum for Ada Lovelace.", id="a")
    mem.remember("Tea for Ada Byron.", id="b")
    if folded:
        mem.maintain()
    (ord,) = mem.store.ords_of("default", "a")
    new = extract("Rum, rum and cake for Ada Byron and the cat.")
    ties = [(key(Kind.NAME, ("ada",)), "likes", key(Kind.NAME, ("byron",)))]
    new = Extraction(new.keys, new.kinds, new.names, new.mentions, new.subjects, new.counts, new.length, ties)
    assert mem.store.reindex("default", [(ord, new)]) == 1
    assert mem.store.reindex("default", [(ord, new)]) == 0
    df_is_exact(mem)
    assert bool(sql(mem, "SELECT 1 FROM pending")) is not folded
    assert sql(mem, "SELECT subject, predicate, object FROM relationship") == ties
    assert [hit.memory.id for hit in mem.recall("cake")] == ["a"]
    assert {hit.memory.id for hit in mem.recall("tea")} == {"b"}
    mem.maintain()
    df_is_exact(mem)
    mem.forget("a")
    df_is_exact(mem)
    assert sql(mem, "SELECT 1 FROM relationship") == []
    assert mem.store.reindex("default", [(ord, new)]) == 0


# ---------------------------------------------------------------------- names that come and go


def test_a_new_title_reaches_the_older_memories_that_mention_it_at_once(mem: Semmem) -> None:
    mem.remember(MENTION, id="old")
    assert not holds(mem, "old")
    mem.remember(**TITLED)
    assert holds(mem, "old")
    mem.remember(MENTION, id="new")
    assert holds(mem, "new")
    mem.forget("title")
    assert not holds(mem, "old")
    assert not holds(mem, "new")
    df_is_exact(mem)
    assert sql(mem, "SELECT 1 FROM alias_change WHERE cardinality(waiting) > 0") == []


def test_a_name_stays_while_any_memory_is_about_it(mem: Semmem) -> None:
    mem.remember_many([TITLED, {**TITLED, "id": "second"}, {"id": "old", "text": MENTION}])
    mem.forget("title")
    assert holds(mem, "old")
    mem.forget("second")
    assert not holds(mem, "old")


def test_a_name_that_many_memories_mention_waits_for_maintain(mem: Semmem) -> None:
    mem.remember_many([{"id": f"old{n}", "text": MENTION} for n in range(40)])
    mem.remember(**TITLED)
    assert not holds(mem, "old7")
    assert mem.maintain()["renewed"] == 40
    assert all(holds(mem, f"old{n}") for n in range(40))
    df_is_exact(mem)
    assert mem.maintain()["renewed"] == 0


def test_maintain_reads_only_the_memories_that_a_late_name_may_change(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [{"id": f"span{n}", "text": "They saw the Engine of Babbage, and Ada."} for n in range(40)]
    items += [{"id": f"late{n}", "text": MENTION} for n in range(2)]
    mem.remember_many([*items, {"id": "both", "text": f"She saw the Engine of Babbage. {MENTION}"}, *fill(3)])
    mem.remember("She wrote notes.", id="ada", title="Ada")
    mem.remember(**TITLED)
    assert not holds(mem, "late0")
    texts: list[str] = []
    read = Upkeep.extraction

    def listed(self: Upkeep, memory: Any, knowledge: Any) -> Any:
        texts.append(memory.id)
        return read(self, memory, knowledge)

    monkeypatch.setattr(Upkeep, "extraction", listed)
    assert mem.maintain()["renewed"] == 2
    assert sorted(texts) == ["late0", "late1"]
    assert holds(mem, "late0")
    df_is_exact(mem)


def test_a_longer_late_name_takes_the_place_of_a_shorter_one(mem: Semmem) -> None:
    texts = {f"old{n}": "Later the Engine of babbage Hall was opened." for n in range(40)}
    mem.remember(**TITLED)
    mem.remember_many([{"id": id, "text": text, "created_at": "2026-01-31"} for id, text in texts.items()])
    assert holds(mem, "old7")
    hall = {"id": "hall", "title": "Engine of Babbage Hall", "text": "It is closed.", "created_at": "2026-01-31"}
    mem.remember(**hall)
    assert mem.maintain()["renewed"] == 40
    assert not holds(mem, "old7")
    assert holds(mem, "old7", key(Kind.NAME, ("engine", "of", "babbage", "hall")))
    kept = {id: {"id": id, "text": text, "created_at": "2026-01-31"} for id, text in texts.items()}
    assert mem.graph_hash() == rebuilt(mem, {"title": TITLED, **kept, "hall": hall}, 50)


def test_a_late_name_reaches_the_memories_of_a_corrected_name(mem: Semmem) -> None:
    mem.remember_many([{"id": f"old{n}", "text": f"Charlie saw it. {MENTION}"} for n in range(40)])
    mem.remember("It is long.", id="man", title="Charles")
    mem.merge_concepts("Charlie", "Charles")
    mem.remember(**TITLED)
    mem.maintain()
    assert holds(mem, "old7")
    assert holds(mem, "old7", key(Kind.NAME, ("charles",)))
    mem.split_concept("Charlie")
    assert not holds(mem, "old7", key(Kind.NAME, ("charles",)))
    df_is_exact(mem)


def test_a_name_of_stop_words_reaches_the_memories_that_spell_it(mem: Semmem) -> None:
    mem.remember("They saw The Who in Leeds.", id="old")
    mem.remember("The man who ran.", id="other")
    mem.remember("Live in 1970.", id="band", title="The Who")
    mem.maintain()
    the_who = key(Kind.NAME, ("the", "who"))
    assert (holds(mem, "old", the_who), holds(mem, "other", the_who)) == (True, False)


def test_a_refused_item_brings_no_name(mem: Semmem) -> None:
    mem.remember("Tea.", id="title")
    report = mem.remember_many([TITLED, {"id": "old", "text": MENTION}], on_error="skip")
    assert [r.id for r in report.rejected] == ["title"]
    assert not holds(mem, "old")
    with pytest.raises(Conflict):
        mem.remember_many([TITLED])
    assert not holds(mem, "old")


# ---------------------------------------------------------------------- at the same time


def rows(mem: Semmem, **item: Any) -> Any:
    """Read an item as a writer does, up to the moment before it writes."""
    from semmem.write.items import drafted

    return mem._ingest._rows([drafted(0, item, "default")])


def commit(mem: Semmem, prepared: Any) -> Any:
    return mem.store.write(prepared[0], on_conflict="abort")


@pytest.mark.parametrize("first", ["title", "mention"])
def test_of_two_writers_at_once_the_later_one_sees_the_other(mem: Semmem, first: str) -> None:
    title, mention = rows(mem, **TITLED), rows(mem, id="old", text=MENTION)
    pair = (title, mention) if first == "title" else (mention, title)
    for prepared in pair:
        mem._upkeep.written(prepared[0], commit(mem, prepared), prepared[1])
    assert holds(mem, "old")


def test_a_writer_sees_that_a_name_went_while_it_wrote(mem: Semmem) -> None:
    mem.remember(**TITLED)
    mention = rows(mem, id="old", text=MENTION)
    mem.forget("title")
    written = commit(mem, mention)
    assert holds(mem, "old")
    mem._upkeep.written(mention[0], written, mention[1])
    assert not holds(mem, "old")


def test_a_name_that_went_and_came_again_at_once_is_known(mem: Semmem) -> None:
    mem.remember(**TITLED)
    mem.remember(MENTION, id="old")
    second = rows(mem, **{**TITLED, "id": "second"})
    mem.forget("title")
    assert not holds(mem, "old")
    mem._upkeep.written(second[0], commit(mem, second), second[1])
    assert holds(mem, "old")


def test_after_a_crash_between_writing_and_looking_maintain_looks(mem: Semmem) -> None:
    mem.remember(MENTION, id="old")
    commit(mem, rows(mem, **TITLED))
    assert not holds(mem, "old")
    assert mem.maintain()["renewed"] == 1
    assert holds(mem, "old")


def test_a_memory_that_is_forgotten_while_it_is_read_again_stays_forgotten(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.remember(MENTION, id="old")
    read = Upkeep.extraction

    def slow(self: Upkeep, memory: Any, knowledge: Any) -> Any:
        if memory.id == "old":
            mem.store.forget("default", "old", semmem.Filters(), dry_run=False)
        return read(self, memory, knowledge)

    monkeypatch.setattr(Upkeep, "extraction", slow)
    mem.remember(**TITLED)
    assert [m.id for m in mem.list()] == ["title"]
    df_is_exact(mem)


def test_writers_forgetting_folding_and_reading_again_side_by_side_lose_nothing(mem: Semmem) -> None:
    texts = (MENTION, "Ada saw it.", "The Engine of babbage and Ada Lovelace met Ada.", "It was Ada lovelace's engine.")
    titles = (None, None, "Engine of Babbage", "Ada", "Ada Lovelace", "It")
    kept: list[dict[str, dict[str, Any]]] = [{} for _ in range(4)]
    failed: list[BaseException] = []

    def write(number: int) -> None:
        chance = random.Random(number)
        mine = kept[number]
        try:
            for n in range(25):
                some = [
                    {"id": f"w{number}-{n}-{i}", "text": chance.choice(texts), "title": chance.choice(titles),
                     "created_at": "2026-01-31"}
                    for i in range(chance.choice((1, 2, 70 if n % 12 == 5 else 3)))
                ]  # fmt: skip
                mem.remember_many(some)
                mine.update({item["id"]: item for item in some})
                while len(mine) > 12 and chance.random() < 0.7:
                    gone = chance.choice(sorted(mine))
                    del mine[gone]
                    mem.forget(gone)
                if n % 9 == 8:
                    mem.maintain()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert failed == []
    mem.maintain()
    df_is_exact(mem)
    everything = {id: item for mine in kept for id, item in mine.items()}
    assert mem.stats(namespace="default").memories == len(everything)
    assert mem.graph_hash() == rebuilt(mem, everything, 50)


# ---------------------------------------------------------------------- everything anew


def test_a_rebuild_finds_again_what_was_lost_and_changes_nothing_else(mem: Semmem) -> None:
    mem.remember_many([TITLED, *({"id": f"old{n}", "text": f"{MENTION} {n}"} for n in range(80)), *fill(10)])
    whole = mem.graph_hash()
    (ord,) = mem.store.ords_of("default", "old7")
    mem.store.reindex("default", [(ord, extract("Something else."))])
    assert mem.graph_hash() != whole
    seen: list[int] = []
    assert mem.rebuild(extract=True, progress=seen.append) == semmem.Rebuilt(read=91, changed=1)
    assert mem.graph_hash() == whole
    assert seen[-1] == 91
    df_is_exact(mem)


def test_the_order_of_remembering_decides_no_hit_of_the_walk(mem: Semmem) -> None:
    chance = random.Random(3)
    people = ("Ada Lovelace", "Charles Babbage", "Mary Somerville", "Augustus De Morgan")
    items = [
        {"id": f"m{n}", "text": " wrote to ".join(chance.choices(people, k=3)), "title": chance.choice((None, *people)),
         "session": f"s{n % 5}", "position": n, "created_at": "2026-01-31"}
        for n in range(60)
    ]  # fmt: skip
    answers = set()
    for turn in range(3):
        chance.shuffle(items)
        mem.remember_many(items, namespace=f"n{turn}", batch_size=7)
        mem.maintain()
        found = mem.recall("What did Ada Lovelace write to Babbage?", namespace=f"n{turn}", recipe="graph", limit=20)
        answers.add(tuple((hit.memory.id, round(hit.score, 9)) for hit in found))
    assert len(answers) == 1
    assert len(next(iter(answers))) == 20
