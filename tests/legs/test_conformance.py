"""The conformance suite on our three legs, on the whole recall, and on the regular-expression leg of the examples."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.conformance import ITEMS, LegConformance
from semmem.model.filters import Within
from semmem.model.search import Found, Result, SimpleLeg

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "regex_leg"


def regex_leg(reader: Any) -> Any:
    """Make the example's leg; the folder is on the path while its module is imported."""
    sys.path.insert(0, str(EXAMPLE))
    try:
        from regex_leg import RegexLeg  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(EXAMPLE))
    return RegexLeg(reader)


@pytest.fixture(scope="module")
def stores(module_store: Callable[[], str]) -> Iterator[dict[bool, semmem.Semmem]]:
    """One store that holds the suite's items and one that holds nothing; the tests only ask."""
    legs = {"regex": regex_leg}
    with (
        semmem.connect(module_store(), embedder="hashing", legs=legs, pool_size=4) as filled,
        semmem.connect(module_store(), embedder="hashing", legs=legs, pool_size=2) as empty,
    ):
        filled.remember_many(ITEMS)
        yield {True: filled, False: empty}


class InAStore(LegConformance):
    """A leg of a Semmem, asked through ``mem.leg``."""

    leg: str | None = None

    @pytest.fixture(autouse=True)
    def _stores(self, stores: dict[bool, semmem.Semmem]) -> None:
        self.stores = stores

    def leg_over(self, items: Sequence[Mapping[str, Any]]) -> SimpleLeg:
        assert items in (ITEMS, ())
        return self.stores[bool(items)].leg(self.leg)


class TestLexical(InAStore):
    leg = "lexical"


class TestDense(InAStore):
    leg = "dense"


class TestGraph(InAStore):
    leg = "graph"


class TestTheWholeRecall(InAStore):
    leg = None


class TestLexicalInSqlite(LegConformance):
    def leg_over(self, items: Sequence[Mapping[str, Any]]) -> SimpleLeg:
        self.mem = semmem.connect("sqlite::memory:", embedder="none")
        self.mem.remember_many(items)
        return self.mem.leg("lexical")

    def teardown_method(self) -> None:
        self.mem.close()


class TestRegexInAStore(InAStore):
    leg, query = "regex", "/blue/ /gate/"


class TestRegexByItself(InAStore):
    """The same leg without the pipeline: whatever keeps the contract can be run through the suite."""

    query = "/blue/ /gate/"

    def leg_over(self, items: Sequence[Mapping[str, Any]]) -> SimpleLeg:
        from semmem.legs.adapter import StoreReader

        leg: SimpleLeg = regex_leg(StoreReader(self.stores[bool(items)].store))
        return leg


# ---------------------------------------------------------------------- a suite that cannot fail would say nothing


class Rows:
    """A leg over nothing but the items, with one fault."""

    name = "rows"

    def __init__(self, items: Sequence[Mapping[str, Any]], fault: str) -> None:
        self.items = sorted(items, key=lambda i: str(i["id"]))
        self.fault = fault

    def search(self, query: str, *, limit: int = 10, offset: int = 0, filters: Within | None = None) -> Found:
        asked = filters or Within()
        rows = [i for i in self.items if i["namespace"] in asked.namespaces or self.fault == "walls"]
        total = len(rows) if self.fault != "total" else 99
        if self.fault == "filters after the cut":
            rows = rows[:3]
        if asked.sessions and self.fault != "filters":
            rows = [i for i in rows if i["session"] in asked.sessions]
        score = 1.5 if self.fault == "scores" else 0.5
        source = None if self.fault == "source" else "source"
        results = [Result(str(i["id"]), score, i["title"], source and i[source], i["text"]) for i in rows]
        if self.fault == "ties":
            results = results[::-1]
        if self.fault == "pages":
            return results[:limit], total
        return results[offset : offset + limit], total


@pytest.mark.parametrize(
    ("fault", "test", "sentence"),
    [
        ("walls", "test_nothing_crosses_a_namespace", "another namespace"),
        ("total", "test_results_are_whole_and_each_memory_comes_once", "the total says 99"),
        ("scores", "test_scores_are_in_0_to_1_and_fall", r"in \[0, 1\]"),
        ("source", "test_results_are_whole_and_each_memory_comes_once", "source None"),
        ("ties", "test_equal_scores_go_by_id", "order of their ids"),
        ("pages", "test_pages_beside_each_other_are_the_long_page_cut", "do not make up the whole"),
        ("filters", "test_filters_act_inside_so_that_the_limit_is_met", "let through"),
        ("filters after the cut", "test_filters_act_inside_so_that_the_limit_is_met", "says 10 of 0"),
    ],
)
def test_the_suite_fails_a_leg_with_a_fault(fault: str, test: str, sentence: str) -> None:
    class Faulty(LegConformance):
        def leg_over(self, items: Sequence[Mapping[str, Any]]) -> SimpleLeg:
            return Rows(items, fault)

    with pytest.raises(AssertionError, match=sentence):
        getattr(Faulty(), test)()


def test_the_suite_needs_no_pytest() -> None:
    import subprocess

    code = "import semmem.conformance, sys; sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
    assert len([name for name in vars(LegConformance) if name.startswith("test_")]) == 11
    assert len(ITEMS) == 12
