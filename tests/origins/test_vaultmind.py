"""Statements 7 to 10 of our origins: vaultmind's contract of retrieval, one for every leg and for the whole recall."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import semmem
from semmem.conformance import LegConformance
from semmem.model.filters import Within
from semmem.model.search import Found, Reader, Result

NOTES = [
    {"id": "a", "text": "The lantern hangs by the door. It is brass.", "title": "Lantern", "source": "house/hall.md"},
    {"id": "b", "text": "The lantern of the boat is green.", "title": "Boat", "source": "boat/deck.md"},
    {"id": "c", "text": "A lantern needs oil.", "title": "Stores", "source": "house/cellar.md", "session": "s"},
    {"id": "d", "text": "The kettle is copper.", "title": "Kettle", "source": "house/kitchen.md"},
]


@pytest.fixture
def mem(store_url: str) -> Iterator[semmem.Semmem]:
    with semmem.connect(store_url, embedder="hashing") as opened:
        opened.remember_many(NOTES)
        yield opened


class Copper:
    """A leg that knows one word."""

    name = "copper"

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def search(self, query: str, *, limit: int = 10, offset: int = 0, filters: Within | None = None) -> Found:
        found = [Result(m.id, 1.0) for m in self.reader.memories(filters or Within()) if "copper" in m.text]
        return found[offset : offset + limit], len(found)


def test_7_a_leg_and_the_whole_recall_take_a_limit_an_offset_and_filters_and_give_results_and_a_total(
    mem: semmem.Semmem,
) -> None:
    # three notes hold "lantern"; every note has a vector, so the whole recall matches all four
    for leg, expected in (("lexical", 3), (None, 4)):
        search = mem.leg(leg).search
        whole, total = search("lantern oil")
        assert (len(whole), total) == (expected, expected)
        assert search("lantern oil", limit=1) == (whole[:1], total)
        assert search("lantern oil", limit=1, offset=1) == (whole[1:2], total)
        narrowed, one = search("lantern oil", limit=5, filters={"sessions": ["s"]})
        assert ([r.id for r in narrowed], one) == (["c"], 1)


def test_7_the_total_of_a_recall_is_how_many_memories_matched(mem: semmem.Semmem) -> None:
    found = mem.recall("lantern", recipe="lexical", limit=1)
    assert (len(found), found.total, found.total_is_exact, found.offset) == (1, 3, True, 0)
    assert mem.recall("nothing of the kind", recipe="lexical").total == 0


def test_8_a_result_has_id_type_title_source_snippet_a_score_in_0_to_1_and_components_that_sum_to_it(
    mem: semmem.Semmem,
) -> None:
    results, _ = mem.leg().search("brass lantern")
    first = results[0]
    assert (first.id, first.type, first.title, first.source) == ("a", "memory", "Lantern", "house/hall.md")
    assert first.snippet in ("The lantern hangs by the door.", "It is brass.")
    assert set(first.components) >= {"lexical", "dense"}
    for result in results:
        assert 0 < result.score <= 1
        assert sum(result.components.values()) == pytest.approx(result.score, abs=1e-12)


def test_8_a_single_leg_leaves_the_components_empty_and_its_best_has_score_one(mem: semmem.Semmem) -> None:
    for leg in ("lexical", "dense"):
        results, _ = mem.leg(leg).search("brass lantern")
        assert results[0].score == 1.0
        assert [dict(r.components) for r in results] == [{}] * len(results)
        assert all(0 <= r.score <= 1 for r in results)


def test_8_a_recall_by_one_leg_still_says_whose_its_score_is(mem: semmem.Semmem) -> None:
    # where the two disagree both live: a Hit names even a single leg, the Result of the contract does not
    hit = mem.recall("brass lantern", recipe="lexical")[0]
    assert hit.components == {"lexical": hit.score}


def test_9_legs_are_named_and_the_name_is_what_components_have(mem: semmem.Semmem) -> None:
    mem.register_leg("copper", Copper)
    assert [mem.leg(name).name for name in ("lexical", "dense", "graph", "copper")] == [
        "lexical", "dense", "graph", "copper",
    ]  # fmt: skip
    recipe = semmem.recipe("lexical", weights={"copper": 1.0}, rank_constants={"copper": 60})
    results = mem.recall("lantern", recipe=recipe)
    by_id = {hit.memory.id: set(hit.components) for hit in results}
    assert by_id == {"a": {"lexical"}, "b": {"lexical"}, "c": {"lexical"}, "d": {"copper"}}


def test_10_the_contract_lies_below_every_back_end() -> None:
    code = (
        "import sys, semmem.model.search, semmem.model.protocols\n"
        "bad = ('psycopg', 'sqlite3', 'numpy', 'semmem.stores', 'semmem.legs')\n"
        "print([m for m in sys.modules if m.startswith(bad)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_10_a_new_leg_plugs_in_by_name_and_the_conformance_suite_runs_on_any(mem: semmem.Semmem) -> None:
    mem.register_leg("copper", Copper)
    results, total = mem.leg("copper").search("whatever is asked")
    assert ([r.id for r in results], total) == (["d"], 1)

    class Suite(LegConformance):
        def leg_over(self, items: Any) -> Any:
            return mem.leg("copper")

    Suite().test_it_has_a_name()
    with pytest.raises(AssertionError, match="must find eight"):  # it knows one word, and the suite says so
        Suite().test_results_are_whole_and_each_memory_comes_once()
