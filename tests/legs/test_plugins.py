"""Legs of one's own: declared by a package, given to connect, or registered; asked like ours, degraded like ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.legs import Absent, Legs
from semmem.model.exchange import Question, Ranking, Scope
from semmem.model.filters import Within, matches, within
from semmem.model.protocols import Leg
from semmem.model.recipe import Fusion, Recipe
from semmem.model.search import Found, Reader, Result, as_result
from semmem.model.store import Snapshot
from semmem.model.types import Filters, Memory
from semmem.read.recall_plan import plan_of

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "regex_leg"


TAKEN = ("exact", "reserve", "rerank", "recall", "settings", "total")


class Tagged:
    """Finds memories by a mark in their metadata that the query names; keeps what it was asked."""

    name = "tagged"

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.asked: list[tuple[str, int, int, Within | None]] = []

    def search(self, query: str, *, limit: int = 10, offset: int = 0, filters: Within | None = None) -> Found:
        self.asked.append((query, limit, offset, filters))
        found = [m for m in self.reader.memories(filters or Within()) if m.metadata.get("mark") in query.split()]
        found.sort(key=lambda m: m.id)
        return [Result(m.id, 1.0, namespace=m.namespace) for m in found[offset : offset + limit]], len(found)


class Fixed:
    """Returns what it was told to, whatever the filters say."""

    name = "fixed"

    def __init__(self, results: Any, total: Any = None) -> None:
        self.results, self.total = results, total

    def search(self, query: str, *, limit: int = 10, offset: int = 0, filters: Within | None = None) -> Any:
        if not isinstance(self.results, list):
            return self.results
        return self.results[offset : offset + limit], len(self.results) if self.total is None else self.total


@pytest.fixture(scope="module")
def opened(module_store: Callable[[], str]) -> Iterator[semmem.Semmem]:
    with semmem.connect(module_store(), embedder="none") as mem:
        mem.remember_many(
            {
                "id": f"m{n:02}",
                "text": f"The ferry left the quay at hour {n}.",
                "tags": ["kept"] if n >= 8 else ["old"],
                "metadata": {"mark": "late"} if n >= 8 else {},
                "session": "log" if n % 2 else "day",
                "title": "Ferry",
                "source": f"log/{n}.md",
            }
            for n in range(12)
        )
        mem.remember("The ferry is elsewhere.", id="m08", namespace="other", metadata={"mark": "late"})
        mem.remember("Every quay has a lamp. " * 100, id="long", namespace="parts", metadata={"mark": "late"})
        yield mem


@pytest.fixture
def mem(opened: semmem.Semmem) -> Iterator[semmem.Semmem]:
    """A store whose tests register what they like; it is forgotten afterwards."""
    yield opened
    for name in [*opened._here.legs._factories]:
        del opened._here.legs._factories[name]
        opened._here.legs._legs.pop(name, None)


def with_leg(name: str, weight: float = 1.0, constant: float = 1.0, base: str = "lexical") -> Recipe:
    return semmem.recipe(base, weights={name: weight}, rank_constants={name: constant})


def ids(found: Sequence[semmem.Hit]) -> list[str]:
    return [hit.memory.id for hit in found]


# ---------------------------------------------------------------------- taking part


def test_a_registered_leg_takes_part_in_fusion_components_total_and_explanation(mem: semmem.Semmem) -> None:
    mem.register_leg("tagged", Tagged)
    found = mem.recall("late lamp", recipe=with_leg("tagged"), limit=3)
    # the lexical leg finds nothing here, so the first place of tagged has (1/2) / (1/2 + 1/61) of what there is to have
    most = 1 / 2 + 1 / 61
    assert ids(found) == ["m08", "m09", "m10"]
    assert found[0].components == {"tagged": pytest.approx(0.85 * (1 / 2) / most)}  # importance .5: x .85
    assert found[0].legs["tagged"] == semmem.LegRank(1, 1.0)
    assert (found.total, found.degraded) == (4, {})
    why = found.explain("m11")
    assert why.legs["tagged"].rank == 4
    assert why.legs["tagged"].needs["rank"] == 3
    assert found.reach.regimes["any"].legs["tagged"].class_ == "guaranteed"
    assert "tagged" in found.timings


def test_the_arithmetic_of_reach_holds_for_a_leg_of_ones_own(mem: semmem.Semmem) -> None:
    mem.register_leg("tagged", Tagged)
    light = with_leg("tagged", weight=0.1, constant=60)
    assert semmem.reach(light, 3).regimes["any"].legs["tagged"].class_ == "boost-only"
    # .1/61 = .0016 against 1/63 = .0159: three memories about the ferry stay ahead
    assert ids(mem.recall("ferry late", recipe=light, limit=3, filters={"sessions": ["day"]})) == ["m08", "m10", "m00"]
    only = mem.recall('late "ferry left"', recipe=light, limit=3, exclude=["m08", "m09", "m10", "m11"])
    assert [set(hit.components) for hit in only] == [{"lexical"}] * 3


def test_filters_excluded_ids_and_namespaces_reach_the_leg_and_bind_it(mem: semmem.Semmem) -> None:
    made: list[Tagged] = []
    mem.register_leg("tagged", lambda reader: made.append(Tagged(reader)) or made[0])
    found = mem.recall(
        "late", recipe=with_leg("tagged"), filters={"sessions": "log"}, exclude=["m09"], namespace=["default", "other"]
    )
    assert ids(found) == ["m11"]
    query, limit, offset, filters = made[0].asked[0]
    assert (query, limit, offset) == ("late", 150, 0)
    assert filters == Within(sessions=("log",), namespaces=("default", "other"), exclude=("m09",))
    mem.recall("late", recipe=with_leg("tagged"))
    assert len(made) == 1  # one leg, made when it was first asked


def test_a_leg_that_forgets_its_filters_is_asked_on_until_the_limit_is_met(mem: semmem.Semmem) -> None:
    everything = Fixed([Result(f"m{n:02}", 1 - n / 100) for n in range(12)])
    mem.register_leg("fixed", lambda reader: everything)
    narrow = semmem.recipe(with_leg("fixed"), depths={"fixed": 2})
    found = mem.recall("lamp", recipe=narrow, filters={"tags": ["kept"]}, limit=2)
    assert ids(found) == ["m08", "m09"]


def test_an_id_that_is_in_two_namespaces_goes_where_the_result_says(mem: semmem.Semmem) -> None:
    mem.register_leg("fixed", lambda reader: Fixed([Result("m08", 0.9, namespace="other"), Result("nobody", 0.8)]))
    found = mem.recall("lamp", recipe=with_leg("fixed"), namespace=["default", "other"])
    assert [(hit.memory.id, hit.memory.namespace) for hit in found] == [("m08", "other")]


def test_a_long_memory_is_found_by_its_parts_or_as_a_whole(mem: semmem.Semmem) -> None:
    mem.register_leg("tagged", Tagged)
    found, total = mem.leg("tagged", namespace="parts").search("late", limit=2)
    assert ([(r.id, r.type) for r in found], total) == ([("long", "memory")], 1)  # the best part of one memory
    mem.register_leg("fixed", lambda reader: Fixed([Result("long", 1.0)]))
    hit = mem.recall("x", recipe=with_leg("fixed"), namespace="parts")[0]
    assert (hit.id, hit.part) == ("long", 1)


def test_an_id_that_looks_like_a_parts_is_the_memory_of_that_id_unless_the_leg_says_part(mem: semmem.Semmem) -> None:
    mem.remember("A memory of its own.", id="long#2", namespace="parts")
    for type, wanted in (("memory", ("long#2", None)), ("part", ("long", 2))):
        mem.register_leg(type, lambda reader, type=type: Fixed([Result("long#2", 1.0, type=type)]))  # type: ignore[misc]
        hit = mem.recall("x", recipe=with_leg(type), namespace="parts")[0]
        assert (hit.id, hit.part) == wanted
    mem.forget("long#2", namespace="parts")  # the store is the module's


def test_a_leg_of_the_inner_protocol_can_be_registered_too(mem: semmem.Semmem) -> None:
    class Last:
        name = "last"

        def __init__(self, reader: Reader) -> None:
            self.store = reader.store

        def search(self, question: Question, scope: Scope, recipe: Recipe) -> Ranking:
            row_ids = [o for o, _ in self.store.indexed_after(scope.namespaces[0], 0, 100)][::-1]
            return Ranking(tuple(row_ids), tuple(1 / n for n in range(1, len(row_ids) + 1)), len(row_ids))

    mem.register_leg("last", Last)
    assert ids(mem.recall("lamp", recipe=with_leg("last"), limit=2)) == ["m11", "m10"]


def test_the_graph_starts_from_what_a_leg_of_ones_own_finds(mem: semmem.Semmem) -> None:
    mem.register_leg("tagged", Tagged)
    recipe = semmem.recipe("graph", weights={"tagged": 1.0}, rank_constants={"tagged": 60})
    found = mem.recall("late", recipe=recipe, limit=4)
    assert all({"tagged", "graph"} <= set(hit.legs) for hit in found)


# ---------------------------------------------------------------------- going wrong


@pytest.mark.parametrize("scores", [(float("nan"), 0.5), (float("inf"), 0.5), (0.5,)])
@pytest.mark.parametrize("fusion", ["rrf", "convex"])
def test_a_leg_of_the_inner_protocol_without_a_finite_score_for_each_memory_is_degraded_and_the_others_answer(
    mem: semmem.Semmem, fusion: Fusion, scores: tuple[float, ...]
) -> None:
    class Odd:
        name = "odd"

        def search(self, question: Question, scope: Scope, recipe: Recipe) -> Ranking:
            return Ranking((1, 2), scores, 2)

    mem.register_leg("odd", lambda _reader: Odd())
    found = mem.recall("lamp", recipe=semmem.recipe(with_leg("odd"), fusion=fusion))
    assert found.degraded["odd"] == "The leg 'odd' must give each memory one score that is a finite number."
    assert ids(found) == ids(
        mem.recall("lamp", recipe=semmem.recipe(with_leg("odd"), fusion=fusion, depths={"odd": 0}))
    )


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Ranking((1.0, 2.0), (1.0, 0.5), 2), "must name memories by their row ids, which are whole numbers."),  # type: ignore[arg-type]
        (Ranking(("m01",), (1.0,), 1), "must name memories by their row ids, which are whole numbers."),  # type: ignore[arg-type]
        (Ranking((2**70,), (1.0,), 1), "must name memories by their row ids, which are whole numbers."),
        (((1, 2), (1.0, 0.5)), "must return a Ranking, not tuple."),
    ],
)
def test_a_leg_of_the_inner_protocol_that_names_no_row_ids_is_degraded_and_the_others_answer(
    mem: semmem.Semmem, answer: Any, reason: str
) -> None:
    class Odd:
        name = "odd"

        def search(self, question: Question, scope: Scope, recipe: Recipe) -> Any:
            return answer

    mem.register_leg("odd", lambda _reader: Odd())
    found = mem.recall("ferry", recipe=with_leg("odd"), namespace=["default", "other"])
    assert (len(found), found.degraded) == (10, {"odd": f"The leg 'odd' {reason}"})


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (object(), "is not a leg: its search must take"),
        (Fixed("nothing"), r"must return \(results, total\), not str"),
        (Fixed([Result("m01", 2.0)]), "falling scores in"),
        (Fixed([Result("m01", 0.1), Result("m02", 0.2)]), "'m02' has 0.2"),
        (Fixed([Result("m01", float("nan"))]), "without an id and a finite score"),
        (Fixed(["m01"]), "without an id and a finite score"),
    ],
)
def test_a_leg_that_does_not_keep_the_contract_is_degraded_with_the_reason(
    mem: semmem.Semmem, made: Any, reason: str
) -> None:
    import re

    mem.register_leg("bad", lambda reader: made)
    found = mem.recall("ferry", recipe=with_leg("bad"))
    assert len(found) == 10  # of the lexical leg
    assert re.search(reason, found.degraded["bad"]), found.degraded


def test_a_leg_that_ends_the_program_is_degraded_and_the_program_goes_on(mem: semmem.Semmem) -> None:
    class Leaves(Fixed):
        def search(self, query: str, *, limit: int = 10, offset: int = 0, filters: Within | None = None) -> Any:
            raise SystemExit(3)

    mem.register_leg("leaves", lambda reader: Leaves([]))
    found = mem.recall("ferry", recipe=with_leg("leaves"), limit=2)
    assert (len(found), found.degraded) == (2, {"leaves": "SystemExit: 3"})


class Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_a_leg_whose_error_has_no_readable_text_is_degraded_by_its_type(mem: semmem.Semmem) -> None:
    class Fails(Fixed):
        def search(self, query: str, *, limit: int = 10, offset: int = 0, filters: Within | None = None) -> Any:
            raise Unreadable

    def broken(reader: Reader) -> Any:
        raise Unreadable

    mem.register_leg("fails", lambda reader: Fails([]))
    mem.register_leg("broken", broken)
    plan = with_leg("fails")
    found = mem.recall("ferry", recipe=plan, limit=2)
    assert (len(found), found.degraded) == (2, {"fails": "Unreadable, whose text cannot be read"})
    with pytest.raises(semmem.LegFailed, match="could not be made: Unreadable, whose text cannot be read"):
        mem.leg("broken").search("ferry")


def test_a_factory_that_raises_is_a_degraded_leg(mem: semmem.Semmem) -> None:
    def broken(reader: Reader) -> Any:
        raise RuntimeError("no licence")

    mem.register_leg("broken", broken)
    found = mem.recall("ferry", recipe=with_leg("broken"), limit=2)
    assert len(found) == 2
    assert found.degraded == {"broken": "The leg 'broken', registered, could not be made: RuntimeError: no licence"}
    with pytest.raises(semmem.LegFailed, match="no licence"):
        mem.leg("broken").search("ferry")


def test_a_name_that_nobody_knows_is_one_sentence_that_names_what_is_known(mem: semmem.Semmem) -> None:
    mem.register_leg("tagged", Tagged)
    with pytest.raises(semmem.InvalidInput) as raised:
        mem.recall("ferry", recipe=with_leg("taged"))
    assert str(raised.value) == (
        "There is no leg named 'taged'; choose one of lexical, dense, graph, tagged. Add yours with register_leg, or "
        "install the package that brings it."
    )
    with pytest.raises(semmem.InvalidInput, match="choose one of lexical, dense, graph, tagged"):
        mem.leg("taged")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("lexical", "is taken"),
        *((n, "is reserved, as it has another meaning") for n in TAKEN),
        ("a leg", "letters, digits"),
        ("", "letters, digits"),
    ],
)
def test_a_name_that_is_taken_or_no_name_is_refused(mem: semmem.Semmem, name: str, sentence: str) -> None:
    with pytest.raises(semmem.InvalidInput, match=sentence):
        mem.register_leg(name, Tagged)


# ---------------------------------------------------------------------- declared by a package


def installed(folder: Path, declared: str) -> dict[str, str]:
    """Lay down what pip lays down of the example, with these entry points; return the environment that sees it."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = folder / f"semmem_regex_leg-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    (info / "entry_points.txt").write_text(f"[semmem.legs]\n{declared}\n")
    (folder / "regex_leg.py").write_bytes((EXAMPLE / "regex_leg.py").read_bytes())
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]), "SEMMEM_EMBEDDER": "none"}


