"""The conformance suite for legs: tests of what every leg must do, which also run on yours.

Derive a class in a test module and define how your leg is made; pytest finds the tests (nothing here imports pytest):

    from semmem.conformance import LegConformance

    class TestMyLeg(LegConformance):
        query = "/harbour/"

        def leg_over(self, items):
            ...  # remember the items somewhere, return an object with search(query, *, limit, offset, filters)

``leg_over`` is called once for each test; fixtures of your class may give it a store. The legs of semmem, and the whole
recall, pass the same tests (tests/legs/test_conformance.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

from semmem.model.errors import SemmemError
from semmem.model.filters import Within
from semmem.model.search import Result, SimpleLeg

__all__ = ["ITEMS", "LegConformance"]

_FIRST = datetime(2026, 1, 1, tzinfo=UTC)
_PLACES = ("quay", "mole", "slip", "dock", "pier", "buoy", "lock", "weir", "ford", "reef", "spit", "cove")

ITEMS: tuple[Mapping[str, Any], ...] = tuple(
    {
        "id": f"m{n:02}",
        "text": f"The Harbour Gate by the {place} was painted {'blue ' * (n % 4 + 1)}again.",
        "title": f"Harbour Gate {place}",
        "source": f"log/{place}.md",
        "session": "night" if n % 4 == 3 else "day",
        "author": "ada" if n % 2 else "bob",
        "tags": ["kept"] if n % 3 == 0 else [],
        "metadata": {"berth": {"number": n % 5}},
        "created_at": _FIRST + timedelta(days=n),
        "namespace": "other" if n >= 10 else "default",
    }
    for n, place in enumerate(_PLACES)
)
"""The test data: ten memories in the namespace ``default``, two in ``other``, all about one gate."""

_NARROWED: tuple[tuple[dict[str, Any], set[str]], ...] = (
    ({"sessions": ("night",)}, {"m03", "m07"}),
    ({"authors": ("ada",)}, {"m01", "m03", "m05", "m07", "m09"}),
    ({"tags": ("kept",)}, {"m00", "m03", "m06", "m09"}),
    ({"metadata": {"berth": {"number": 2}}}, {"m02", "m07"}),
    ({"created_after": _FIRST + timedelta(days=7)}, {"m07", "m08", "m09"}),
    ({"created_before": _FIRST + timedelta(days=2)}, {"m00", "m01"}),
    ({"exclude": ("m00", "m01", "m02", "m03", "m04", "m05", "m06", "m07")}, {"m08", "m09"}),
    ({"namespaces": ("other",)}, {"m10", "m11"}),
    ({"namespaces": ("nowhere",)}, set()),
)
_ODD = ("", "   ", "((", "[", "/(/", '"', "\\", "☃ \U0001f600", "\x00", "a" * 3_000, "%", "' OR 1=1 --")


class LegConformance:
    """Tests of what every leg must do. Define ``leg_over``, and a ``query`` that finds at least eight of the ten."""

    query = "Which Harbour Gate was painted blue?"
    finds_some_of = False
    """True for a leg that need not find every matching memory, such as one that starts from the results of others."""

    def leg_over(self, items: Sequence[Mapping[str, Any]]) -> SimpleLeg:
        """Return the leg over ``items``, which have the keys of ``remember_many``."""
        raise NotImplementedError("Say how your leg is made over the items: def leg_over(self, items).")

    def test_it_has_a_name(self) -> None:
        """The name by which components, explanations and recipes refer to the leg."""
        name = self.leg_over(ITEMS).name
        _must(isinstance(name, str) and name.isidentifier(), f"the name must be an identifier, not {name!r}")

    def test_results_are_whole_and_each_memory_comes_once(self) -> None:
        """Every result has an id, a type, a title, a source and a snippet; the total is right where all are shown."""
        results, total = self.leg_over(ITEMS).search(self.query, limit=50)
        expected = {str(item["id"]): item for item in ITEMS if item["namespace"] == "default"}
        _must(len(results) >= 8, f"the query must find eight of ten memories, not {len(results)}")
        _must(len({r.id for r in results}) == len(results), "a memory came twice")
        _must(total == len(results), f"{len(results)} results were all there are, and the total says {total}")
        for result in results:
            _must(isinstance(result.id, str) and result.id in expected, f"unknown id {result.id!r}")
            item = expected[result.id]
            _must(result.type == "memory", f"{result.id} has type {result.type!r}")
            _must(result.title == item["title"], f"{result.id} has title {result.title!r}")
            _must(result.source == item["source"], f"{result.id} has source {result.source!r}")
            _must(bool(result.snippet), f"{result.id} has no snippet")

    def test_scores_are_in_0_to_1_and_fall(self) -> None:
        """Components sum to the score too; a single leg leaves them empty."""
        results, _ = self.leg_over(ITEMS).search(self.query, limit=50)
        scores = [r.score for r in results]
        _must(all(0 <= s <= 1 for s in scores), f"scores must be in [0, 1]: {scores}")
        _must(scores == sorted(scores, reverse=True), f"scores must fall: {scores}")
        for result in results:
            gap = abs(sum(result.components.values()) - result.score) if result.components else 0.0
            _must(gap < 1e-9, f"the components of {result.id} do not sum to its score")

    def test_equal_scores_go_by_id(self) -> None:
        """Two stores with the same memories then give the same answer."""
        results, _ = self.leg_over(ITEMS).search(self.query, limit=50)
        pairs = [(-round(r.score, 12), r.id) for r in results]
        _must(pairs == sorted(pairs), f"equal scores must be in the order of their ids: {pairs}")

    def test_pages_beside_each_other_are_the_long_page_cut(self) -> None:
        """Limit and offset cut one order, and the total is the same on each page."""
        leg = self.leg_over(ITEMS)
        whole, total = leg.search(self.query, limit=50)
        pages = [leg.search(self.query, limit=3, offset=offset) for offset in range(0, len(whole), 3)]
        _must([r.id for page, _ in pages for r in page] == [r.id for r in whole], "pages do not make up the whole")
        _must(all(t == total for _, t in pages), f"the total changes from page to page: {[t for _, t in pages]}")
        _must([r.score for page, _ in pages for r in page] == [r.score for r in whole], "scores change with the page")
        past, count = leg.search(self.query, limit=3, offset=len(whole) + 5)
        _must(not past and count == total, f"past the end there is nothing, and the total stays {total}, not {count}")
        first, _ = leg.search(self.query, limit=1)
        _must(_ids(first) == _ids(whole[:1]), "a limit of 1 is the first of the whole")

    def test_filters_act_inside_so_that_the_limit_is_met(self) -> None:
        """Only matches within the filters come, and the best of these, however much better others are."""
        leg = self.leg_over(ITEMS)
        for narrowed, expected in _NARROWED:
            results, total = leg.search(self.query, limit=50, filters=Within(**narrowed))
            ids = set(_ids(results))
            _must(ids <= expected, f"{narrowed} let through {sorted(ids - expected)}")
            _must(total == len(results), f"{narrowed}: the total says {total} of {len(results)}")
            if self.finds_some_of:
                continue
            _must(ids == expected, f"{narrowed} kept out {sorted(expected - ids)}")
            few, of_few = leg.search(self.query, limit=1, filters=Within(**narrowed))
            _must(_ids(few) == _ids(results[:1]) and of_few == total, f"{narrowed} starves a limit of 1")

    def test_nothing_crosses_a_namespace(self) -> None:
        """A leg without filters searches ``default``."""
        results, _ = self.leg_over(ITEMS).search(self.query, limit=50)
        _must(not {"m10", "m11"} & set(_ids(results)), "a memory of another namespace came")

    def test_no_memories_is_no_results(self) -> None:
        """An empty store is no error."""
        results, total = self.leg_over(()).search(self.query)
        _must((list(results), total) == ([], 0), f"an empty store gave {len(results)} results and a total of {total}")

    def test_the_same_question_has_the_same_answer(self) -> None:
        """An answer does not depend on earlier questions."""
        leg = self.leg_over(ITEMS)
        once, again = leg.search(self.query, limit=50), leg.search(self.query, limit=50)
        _must(_shown(once) == _shown(again), "the same question had two answers")

    def test_many_threads_may_ask_at_once(self) -> None:
        """A leg keeps no state of a call."""
        leg = self.leg_over(ITEMS)
        expected = _shown(leg.search(self.query, limit=50))
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: _shown(leg.search(self.query, limit=50)), range(12)))
        _must(all(answer == expected for answer in answers), "an answer differs when several threads ask")

    def test_an_odd_question_has_an_answer_or_one_sentence(self) -> None:
        """The only exceptions are semmem's own, whose messages are for people."""
        leg = self.leg_over(ITEMS)
        for odd in _ODD:
            try:
                results, total = leg.search(odd, limit=5)
            except SemmemError as error:
                _must(bool(str(error)) and "\n" not in str(error), f"{odd!r}: {error!r} is not one sentence")
            else:
                _must(len(results) <= min(5, total), f"{odd!r}: {len(results)} results of {total}")


def _ids(results: Sequence[Result]) -> list[str]:
    return [result.id for result in results]


def _shown(page: tuple[Sequence[Result], int]) -> tuple[list[tuple[str, float]], int]:
    return [(result.id, result.score) for result in page[0]], page[1]


def _must(holds: bool, otherwise: str) -> None:
    """Fail with a sentence; outside test modules pytest gives assert statements no message."""
    if not holds:
        raise AssertionError(otherwise)
