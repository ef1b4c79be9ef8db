"""Reach for everybody: the models of other systems' fusions, what follows from them, and the page that says so."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from eval.cli import app
from eval.systems import FusionReach, LegVerdict, fusion_reach, load, names, system_report, with_weights
from eval.systems.formulas import place, replay
from eval.systems.model import Fusion
from semmem.model.errors import InvalidInput

ROOT = Path(__file__).resolve().parents[2]
EVERY = [(name, fusion.name) for name in names() for fusion in load(name).fusions]


def fusion_of(system: str, name: str | None = None) -> Fusion:
    fusions = load(system).fusions
    return next(f for f in fusions if name is None or f.name == name)


def classes(reached: FusionReach) -> dict[str, str]:
    return {leg.leg: leg.class_ for leg in reached.legs}


def leg_of(reached: FusionReach, name: str) -> LegVerdict:
    return next(leg for leg in reached.legs if leg.leg == name)


def test_every_system_that_the_issue_names_is_modelled() -> None:
    asked = "mem0|graphiti|hindsight|langchain-ensemble|llamaindex|qdrant|lancedb|memini"
    assert names() == sorted(asked.split("|"))


@pytest.mark.parametrize("name", names())
def test_a_model_says_which_version_was_read_when_and_where(name: str) -> None:
    system = load(name)
    assert system.read.year >= 2026
    assert re.search(r"\d+\.\d+\.\d+|commit [0-9a-f]{8}", system.version)
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", system.repository)
    for source in system.sources:
        # service.go of memini is 170,000 characters in one piece: functions are named instead of lines
        assert re.fullmatch(r"\d+(-\d+)?(, \d+(-\d+)?)*", source.lines) or source.path.endswith("service.go")
        assert "\n" not in source.says


def test_mem0_brings_in_nothing_that_only_its_keyword_or_entity_leg_found() -> None:
    reached = fusion_reach(fusion_of("mem0"), 10)
    assert classes(reached) == {"semantic": "possible", "keyword": "boost-only", "entity": "boost-only"}
    witness = leg_of(reached, "keyword").witness
    # 4 x 10 = 40 is less than 60: the semantic list is 60 deep, and the keyword hit is in none of it
    assert len(witness.rankings["semantic"]) == 60
    assert witness.rankings["keyword"] == ("only-keyword",)
    assert witness.place is None
    assert len(leg_of(fusion_reach(fusion_of("mem0"), 20), "keyword").witness.rankings["semantic"]) == 80


def test_graphiti_counts_from_rank_0_with_constant_1() -> None:
    search = fusion_of("graphiti", "search")
    fused = replay(search, {"bm25": ["a", "b"], "cosine": ["b", "c"]}, {}, 10)
    assert fused == {"a": 1, "b": Fraction(3, 2), "c": Fraction(1, 2)}  # 1/1; 1/2 + 1/1; 1/2
    # k = 2: two competitors can have (1 + 1/2 + 1/2 + 1/3)/2 = 7/6, more than 1; k = 3: (11/6 + 13/12)/3 = 35/36, less
    assert classes(fusion_reach(search, 2)) == {"bm25": "possible", "cosine": "possible"}
    assert classes(fusion_reach(search, 3)) == {"bm25": "guaranteed", "cosine": "guaranteed"}


def test_a_reranker_after_the_fusion_turns_guaranteed_into_possible() -> None:
    reached = fusion_reach(fusion_of("graphiti", "search_"), 10)
    assert set(classes(reached).values()) == {"possible"}
    assert {leg.cut for leg in reached.legs} == {20}
    assert leg_of(reached, "bfs").why.startswith("always among the 20 that the cross-encoder is shown")


def test_langchain_shuts_out_a_retriever_below_seven_eighths_of_the_others_weight() -> None:
    even = fusion_reach(fusion_of("langchain-ensemble"), 10)
    assert classes(even) == {"first": "possible", "second": "possible"}
    assert leg_of(even, "first").needs == Fraction(61, 70)  # w/61 > 1/70
    uneven = fusion_reach(with_weights(fusion_of("langchain-ensemble"), [0.3, 0.7]), 10)
    # .3/61 = .0049 against .7/70 = .01
    assert classes(uneven) == {"first": "boost-only", "second": "possible"}
    assert leg_of(uneven, "first").witness.place == 11
    # .3/61 = .7/(60 + K) at K = 82.33
    assert classes(fusion_reach(uneven.fusion, 82))["first"] == "boost-only"
    assert classes(fusion_reach(uneven.fusion, 83))["first"] == "possible"


def test_langchain_adds_up_the_copies_of_a_document_so_two_of_them_pass_where_one_is_shut_out() -> None:
    fusion = with_weights(fusion_of("langchain-ensemble"), [0.5, 1])  # .5 is less than the .871 that one needs
    shut = leg_of(fusion_reach(fusion, 10), "first")
    assert (shut.class_, shut.witness.place, shut.copies) == ("boost-only", 11, 2)
    assert shut.copied is not None
    assert shut.copied.rankings["first"] == ("only-first", "only-first")
    fused = replay(fusion, shut.copied.rankings, {}, 10)
    assert fused["only-first"] == Fraction(1, 122) + Fraction(1, 124)  # .0163, more than 1/62
    assert shut.copied.place == 2
    said = " ".join(system_report("langchain-ensemble", weights=".5,1").split())
    assert "and with 2 copies of it in that list, only-first stands at place 2, within the first 10" in said
    assert "not modelled: a content that a list holds several times" in said
    # .05: 1/(20 x 61) + ... + 1/(20 x 81) is more than 1/70, with one copy less it is not
    few = leg_of(fusion_reach(with_weights(fusion, [0.05, 1]), 10), "first").copies
    assert few is not None
    assert sum(Fraction(1, 20 * (60 + rank)) for rank in range(1, few)) <= Fraction(1, 70)
    assert sum(Fraction(1, 20 * (60 + rank)) for rank in range(1, few + 1)) > Fraction(1, 70)
    assert leg_of(fusion_reach(with_weights(fusion_of("qdrant"), [0.09, 1]), 10), "first").copies is None


def test_llamaindex_does_not_read_weights_in_its_reciprocal_mode() -> None:
    fusion = fusion_of("llamaindex", "reciprocal_rerank")
    with pytest.raises(InvalidInput, match="does not read the weights"):
        with_weights(fusion, [0.1, 0.9])
    fused = replay(fusion, {"first": ["a"], "second": ["b", "a"]}, {}, 10)
    assert fused == {"a": Fraction(1, 60) + Fraction(1, 61), "b": Fraction(1, 60)}
    assert "what you set is not read" in system_report("llamaindex", weights=".1,.9")


def test_llamaindex_compares_raw_scores_by_default() -> None:
    first = leg_of(fusion_reach(fusion_of("llamaindex", "simple"), 10), "first")
    assert first.class_ == "possible"
    assert first.witness.place == 1  # .9 against .5
    assert first.counter is not None
    assert first.counter.place == 11  # .9 against ten scores of 12


def test_qdrant_divides_the_rank_by_the_weight() -> None:
    fusion = fusion_of("qdrant")
    weighted = with_weights(fusion, [3, 1])
    fused = replay(weighted, {"first": ["a", "b", "c"], "second": ["d"]}, {}, 10)
    # 1/(rank/3 + 1) = 3/4, 3/5, 1/2; 1/(1/1 + 1) = 1/2
    assert fused == {"a": Fraction(3, 4), "b": Fraction(3, 5), "c": Fraction(1, 2), "d": Fraction(1, 2)}
    reached = fusion_reach(fusion, 10)
    assert classes(reached) == {"first": "guaranteed", "second": "guaranteed"}
    assert leg_of(reached, "first").needs == Fraction(1, 10)  # rank 1 of weight w stands like rank 1/w of weight 1
    assert classes(fusion_reach(with_weights(fusion, [0.09, 1]), 10))["first"] == "boost-only"


def test_qdrant_keeps_what_a_prefetch_of_weight_0_found_behind_all_others() -> None:
    silent = leg_of(fusion_reach(with_weights(fusion_of("qdrant"), [0, 1]), 10), "first")
    assert silent.class_ == "unreachable"
    assert silent.witness.place == 11


def test_lancedb_looks_only_as_deep_as_the_limit() -> None:
    fusion = fusion_of("lancedb", "RRFReranker")
    vector, fts = [f"v{i}" for i in range(10)] + ["both"], [f"t{i}" for i in range(10)] + ["both"]
    lists = {"vector": vector, "fts": fts}
    assert place(replay(fusion, lists, {}, 10), "both") is None
    # two rows deeper 2/71 = .0282 beats every 1/(60 + rank)
    assert place(replay(fusion, lists, {}, 12), "both") == 1


def test_lancedb_scales_a_full_text_list_of_one_row_to_0() -> None:
    fusion = fusion_of("lancedb", "LinearCombinationReranker")
    one = {"vector": [Fraction(9, 10), Fraction(5, 10)], "fts": [Fraction(7)]}
    fused = replay(fusion, {"vector": ["a", "b"], "fts": ["t"]}, one, 10)
    assert fused == {"a": Fraction(7, 10), "b": 0, "t": 0}


def test_memini_counts_from_rank_0_with_constant_5_when_it_fuses_ranks() -> None:
    fusion = fusion_of("memini", "rank fusion")
    assert replay(fusion, {"vector": ["a", "b"], "keyword": []}, {}, 10) == {"a": Fraction(1, 5), "b": Fraction(1, 6)}
    assert "above 0.0714" in leg_of(fusion_reach(fusion, 10), "keyword").why  # 1/(5 + 9)
    assert fusion.depth is not None
    assert (fusion.depth.at(5), fusion.depth.at(20)) == (50, 100)


def test_interleaving_gives_every_arm_a_place_as_soon_as_there_is_one_each() -> None:
    fusion = fusion_of("hindsight", "interleave")
    assert set(classes(fusion_reach(fusion, 4)).values()) == {"guaranteed"}
    assert list(classes(fusion_reach(fusion, 3)).values()) == ["guaranteed"] * 3 + ["possible"]
    assert list(classes(fusion_reach(fusion, 1)).values()) == ["guaranteed"] + ["boost-only"] * 3


@pytest.mark.parametrize(("system", "fusion"), EVERY)
@pytest.mark.parametrize("k", [1, 2, 5, 10, 30])
def test_every_witness_does_what_it_shows_in_the_systems_own_formula(system: str, fusion: str, k: int) -> None:
    for leg in fusion_reach(fusion_of(system, fusion), k).legs:
        worst, best = leg.witness.place, leg.witness.best_place
        if leg.class_ == "boost-only":
            assert worst is None or worst > leg.cut, leg
        else:
            assert best is not None
            assert best <= leg.cut, leg
            if leg.class_ == "guaranteed":
                assert worst is not None
                assert worst <= leg.cut, leg


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_lists_contradict_what_is_said_of_a_sum_over_ranks(data: st.DataObject) -> None:
    system, fusion = data.draw(st.sampled_from([("langchain-ensemble", "rank fusion"), ("qdrant", "RRF")]))
    weights = data.draw(st.lists(st.sampled_from([0.05, 0.2, 0.5, 0.9, 1.0]), min_size=2, max_size=2))
    k = data.draw(st.integers(2, 4))
    reached = fusion_reach(with_weights(fusion_of(system, fusion), weights), k)
    crowd = [f"m{i}" for i in range(6)]
    other = data.draw(st.permutations(crowd))
    behind = data.draw(st.permutations(crowd))
    fused = replay(reached.fusion, {"first": ["only", *behind], "second": other}, {}, k)
    worst, best = place(fused, "only"), place(fused, "only", ties_lose=False)
    assert worst is not None
    assert best is not None
    class_ = classes(reached)["first"]
    assert class_ != "guaranteed" or worst <= k
    assert class_ != "boost-only" or best > k


def test_a_system_that_was_not_read_is_said_not_to_be_modelled() -> None:
    done = CliRunner().invoke(app, ["reach", "--system", "zep"])
    assert done.exit_code == 2
    assert "zep is not modelled: source not read" in done.stderr
    with pytest.raises(InvalidInput, match="has no weights"):
        system_report("mem0", weights="1,1,1")
    with pytest.raises(InvalidInput, match="Weights are numbers"):
        system_report("qdrant", weights="one,two")


def test_json_holds_the_class_the_witness_and_the_source_of_every_leg() -> None:
    done = CliRunner().invoke(app, ["reach", "--system", "mem0", "-k", "5", "--json"])
    report = json.loads(done.stdout)
    assert (report["version"], report["k"], report["read"]) == ("2.2.1", 5, "2026-11-22")
    keyword = report["fusions"][0]["legs"]["keyword"]
    assert keyword["class"] == "boost-only"
    assert keyword["witness"]["place"] is None
    assert {"path": "mem0/memory/main.py", "lines": "1680-1700"}.items() <= report["sources"][1].items()


def test_the_table_in_the_readme_is_the_one_that_is_printed() -> None:
    done = CliRunner().invoke(app, ["reach", "--system", "all"])
    assert done.exit_code == 0
    assert done.stdout.strip() in (ROOT / "eval" / "README.md").read_text(encoding="utf-8")


def test_the_commands_of_the_example_action_pass_and_fail_as_it_says() -> None:
    from semmem.interfaces.cli.app import run

    example = (ROOT / "examples" / "github-action.yml").read_text(encoding="utf-8")
    commands = re.findall(r"- run: semmem (reach .*)", example)
    assert len(commands) == 2
    assert [run(one.split()) for one in commands] == [0, 0]
    for shut in ("graph=60", "graph=8"):
        changed = commands[1].replace("graph=20", shut)
        assert run(changed.split()) == 3


MODEL = """
title = "Mine"
version = "1.0"
read = 2026-11-26

