"""What is superseded never stands above what supersedes it, and nothing else moves: in every recipe and both stores."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import semmem
from semmem.fusion import Fused
from semmem.model.recipe import RECIPES
from semmem.read.result import Recall
from semmem.read.superseding import _arranged, _with_score

FACTS = (
    ("The database port is 5432.", "We moved the database to port 6543."),
    ("Ana lives in Lisbon.", "Ana has moved to Porto."),
    ("The deploy runs every night.", "From now on there is a release on Fridays alone."),
    ("Bram leads the project.", "Since May it is Chioma who leads."),
    ("The logo is green.", "The new logo of the firm is blue."),
    ("We ship to Norway.", "Shipping to Norway has ended."),
    ("The office is in Main Street.", "We sit beside the harbour now."),
    ("Tests take ten minutes.", "The suite is done in three minutes since it was split."),
    ("Python 3.9 is the oldest we support.", "Support begins with Python 3.11."),
    ("The budget is 40,000 euros.", "Finance has cut our budget to 30,000."),
    ("The meeting is on Monday.", "Wednesday is when we meet."),
    ("The mascot is a heron.", "An otter took the place of our mascot."),
)
ASKED = (
    "database port", "where does Ana live", "when does the deploy run", "who leads the project", "the logo",
    "do we ship to Norway", "where is the office", "how long do tests take", "which Python do we support",
    "what is the budget", "when is the meeting", "the mascot",
)  # fmt: skip


WORDS = semmem.recipe("default", weights={"graph": 0.0})
"""Without an embedder, the lexical leg alone."""


@pytest.fixture(scope="module", params=["postgres", "sqlite"])
def mem(request: pytest.FixtureRequest, module_store: Callable[[], str]) -> Iterator[semmem.Semmem]:
    """A store of either kind, with the dozen facts linked, in a namespace of many other memories."""
    url = module_store() if request.param == "postgres" else "sqlite::memory:"
    embedder = "hashing" if request.param == "postgres" else "none"
    with semmem.connect(url, embedder=embedder, pool_size=4, resident_mb=0) as mem:  # one path at every recall
        items: list[dict[str, Any]] = []
        for at, (old, new) in enumerate(FACTS):
            items += [{"id": f"old{at:02}", "text": old}, {"id": f"new{at:02}", "text": new}]
        items += [
            {"id": f"other{at:02}", "text": f"Note {at} about the sea, the wind and the tide."} for at in range(20)
        ]
        mem.remember_many(items)
        for at in range(len(FACTS)):
            mem.link(f"new{at:02}", "supersedes", f"old{at:02}")
        yield mem


def in_order(found: Recall) -> None:
    """Prove that what is newer comes first, that scores fall and are the sum of their components, and who is marked."""
    place = {hit.id: hit.rank for hit in found}
    for hit in found:
        assert hit.score == pytest.approx(sum(hit.components.values()), abs=1e-12)
        if hit.id.startswith("old"):
            newer = hit.id.replace("old", "new")
            assert hit.superseded_by == newer
            assert place[newer] < hit.rank
        else:
            assert hit.superseded_by is None
    scores = [hit.score for hit in found]
    assert scores == sorted(scores, reverse=True)


def test_of_copies_of_one_text_the_newest_is_shown_whatever_their_order() -> None:
    text = "The code of the door is 4711."
    with semmem.connect("sqlite::memory:", embedder="none", recipe=WORDS) as mem:
        for at, order in enumerate(itertools.permutations((0.9, 0.5, 0.1))):
            where = f"n{at}"
            for id, importance in zip(("old", "mid", "new"), order, strict=True):
                mem.remember(text, id=id, importance=importance, namespace=where)
            mem.link("mid", "supersedes", "old", namespace=where)
            mem.link("new", "supersedes", "mid", namespace=where)
            (hit,) = mem.recall("the code", namespace=where)
            assert (hit.id, hit.superseded_by, sorted(hit.duplicates)) == ("new", None, ["mid", "old"])
            assert hit.score == pytest.approx(sum(hit.components.values()), abs=1e-12)


def test_what_was_fetched_for_superseding_a_match_counts_in_the_total_of_every_page() -> None:
    with semmem.connect("sqlite::memory:", embedder="none", recipe=WORDS) as mem:
        mem.remember("The zebra is in the stable.", id="old")
        mem.remember("It was sold.", id="new")
        mem.link("new", "supersedes", "old")
        pages = [mem.recall("zebra", limit=1, offset=at) for at in range(3)]
    assert [[hit.id for hit in page] for page in pages] == [["new"], ["old"], []]
    assert [(page.total, page.total_is_exact) for page in pages] == [(2, page.total_is_exact) for page in pages]


def test_what_a_sensitive_memory_supersedes_is_marked_and_the_sensitive_one_is_not_returned(mem: semmem.Semmem) -> None:
    mem.remember("The code of the boathouse is 4711.", id="before", namespace="hidden")
    mem.remember("It has another code now.", id="after", namespace="hidden", sensitive=True)
    mem.link("after", "supersedes", "before", namespace="hidden")
    found = mem.recall("boathouse", namespace="hidden")
    assert [(hit.id, hit.superseded_by) for hit in found] == [("before", "after")]
    assert found.total == 1
    assert "another code" not in str(found.as_dict())


@pytest.mark.parametrize("recipe", [*RECIPES, "reranked"])
def test_of_a_dozen_superseded_facts_none_is_above_the_new_one(recipe: str, mem: semmem.Semmem) -> None:
    plan = semmem.recipe("default", rerank="composite", rerank_depth=5) if recipe == "reranked" else recipe
    shown = 0
    for asked in ASKED:
        found = mem.recall(asked, recipe=plan, limit=10)
        in_order(found)
        shown += sum(hit.id.startswith("old") for hit in found)
        if recipe != "nexus":  # of which each page asks the legs for another number
            pages = [hit.id for at in range(0, 9, 3) for hit in mem.recall(asked, recipe=plan, limit=3, offset=at)]
            assert pages == [hit.id for hit in found][:9]
    without = mem.store.kind == "SQLite" and recipe in ("dense", "graph")
    assert shown >= (0 if without else 10)  # as history it is still found


def test_nobody_else_moves_and_a_recipe_can_leave_it_out(mem: semmem.Semmem) -> None:
    for asked in ASKED:
        plain = mem.recall(asked, recipe=semmem.recipe("default", superseding=False), limit=44)
        found = mem.recall(asked, limit=44)
        assert all(hit.superseded_by is None for hit in plain)
        assert [hit.id for hit in found if hit.id.startswith("other")] == [
            hit.id for hit in plain if hit.id.startswith("other")
        ]
        found_by_a_leg = [hit for hit in found if hit.legs]
        assert {hit.id: hit.legs for hit in found_by_a_leg} == {hit.id: hit.legs for hit in plain}


def test_a_leg_by_itself_has_its_own_order(mem: semmem.Semmem) -> None:
    results, _ = mem.leg("lexical").search("database port", limit=2)
    assert {one.id for one in results} == {"old00", "new00"}
    assert results[0].score == 1.0


@pytest.mark.parametrize("sort_by", ["importance", "created", "updated", "accessed"])
def test_in_another_order_too_the_newer_one_comes_first(sort_by: Any, mem: semmem.Semmem) -> None:
    for asked in ASKED:
        found = mem.recall(asked, limit=44, sort_by=sort_by)
        place = {hit.id: hit.rank for hit in found}
        for hit in found:
            assert hit.score == pytest.approx(sum(hit.components.values()), abs=1e-12)
            if hit.id.startswith("old"):
                assert place[hit.id.replace("old", "new")] < hit.rank


# ---------------------------------------------------------------------- by hand, in a store without vectors


@pytest.fixture
def small() -> Iterator[semmem.Semmem]:
    """A store with the lexical leg alone."""
    with semmem.connect("sqlite::memory:", embedder="none", recipe=WORDS) as mem:
        yield mem


def shown(found: Recall) -> list[tuple[str, str | None]]:
    """Return each hit's id, and what supersedes it."""
    return [(hit.id, hit.superseded_by) for hit in found]