PROGRAM = """
import json, sys, semmem
recipe = semmem.recipe("lexical", weights={"regex": 1.0}, rank_constants={"regex": 10})
with semmem.connect(sys.argv[1]) as mem:
    before = "regex_leg" in sys.modules
    mem.recall("ferry", recipe="lexical")
    loaded = "regex_leg" in sys.modules
    mem.remember("Crate ZQ-4071 stands by the door.", id="crate")
    found = mem.recall(r"/zq-\\d{4}/", recipe=recipe)
    probed = [one.dropped for one in mem.probe(recipe=recipe, leg="regex")]
    print(json.dumps([before, loaded, [h.memory.id for h in found], dict(found.degraded), probed]))
"""


def test_the_example_is_declared_by_an_entry_point_and_loaded_only_when_a_recipe_names_it(
    store_url: str, tmp_path: Path
) -> None:
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = project["entry-points"]["semmem.legs"]
    assert declared == {"regex": "regex_leg:RegexLeg"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, store_url],
        env=installed(tmp_path, f"regex = {declared['regex']}"), capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == [False, False, ["crate"], {}, [None]]


def test_an_entry_point_that_cannot_be_loaded_is_a_degraded_leg(
    mem: semmem.Semmem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, "typo = regex_leg:NoSuchLeg\nlost = no_such_module:Leg\nlexical = regex_leg:RegexLeg")
    monkeypatch.syspath_prepend(str(tmp_path))
    legs = Legs(mem.store, {"lexical": mem._here.legs["lexical"]})
    assert list(legs) == ["lexical", "lost", "typo"]
    assert legs["lexical"] is mem._here.legs["lexical"]  # nobody takes a name of ours
    for name, reason in (("typo", "regex_leg:NoSuchLeg, could not be made: Attr"), ("lost", "ModuleNotFoundError: No")):
        with pytest.raises(semmem.LegFailed, match=reason):
            legs[name]
    monkeypatch.setattr(mem._here.legs, "_declared", legs._declared)
    found = mem.recall("ferry", recipe=with_leg("lost"), limit=2)
    assert len(found) == 2
    assert "declared as no_such_module:Leg, could not be made: ModuleNotFoundError" in found.degraded["lost"]