[[fusion]]
name = "both"
rule = "rrf"
constant = 60
legs = [{ name = "vector" }, { name = "words", weight = 0.5 }]
"""


def own(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_model_of_ones_own_is_read_by_its_path(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["reach", "--system", own(tmp_path, MODEL)])
    assert result.exit_code == 0
    assert "Mine, 1.0" in result.output
    assert "words" in result.output


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("constant = 60", "constnat = 60", "line 9, fusion 'both', has 'constnat', which is no key; constant is."),
        (
            "weight = 0.5",
            "wieght = 0.5",
            "line 10, legs of fusion 'both' 'words', has 'wieght', which is no key; weight is.",
        ),
        ("constant = 60", 'constant = "60"', "line 9, fusion 'both', has constant = '60'; it must be a number."),
        ('rule = "rrf"', 'rule = "sum"', "line 8, fusion 'both', has rule = 'sum', which is none of rrf, rank-scaled"),
        ('rule = "rrf"', "", "line 6, fusion 'both', has no 'rule'."),
        ('version = "1.0"', "", "line 1, the file, has no 'version'."),
        (
            "read = 2026-11-26",
            'read = "today"',
            "line 4, the file, has read = 'today'; it must be a date such as 2026-11-26.",
        ),
        (', { name = "words", weight = 0.5 }', "", "line 10, fusion 'both', has fewer than two legs."),
        ("constant = 60", "constant = -1", "has constant = -1, by which a first place has no share."),
        ("constant = 60", "constant = 0\norigin = 0", "has constant = 0, by which a first place has no share."),
        ("constant = 60", "constant = nan", "has constant = nan, by which"),
        ("weight = 0.5", "weight = -0.5", "line 10, fusion 'both', has a weight below 0, or one that is not finite."),
        (
            "constant = 60",
            "constant = 60\ndepth = { per_k = -1, least = 0 }",
            "line 10, fusion 'both', has a depth of no document; per_k and least are 0 or more, and one of them is",
        ),
        ("constant = 60", "constant = 60\ndepth = { per_k = 1, least = -1 }", "has a depth of no document"),
        (
            "constant = 60",
            "constant = 60\ndepth = 3",
            "line 10, fusion 'both', has depth = 3; write { per_k = 1, least",
        ),
        ('version = "1.0"', 'version = "1.0"\nnot_modelled = 3', "has not_modelled = 3; it must be a list of texts."),
        (
            "constant = 60",
            'constant = 60\nreranker = "a"\npool = { per_k = 0, least = 0 }',
            "line 11, fusion 'both', has a pool of no document",
        ),
        ("weight = 0.5", "most = nan", "line 10, fusion 'both', has a most below 0, or one that is not finite."),
        ("weight = 0.5", "alone = 7", "line 10, fusion 'both', has an alone that is neither 0 nor 1."),
        ("[[fusion]]", "[[fusions]]", "has no [[fusion]]"),
        ('title = "Mine"', "title =", "is not TOML"),
    ],
)
def test_a_mistake_in_a_model_is_told_with_its_file_line_and_key(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    path = own(tmp_path, MODEL.replace(old, new))
    result = CliRunner().invoke(app, ["reach", "--system", path])
    assert result.exit_code == 2
    output = " ".join(result.output.split())
    assert output.startswith(f"error: {path}")
    assert words in output


def test_the_line_is_that_of_the_table_in_which_the_mistake_is(tmp_path: Path) -> None:
    spread = """