def test_the_newest_of_a_chain_is_fetched_and_stands_directly_above(small: semmem.Semmem) -> None:
    small.remember_many([{"id": "a", "text": "The heron is grey."}, {"id": "b", "text": "It is white."},
                         {"id": "c", "text": "It is black."}, {"id": "d", "text": "A heron."}])  # fmt: skip
    assert shown(small.recall("heron")) == [("d", None), ("a", None)]
    small.link("b", "supersedes", "a")
    small.link("c", "supersedes", "b")
    found = small.recall("heron")
    assert shown(found) == [("d", None), ("c", None), ("a", "c")]
    assert (found[1].score, found[1].components, found[1].legs) == (found[2].score, {"superseding": found[1].score}, {})
    small.forget("c", hard=True)
    assert shown(small.recall("heron")) == [("d", None), ("b", None), ("a", "b")]


def test_what_the_filters_leave_out_is_not_fetched_and_the_hit_says_still_that_it_is_outdated(
    small: semmem.Semmem,
) -> None:
    bird = {"tags": ["bird"]}
    small.remember("The heron is grey.", id="a", **bird)
    small.remember("It is white.", id="b")
    small.remember("It is black.", id="c", **bird)
    small.link("b", "supersedes", "a")
    assert shown(small.recall("heron", filters={"tags": ["bird"]})) == [("a", "b")]
    assert shown(small.recall("heron", exclude=["b"])) == [("a", "b")]
    small.link("c", "supersedes", "b")
    assert shown(small.recall("heron", filters={"tags": ["bird"]})) == [("c", None), ("a", "c")]
    assert shown(small.recall("heron", exclude=["c"])) == [("b", "c"), ("a", "c")]