# ---------------------------------------------------------------------- a leg by its inner search


class Inner:
    """A leg that is given row ids and scores to return, by the three arguments of a recall; keeps the second."""

    def __init__(self, *scores: float) -> None:
        self.scores = scores
        self.given: list[Any] = []

    def search(self, question: Question, scope: Any, recipe: Recipe) -> Ranking:
        self.given.append(scope)
        return Ranking(tuple(range(1, len(self.scores) + 1)), self.scores, len(self.scores))


class Reading(Inner):
    reads_snapshot = True
    reads_vector = False
    witness = ("which crate?", "The crate is here.")


def test_a_leg_by_its_inner_search_has_the_usual_attributes_where_it_has_none(mem: semmem.Semmem) -> None:
    inner, reading = Inner(1.0, 0.5), Reading(1.0)
    mem.register_leg("inner", lambda _: inner)
    mem.register_leg("reading", lambda _: reading)
    for name in ("inner", "reading"):
        found = mem.recall("ferry", recipe=with_leg(name))
        assert (found.degraded, name in found[0].components) == ({}, True)
    assert (type(inner.given[0]), inner.given[0].namespaces) == (Scope, ("default",))
    assert reading.given[0].scope.namespaces == ("default",)
    of = {name: mem._here.legs[name] for name in ("inner", "reading", "lexical", "dense")}
    assert {name: (leg.name, leg.reads_vector, leg.follows, leg.witness) for name, leg in of.items()} == {
        "inner": ("inner", True, False, None),
        "reading": ("reading", False, False, ("which crate?", "The crate is here.")),
        "lexical": ("lexical", False, False, None),
        "dense": ("dense", True, False, None),
    }