[[fusion]]
name = "both"
rule = "rrf"
constant = 60

[[fusion.legs]]
name = "vector"

[[fusion.legs]]
name = "words"
weight = "half"

[[source]]
path = "fuse.py"
"""
    second = MODEL.split("[[fusion]]")[1].replace('"both"', '"again"').replace("constant", "constnat")
    path = own(tmp_path, MODEL.split("[[fusion]]")[0] + "[[fusion]]" + second + spread.replace('"half"', "0.5"))
    with pytest.raises(InvalidInput, match=r"mine\.toml, line 9, fusion 'again', has 'constnat'"):
        load(path)
    path = own(tmp_path, MODEL + spread)
    with pytest.raises(
        InvalidInput, match=r"line 22, legs of fusion 'both' 'words', has weight = 'half'; it must be a"
    ):
        load(path)
    path = own(tmp_path, MODEL + spread.replace('"half"', "0.5"))
    with pytest.raises(InvalidInput, match=r"line 24, source '1', has no 'says'"):
        load(path)


def test_a_model_that_is_not_utf8_is_told(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(MODEL.replace("Mine", "Caf\xe9").encode("latin-1"))
    output = " ".join(CliRunner().invoke(app, ["reach", "--system", str(path)]).output.split())
    assert output == f"error: {path} is not UTF-8 (byte 13); save it as UTF-8."


def test_a_system_that_is_neither_modelled_nor_a_file_is_told(tmp_path: Path) -> None:
    for name, words in (("nobody", "Modelled are graphiti"), (str(tmp_path / "no.toml"), "cannot be read: No such")):
        result = CliRunner().invoke(app, ["reach", "--system", name])
        assert result.exit_code == 2
        assert words in " ".join(result.output.split())