def test_the_newer_one_takes_the_place_and_score_of_the_older_one_which_falls_back_to_its_own(
    small: semmem.Semmem,
) -> None:
    small.remember_many([{"id": "a", "text": "heron heron heron"}, {"id": "x", "text": "a heron and a heron"},
                         {"id": "b", "text": "The bird that we once called a heron is none."}])  # fmt: skip
    before = small.recall("heron")
    assert shown(before) == [("a", None), ("x", None), ("b", None)]
    small.link("b", "supersedes", "a")
    after = small.recall("heron")
    assert shown(after) == [("b", None), ("x", None), ("a", "b")]
    assert [hit.score for hit in after] == [hit.score for hit in before]
    rise = before[0].score - before[2].score
    assert after[0].components == pytest.approx({"lexical": before[2].score, "superseding": rise})
    assert after[2].components == pytest.approx({"lexical": before[2].score})


def test_what_supersedes_a_copy_of_itself_is_the_one_that_is_shown(small: semmem.Semmem) -> None:
    small.remember_many(
        [{"id": "a", "text": "A heron."}, {"id": "b", "text": "a  heron"}, {"id": "c", "text": "A heron."}]
    )
    small.link("c", "supersedes", "a")
    found = small.recall("heron")
    assert [(hit.id, hit.duplicates) for hit in found] == [("c", ("a", "b"))]


def test_a_text_that_is_said_again_after_it_was_superseded_is_shown_as_new_and_not_as_its_superseded_copy(
    small: semmem.Semmem,
) -> None:
    for day, (id, text) in enumerate([("a", "A grey heron."), ("b", "The heron is white."), ("c", "A grey heron.")], 1):
        small.remember(text, id=id, created_at=datetime(2026, 1, day, tzinfo=UTC))
    small.link("b", "supersedes", "a")
    found = small.recall("grey heron")
    assert [(hit.id, hit.superseded_by, hit.duplicates) for hit in found] == [("c", None, ("a",)), ("b", None, ())]
    assert [hit.score for hit in found] == [pytest.approx(sum(hit.components.values()), abs=1e-12) for hit in found]
    assert "takes the place of an older memory" not in str(found.explain("b"))
    assert shown(small.recall("grey heron", exclude=["b"])) == [("a", "b")]  # how old b is, is not known then
    small.update("c", created_at=datetime(2026, 1, 1, tzinfo=UTC))
    assert shown(small.recall("grey heron")) == [("b", None), ("a", "b")]


def test_a_memory_that_supersedes_many_stands_before_all_of_them(small: semmem.Semmem) -> None:
    small.remember_many({"id": f"n{at}", "text": f"heron {'sea ' * at}"} for at in range(6))
    for at in range(5):
        small.link("n5", "supersedes", f"n{at}")
    assert [hit.id for hit in small.recall("heron")] == ["n5", "n0", "n1", "n2", "n3", "n4"]


def test_of_two_that_supersede_one_both_stand_before_it(small: semmem.Semmem) -> None:
    small.remember_many({"id": f"n{at}", "text": f"heron {'sea ' * at}"} for at in range(4))
    small.link("n1", "supersedes", "n0")
    small.link("n3", "supersedes", "n0")
    assert [hit.id for hit in small.recall("heron")] == ["n1", "n3", "n2", "n0"]


def test_of_two_of_one_time_that_supersede_one_the_newest_is_the_one_of_the_higher_id(small: semmem.Semmem) -> None:
    day = datetime(2026, 3, 1, tzinfo=UTC)
    small.remember_many({"id": f"n{at}", "text": f"heron {'sea ' * at}", "created_at": day} for at in (3, 0, 1, 2))
    for newer in ("n3", "n1", "n2"):
        small.link(newer, "supersedes", "n0")
    assert {hit.id: hit.superseded_by for hit in small.recall("heron")}["n0"] == "n3"
    assert [memory.id for memory in small.list()] == ["n3", "n2", "n1", "n0"]