def test_a_leg_that_says_all_of_itself_is_asked_as_it_is(mem: semmem.Semmem) -> None:
    class Whole(Leg):
        name = "whole"
        reads_vector = False

        def search(self, question: Question, snapshot: Snapshot, recipe: Recipe) -> Ranking:
            return Ranking((2,), (1.0,), 1)

    whole = Whole()
    mem.register_leg("whole", lambda _: whole)
    assert mem.recall("nothing of the kind", recipe=with_leg("whole"))[0].components.keys() == {"whole"}
    assert mem._here.legs["whole"] is whole


@pytest.mark.parametrize("scores", [(float("nan"),), (1.0, float("inf"))])
def test_a_leg_whose_scores_are_no_numbers_is_degraded(mem: semmem.Semmem, scores: tuple[float, ...]) -> None:
    mem.register_leg("inner", lambda _: Inner(*scores))
    found = mem.recall("ferry", recipe=with_leg("inner"), limit=1)
    assert found.degraded == {"inner": "The leg 'inner' must give each memory one score that is a finite number."}


def test_a_plan_asks_a_leg_what_it_is_and_not_its_name() -> None:
    class Last(Leg):
        name = "dense"
        follows = True

        def search(self, question: Question, snapshot: Snapshot, recipe: Recipe) -> Ranking:
            return Ranking()

    class Blind(Last):
        name = "graph"
        reads_vector = follows = False

    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        legs = Legs(mem.store, {"lexical": Absent("lexical", "It is away."), "dense": Last(), "graph": Blind()})
        plan = plan_of(semmem.recipe("default"), legs)
    # lexical is not asked; dense reads the vector first, so it is not begun before the model; graph needs none
    assert (plan.legs, plan.last, plan.readers) == (("graph",), "dense", ("dense",))
    assert (plan.early, plan.absent) == ({"graph"}, {"lexical": "It is away."})


