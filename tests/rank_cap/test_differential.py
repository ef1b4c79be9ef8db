"""Random lists through the real pipeline never contradict a class, and each named assumption is one that matters."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import semmem
from eval.experiments.evidence.provenance import COMMIT, clean
from semmem.rank_cap.places import ASSUMPTIONS
from tests.rank_cap.cases import Case
from tests.rank_cap.differential import CASES, ask, contradictions, dropped, main, run
from tests.rank_cap.worlds import AGED, APART, CROWDED, HARDER, LAPSED, LINKED, THEN, WORLDS, World, world

RESULT = Path(__file__).with_name("differential.json")
ALL_SEEN = {"boost-only: out", "guaranteed: in", "possible: in", "possible: out", "unreachable: out"}


def test_every_part_of_what_is_newer_stands_above_each_part_of_what_it_supersedes() -> None:
    assert run([9_100_047], worlds=LINKED).contradictions == []


def test_what_is_fetched_above_one_memory_and_supersedes_another_too_leaves_that_one_no_guaranteed_place() -> None:
    assert run([27_811], worlds=LINKED[:1]).contradictions == []


def test_a_copy_of_a_superseded_text_that_was_said_again_may_come_from_anywhere() -> None:
    assert run([2_001_682, 2_000_218], worlds=(*LAPSED, *AGED, *APART, *THEN)).contradictions == []
    assert run([2_001_339], worlds=HARDER).contradictions == []


def test_some_hundred_random_recalls_contradict_no_class() -> None:
    # and those that once did: a guaranteed slot that folding brought within the cut, and scores that are all 0
    tally = run([*range(300), 7035, 11654, 12942, 14667, 17963, 22454])
    assert tally.contradictions == []
    assert set(tally.seen) == ALL_SEEN
    assert set(tally.of_several) == {"possible: in", "guaranteed: in"}
    assert tally.scored["boost-only: out"] > 100  # where the fusion reads scores
    assert tally.scored["guaranteed: in"] > 20
    assert set(tally.seen_without_data) == ALL_SEEN - {"unreachable: out"}


def test_some_hundred_random_recalls_contradict_no_class_where_memories_supersede_others() -> None:
    tally = run(range(300), worlds=LINKED)
    assert tally.contradictions == []
    assert set(tally.seen) == ALL_SEEN
    assert tally.hits["superseded"] > 100


def test_some_hundred_random_recalls_contradict_no_class_where_some_memories_are_not_valid_now() -> None:
    tally = run(range(200), worlds=LAPSED)
    assert tally.contradictions == []
    assert set(tally.seen) == ALL_SEEN


def test_some_hundred_random_recalls_contradict_no_class_where_age_counts() -> None:
    tally = run(range(300), worlds=AGED)
    assert tally.contradictions == []
    assert set(tally.seen) == ALL_SEEN


def test_some_hundred_random_recalls_contradict_no_class_where_two_namespaces_are_asked_or_another_time() -> None:
    tally = run(range(200), worlds=(*APART, *THEN))
    assert tally.contradictions == []
    assert set(tally.seen) >= ALL_SEEN - {"unreachable: out"}
    assert tally.hits["of then"] > 50
    assert tally.hits["of two namespaces"] > 100


def test_some_hundred_random_recalls_contradict_no_class_however_hard_the_questions_are() -> None:
    # and one whose leg named two rows twice: of the eleven rows before its own memory, nine were memories
    tally = run([*range(180), 1574], worlds=HARDER)
    assert tally.contradictions == []
    assert set(tally.seen) == ALL_SEEN
    assert tally.hits["by access"] > 50


@pytest.mark.slow
def test_some_hundred_random_recalls_of_many_legs_about_few_memories_contradict_no_class() -> None:
    tally = run(range(240), worlds=CROWDED)
    assert tally.contradictions == []
    assert set(tally.seen) == ALL_SEEN


@pytest.mark.slow
@pytest.mark.timeout(900)  # a recall of another time reads the versions each time
@pytest.mark.parametrize(
    "worlds",
    [LINKED, (*LAPSED, *AGED, *APART, *THEN), HARDER, CROWDED],
    ids=["linked", "others", "harder", "crowded"],
)
def test_four_hundred_random_recalls_contradict_no_class_in_each_kind_of_world(worlds: tuple[str, ...]) -> None:
    tally = run(range(2_000_000, 2_000_400), worlds=worlds)
    assert tally.contradictions == []
    assert (tally.cases, set(tally.seen)) == (400, ALL_SEEN)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_thousand_random_recalls_contradict_no_class() -> None:
    tally = run(range(1_000_000, 1_001_000))  # not those of `make differential`
    assert tally.contradictions == []
    assert (tally.cases, set(tally.seen)) == (1_000, ALL_SEEN)
    assert tally.without_data > 100


def test_the_hundred_thousand_that_were_run_contradict_no_class() -> None:
    told = json.loads(RESULT.read_text(encoding="utf-8"))
    assert (told["cases"], told["contradictions"]) == (CASES, [])
    assert told["worlds"] == list(WORLDS)
    assert [commit for commit in told["commits"] if not clean(commit)] == []
    assert set(told["seen"]) == ALL_SEEN
    assert all(count > 1_000 for count in told["seen"].values())


# ---------------------------------------------------------------------- each assumption, dropped once on purpose


def test_a_record_that_is_whole_runs_nothing_and_says_of_which_code_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = {
        "cases": 100_000, "without data": 0, "worlds": list(WORLDS), "commits": ["0123456789ab"],
        "hits": {}, "seen": {}, "seen without data": {}, "contradictions": [],
    }  # fmt: skip
    path = tmp_path / "differential.json"
    path.write_text(json.dumps(whole), encoding="utf-8")
    main(path)
    assert "holds all 100,000 cases, of commit 0123456789ab; nothing was run." in capsys.readouterr().out
    assert json.loads(path.read_text(encoding="utf-8")) == whole


def test_a_run_that_was_stopped_goes_on_with_the_next_case_and_keeps_what_it_had_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped = {
        "cases": 99_998, "without data": 7, "worlds": list(WORLDS), "commits": ["0123456789ab"],
        "hits": {"by access": 3}, "seen": {"guaranteed: in": 100_000}, "seen without data": {"possible: in": 5},
        "contradictions": ["case 12: dense is boost-only at rank 1, and its own m07 is hit 1"],
    }  # fmt: skip
    path = tmp_path / "differential.json"
    path.write_text(json.dumps(stopped), encoding="utf-8")
    with pytest.raises(SystemExit, match=r"^case 12: dense is boost-only at rank 1"):
        main(path)
    assert capsys.readouterr().out == "100,000 of 100,000 cases, 1 contradictions\n"
    two, told = run([99_998, 99_999], worlds=WORLDS), json.loads(path.read_text(encoding="utf-8"))
    assert (told["cases"], told["contradictions"]) == (100_000, stopped["contradictions"])
    assert told["commits"] == ["0123456789ab", str(COMMIT)]
    assert told["seen"] == dict(two.seen + Counter({"guaranteed: in": 100_000}))
    assert told["hits"] == dict(two.hits + Counter({"by access": 3}))
    assert told["without data"] == 7 + two.without_data


@pytest.fixture(scope="module")
def folding() -> Iterator[World]:
    with world("folding and weighed") as where:
        yield where


def row_ids(where: World, *ids: str) -> list[int]:
    """Return the rows of these memories, part after part."""
    return [row.row_id for id in ids for row in where.rows if row.id == id]


def weighing(where: World, *importances: float) -> list[int]:
    """Return the row of a memory of its own text, one for each importance."""
    left = [row for row in where.rows if row.id < "m20" and row.id not in ("m00", "m01", "m02")]
    out = []
    for importance in importances:
        row = next(row for row in left if row.importance == importance)
        left.remove(row)
        out.append(row.row_id)
    return out


def case_against(name: str, where: World) -> tuple[Case, str]:
    """Return a question that keeps every assumption but ``name``, and the leg of which the class fails."""
    long = next(row.id for row in where.rows if row.part == 8)
    even = weighing(where, *[0.5] * 3)
    plan: dict[str, Any] = {"weights": {"lexical": 1.0, "graph": 0.35}, "prior": False}
    lexical, graph = weighing(where, 1.0, 0.8, 0.2, 1.0), [even[0]]
    how: dict[str, Any] = {"limit": 3}
    fails: frozenset[str] = frozenset()
    links: tuple[tuple[str, str], ...] = ()
    lapsed: tuple[str, ...] = ()
    leg = "graph"
    if name == "lists as deep as k":
        lexical = lexical[:2]
    elif name == "places counted before folding":
        lexical = row_ids(where, long)
    elif name == "every leg answers":
        fails = frozenset({"lexical"})
    elif name == "equal importance":
        plan |= {"prior": True, "weights": {"lexical": 1.0, "graph": 0.9}}  # .9/61 < 1/63 < .9/61/.7
        lexical, graph = weighing(where, 0.0, 0.0, 0.0), weighing(where, 1.0)
    elif name == "sorted by relevance":
        how["sort_by"] = "importance"
        lexical, graph = weighing(where, 0.2, 0.5, 0.5), weighing(where, 1.0)
    elif name == "offset 0":
        how["offset"] = 1
        graph, leg = even, "lexical"
    elif name == "nothing superseded":
        plan |= {"weights": {"lexical": 1.0, "graph": 0.1}}
        lexical, graph = lexical[:3], [even[0], *even[1:]]
        ids = {row.row_id: row.id for row in where.rows}
        links = ((ids[graph[0]], ids[lexical[0]]),)
    elif name == "all valid now":
        ids = {row.row_id: row.id for row in where.rows}
        lapsed = (ids[lexical[0]], ids[lexical[1]])
    elif name == "nothing withheld":
        how["min_confidence"] = 1.0
        graph, leg = even, "lexical"
    elif name == "no reranker":
        plan |= {"rerank": "composite", "rerank_depth": 6}
        lexical = [*weighing(where, 0.0), *weighing(where, 1.0, 1.0, 1.0)]
        graph, leg = even, "lexical"
    recipe = semmem.recipe("seed", **{"reserve": {"lexical": 1}, **plan, "depths": {"dense": 0}})
    scores = {"lexical": [1 - at / 50 for at in range(len(lexical))], "graph": [1.0, 0.5, 0.2][: len(graph)]}
    return Case(
        recipe, how, {"lexical": lexical, "graph": graph}, scores, fails, most=4.0, links=links, lapsed=lapsed
    ), leg


@pytest.mark.parametrize("name", list(ASSUMPTIONS))
def test_without_this_one_assumption_a_class_without_data_fails_and_the_recalls_own_does_not(
    name: str, folding: World
) -> None:
    case, leg = case_against(name, folding)
    found = ask(folding, case)
    bare = semmem.reach(replace(case.recipe, rerank=None), found.limit)
    assert name in bare.assumptions
    assert dropped(found, case, leg) | ({name} if case.recipe.rerank else set()) == {name}
    said = contradictions(found, bare)
    assert said
    assert any(one.startswith(leg) for one in said)
    assert contradictions(found, found.reach) == []
    assert found.reach.assumptions == ()


def test_reach_without_data_names_no_assumption_that_it_does_not_make() -> None:
    assert semmem.reach("default").assumptions == tuple(ASSUMPTIONS)
    reranked = semmem.reach(semmem.recipe("default", rerank="composite")).assumptions
    assert reranked == tuple(name for name in ASSUMPTIONS if name != "no reranker")