def test_a_long_memory_is_put_above_what_it_supersedes_by_its_first_part(small: semmem.Semmem) -> None:
    long = "\n\n".join(f"Chapter {at} " + " ".join(f"w{at}x{n}" for n in range(300)) + "." for at in range(4))
    small.remember_many([{"id": "old", "text": "A heron."}, {"id": "new", "text": long}])
    small.link("new", "supersedes", "old")
    found = small.recall("heron")
    assert shown(found) == [("new", None), ("old", "new")]
    assert (found[0].part, found[0].text) == (1, long)


def test_an_explanation_sums_up_and_says_who_supersedes_whom(small: semmem.Semmem) -> None:
    small.remember_many([{"id": "a", "text": "The heron is grey."}, {"id": "b", "text": "It is white."}])
    small.link("b", "supersedes", "a")
    found = small.recall("heron")
    new, old = found.explain("b"), found.explain("a")
    assert (new.rank, new.returned, new.score, new.components) == (1, True, found[0].score, dict(found[0].components))
    assert (old.rank, old.superseded_by, new.superseded_by) == (2, "b", None)
    assert sum(new.components.values()) == new.score
    assert "superseding: +0" in str(new)
    assert "superseded by b, so it ranks below it" in str(old)
    small.remember("Nothing of the kind.", id="c")
    small.link("b", "supersedes", "c")
    assert found.explain("c").superseded_by == "b"


def test_a_memory_that_is_gone_supersedes_nothing(small: semmem.Semmem) -> None:
    small.remember_many([{"id": "a", "text": "The heron is grey."}, {"id": "b", "text": "It is white."}])
    small.link("b", "supersedes", "a")
    small.forget("b")
    assert shown(small.recall("heron")) == [("a", None)]
    assert small.links("a") == []


def test_without_links_nothing_is_asked_of_them(small: semmem.Semmem, monkeypatch: pytest.MonkeyPatch) -> None:
    small.remember("A heron.", id="a")
    small.remember("A coot.", id="b")
    life = type(small.store.life)
    asked: list[Any] = []
    before = life.newer
    monkeypatch.setattr(life, "newer", lambda self, *given: asked.append(given) or before(self, *given))
    small.recall("heron")
    small.link("a", "see-also", "b")
    small.recall("heron")
    assert asked == []
    small.link("b", "supersedes", "a")
    small.recall("heron")
    assert len(asked) == 1


def test_reach_of_a_recall_says_that_what_supersedes_may_come_from_anywhere(small: semmem.Semmem) -> None:
    small.remember_many({"id": f"n{at}", "text": f"heron {'sea ' * at}"} for at in range(9))
    free = small.recall("heron", limit=3, recipe="lexical").reach.regimes["any"].legs["lexical"]
    small.link("n8", "supersedes", "n1")
    found = small.recall("heron", limit=3, recipe="lexical")
    held = found.reach.regimes["any"].legs["lexical"]
    assert [hit.id for hit in found] == ["n0", "n8", "n2"]
    assert (free.guaranteed_ranks, held.guaranteed_ranks) == (3, 0)
    assert held.class_at(9) == "possible"


@given(st.integers(1, 12), st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=20))
def test_places_are_shared_out_within_a_chain_alone(size: int, pairs: list[tuple[int, int]]) -> None:
    # of two places the one that must come first has the larger number here, so there is no circle
    ahead = [sorted({max(p) for p in pairs if min(p) == at and at < max(p) < size}) for at in range(size)]
    order = _arranged(ahead)
    assert sorted(order) == list(range(size))
    for at in range(size):
        assert all(order.index(one) < order.index(at) for one in ahead[at])
    tied = {at for at in range(size) if ahead[at]} | {one for of in ahead for one in of}
    assert all(order[at] == at for at in range(size) if at not in tied)


@pytest.mark.parametrize(("before", "after"), [(0.0, -1.5), (0.0, 0.5), (2.0, 1.0), (-1.0, -2.0), (-1.0, 0.0)])
def test_whatever_score_a_reranker_gives_the_components_sum_to_it(before: float, after: float) -> None:
    fused, _ = _with_score((Fused(("n", "a", 0), before, {"one": before + 1.0, "two": -1.0}, {}), ()), after)
    assert fused.score == after
    assert sum(fused.components.values()) == pytest.approx(after)