# ---------------------------------------------------------------------- the contract itself


def test_what_a_python_leg_filters_is_what_the_store_filters(mem: semmem.Semmem) -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    memory = Memory("a", "default", "text", author="ada", session="s", tags=("x", "y"), created_at=at,
                    metadata={"n": 1, "deep": {"list": [1, {"k": "v"}], "flag": True}})  # fmt: skip
    assert matches(memory, Within())
    for fits in (
        {"sessions": ("s", "t")}, {"authors": ("ada",)}, {"tags": ("y",)}, {"created_after": at},
        {"metadata": {"n": 1}}, {"metadata": {"deep": {"list": [{"k": "v"}]}}}, {"metadata": {"n": 1.0}},
        {"exclude": ("b",)},
    ):  # fmt: skip
        assert matches(memory, Within(**fits)), fits
    for wrong in (
        {"sessions": ("t",)}, {"authors": ("bob",)}, {"tags": ("x", "z")}, {"created_before": at},
        {"metadata": {"n": 2}}, {"metadata": {"deep": {"list": [2]}}}, {"metadata": {"deep": {"flag": 1}}},
        {"namespaces": ("other",)}, {"exclude": ("a",)}, {"metadata": {"n": {"x": 1}}},
    ):  # fmt: skip
        assert not matches(memory, Within(**wrong)), wrong
    part = Memory("a#1", "default", "text", parent_id="a")
    assert matches(part, Within(exclude=("a#1",)))  # that would be another memory
    assert not matches(part, Within(exclude=("a",)))
    assert within(Filters(tags=("x",)), ["n"], ["a"]) == Within(tags=("x",), namespaces=("n",), exclude=("a",))
    for narrowed in ({"sessions": ["log"]}, {"tags": ["kept"]}, {"created_after": "2020-01-01"}):
        page = {m.id for m in mem.list(filters=narrowed)}
        from semmem.model.filters import checked_filters

        reader = mem._here.legs._reader
        assert {m.id for m in reader.memories(within(checked_filters(narrowed), ["default"]))} == page != set()


def test_the_contract_can_be_used_without_any_back_end() -> None:
    code = (
        "import sys, semmem.model.search, semmem.conformance\n"
        "bad = {'psycopg', 'sqlite3', 'numpy', 'pydantic', 'semmem.stores', 'semmem.legs', 'semmem.read.recall'}\n"
        "sys.exit(', '.join(sorted(bad & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_hit_as_a_result_keeps_its_components_and_a_single_leg_has_none(mem: semmem.Semmem) -> None:
    hit = mem.recall("ferry", recipe="lexical", limit=1)[0]
    whole, single = as_result(hit), as_result(hit, score=0.5)
    assert (whole.id, whole.title, whole.source, whole.type) == ("m00", "Ferry", "log/0.md", "memory")
    assert whole.components == {"lexical": whole.score}
    assert (single.components, single.score) == ({}, 0.5)
    assert whole.as_dict()["components"] == dict(whole.components)


def test_one_leg_and_the_whole_recall_answer_the_same_contract_with_total_and_offset(mem: semmem.Semmem) -> None:
    whole = mem.recall("ferry", limit=2, offset=3, filters={"tags": ["old"]})
    assert (whole.offset, whole.limit, whole.total) == (3, 2, 8)
    for name, expected in (("lexical", ["m03", "m04"]), (None, ids(whole))):
        results, total = mem.leg(name).search("ferry", limit=2, offset=3, filters={"tags": ["old"]})
        assert [r.id for r in results] == expected
        assert total == 8
        assert {(r.title, str(r.source)[:4], r.snippet[:9]) for r in results} == {("Ferry", "log/", "The ferry")}
    elsewhere, total = mem.leg().search("ferry", filters=Within(namespaces=("other",)))
    assert ([r.id for r in elsewhere], total) == (["m08"], 1)
    with pytest.raises(semmem.LegFailed, match="The leg dense could not answer"):
        mem.leg("dense").search("ferry")
