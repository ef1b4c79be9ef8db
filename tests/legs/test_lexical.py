"""The lexical leg against sums done by hand, against bm25s, and against input that nobody means well."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import semmem
from semmem.legs.lexical import _best, _most, bm25
from semmem.model.exchange import Postings
from semmem.stores.packed_postings import POSTING
from semmem.text.passages import terms

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("SEMMEM_EVAL_DATA", ROOT.parent / "shared" / "data"))
HOSTILE = [
    *("'", "&|!()", "a & b | !(c)", "to:* & <->", "foo' OR '1'='1", "%_%", "\\", '"', '""', '"unclosed', "“”", "«»"),
    *(
        "😀",
        "👩‍👩‍👧",
        "naïve café",
        "東京タワー",
        "مرحبا",
        "שלום",
        "ไทย",
        "\u202e\u200d",
        "a\x00b",
        "\ud800",
        "x" * 10_000,
    ),
    *("tide " * 2_000, "\n\t\r", "$1 %(x)s {y}", "-- ;", "ﬁ ½ ①", '"\x00" tide', "🏴‍☠️ tide"),
]


@pytest.fixture(params=["postgresql", "sqlite"])
def mem(request: pytest.FixtureRequest) -> Iterator[semmem.Semmem]:
    url = "sqlite::memory:" if request.param == "sqlite" else request.getfixturevalue("store_url")
    with semmem.connect(url, embedder="none") as opened:
        yield opened


@pytest.fixture
def pets(mem: semmem.Semmem) -> semmem.Semmem:
    """Three memories; terms 2, 3 and 3 (a title counts twice), so the average length is 8/3."""
    mem.remember("cat dog", id="m1", session="one")
    mem.remember("cat cat fish", id="m2", session="two")
    mem.remember("fish", id="m3", title="dog", session="two")
    return mem


def scores(mem: semmem.Semmem, query: str, limit: int = 1000, **how: Any) -> dict[str, float]:
    """Return the raw BM25 score of each hit, best first."""
    variant = semmem.recipe("lexical", depths={"lexical": limit}, dedup=False, **how.pop("recipe", {}))
    found = mem.recall(query, recipe=variant, limit=limit, **how)
    assert not found.degraded
    return {hit.memory.id: hit.legs["lexical"].score for hit in found}


def ids(mem: semmem.Semmem, query: str, **how: Any) -> set[str]:
    return set(scores(mem, query, **how))


# ---------------------------------------------------------------------- the formula, by hand


def test_a_term_scores_idf_times_saturated_frequency_over_length(pets: semmem.Semmem) -> None:
    # idf = ln(1 + (3 - 2 + .5) / (2 + .5)) = ln 1.6 = .470004; k1 = 1.2, b = .5
    # m2: 2 / (2 + 1.2 (.5 + .5 · 3 / (8/3))) = 2 / 3.275 = .610687, times idf = .287025
    # m1: 1 / (1 + 1.2 (.5 + .5 · 2 / (8/3))) = 1 / 2.05  = .487805, times idf = .229270
    assert scores(pets, "cat") == pytest.approx({"m2": 0.287025, "m1": 0.229270}, abs=1e-6)


def test_no_match_costs_anything_while_a_drop_has_counted_less_than_postings_hold() -> None:
    entries = np.zeros(3, dtype=POSTING)
    entries["ord"], entries["count"], entries["length"] = [1, 2, 3], 1, 4
    half_dropped = Postings(1, 4, np.array([7]), np.array([3]), entries)
    row_ids, scores, matched = bm25(half_dropped, {7: 1}, 0.9, 0.5)
    # as if three were counted: log(1 + .5 / 3.5) = .1335, times 1 / (1 + .9)
    assert (row_ids.tolist(), matched.tolist()) == ([1, 2, 3], [1, 1, 1])
    assert scores.tolist() == pytest.approx([0.0703] * 3, abs=1e-4)


@given(
    st.lists(
        st.tuples(st.sampled_from([0.5, 1.0, 1.0 + 1e-12, 2.0, 3.0]), st.integers(0, 99)), unique_by=lambda p: p[1]
    ),
    st.integers(0, 30),
    st.integers(0, 5),
)
def test_the_best_are_those_of_the_whole_order_with_as_many_ties_as_are_wanted(
    rows: list[tuple[float, int]], depth: int, ties: int
) -> None:
    scores, row_ids = np.array([score for score, _ in rows]), np.array([row_id for _, row_id in rows], dtype=np.int64)
    whole = sorted(range(len(rows)), key=lambda at: (-scores[at], row_ids[at]))
    upto = depth
    while depth and upto < len(rows) and upto < depth + ties and scores[whole[upto]] > scores[whole[depth - 1]] - 1e-9:
        upto += 1
    assert _best(row_ids, scores, depth, ties).tolist() == whole[:upto]


@given(st.data())
def test_scores_are_added_in_the_order_of_the_keys(data: st.DataObject) -> None:
    held = [
        sorted(
            data.draw(st.dictionaries(st.sampled_from([0, 1, 2, 3, 10**6, 4 * 10**9]), st.integers(0, 9), min_size=1))
        )
        for _ in range(data.draw(st.integers(1, 4)))
    ]
    entries = np.zeros(sum(map(len, held)), dtype=POSTING)
    entries["ord"] = [row_id for row_ids in held for row_id in row_ids]
    entries["count"] = [data.draw(st.integers(0, 3)) for _ in entries]
    entries["length"] = [data.draw(st.integers(1, 200)) for _ in entries]
    sizes = np.array([len(row_ids) for row_ids in held])
    postings = Postings(9, 700, np.arange(len(held)), sizes, entries)
    expected: dict[int, tuple[float, int]] = {}
    for _, own in postings.items():
        own = own[own["count"] > 0]
        for row_id, tf, length in own[["ord", "count", "length"]].tolist():
            share = tf / (tf + 1.2 * (1 - 0.75 + 0.75 * length / (700 / 9)))
            before, matched = expected.get(row_id, (0.0, 0))
            expected[row_id] = (
                before + 2 * float(np.log(1 + (9 - len(own) + 0.5) / (len(own) + 0.5))) * share,
                matched + 1,
            )
    found = bm25(postings, dict.fromkeys(range(len(held)), 2), 1.2, 0.75)
    assert {o: (s, m) for o, s, m in zip(*(a.tolist() for a in found), strict=True)} == expected  # to the last digit
    assert found[0].tolist() == sorted(expected)


def test_the_most_a_memory_could_score_counts_terms_that_none_has_as_well() -> None:
    entries = np.zeros(1, dtype=POSTING)
    entries["ord"], entries["count"], entries["length"] = [1], 1, 4
    postings = Postings(3, 12, np.array([7]), np.array([1]), entries)
    # twice log(1 + 2.5 / 1.5) = .98083 of the term that one of three has, once log(1 + 3.5 / .5) = 2.07944
    assert _most(postings, {7: 2, 9: 1}) == pytest.approx(4.04110, abs=1e-5)


def test_the_title_counts_twice(pets: semmem.Semmem) -> None:
    # m3 has dog once, in its title: tf 2, length 2 + 1 = 3: the same 2 / 3.275 · .470004 as two cats in three terms
    assert scores(pets, "dog") == pytest.approx({"m3": 0.287025, "m1": 0.229270}, abs=1e-6)


def test_the_terms_of_a_question_add_up_and_a_repeated_one_counts_again(pets: semmem.Semmem) -> None:
    # cat and dog both have df 2; m1 has each once: 2 · .229270
    assert scores(pets, "cat dog")["m1"] == pytest.approx(0.458541, abs=1e-6)
    assert scores(pets, "cat and cat")["m1"] == pytest.approx(0.458541, abs=1e-6)


def test_k1_and_b_are_settings(pets: semmem.Semmem) -> None:
    # k1 = 0: frequency does not matter, every match is worth its idf
    assert scores(pets, "cat", recipe={"lexical": {"k1": 0.0}}) == pytest.approx(
        {"m1": 0.470004, "m2": 0.470004}, abs=1e-6
    )
    # b = 0: no length. m1: 1 / 2.2 · .470004 = .213638; m2: 2 / 3.2 · .470004 = .293752
    flat = scores(pets, "cat", recipe={"lexical": {"b": 0.0}})
    assert flat == pytest.approx({"m2": 0.293752, "m1": 0.213638}, abs=1e-6)
    # k1 = 2, b = 1. m1: 1 / (1 + 2 · 2/(8/3)) = 1 / 2.5; m2: 2 / (2 + 2 · 3/(8/3)) = 2 / 4.25
    full = scores(pets, "cat", recipe={"lexical": {"k1": 2.0, "b": 1.0}})
    assert full == pytest.approx({"m2": 0.221178, "m1": 0.188002}, abs=1e-6)


def test_filters_and_exclude_do_not_change_what_a_match_is_worth(pets: semmem.Semmem) -> None:
    everywhere = scores(pets, "cat fish")
    assert scores(pets, "cat fish", filters={"sessions": ["two"]}) == {i: everywhere[i] for i in ("m2", "m3")}
    assert scores(pets, "cat fish", exclude=["m2"]) == {i: everywhere[i] for i in ("m3", "m1")}


def test_another_namespace_does_not_change_what_a_match_is_worth(pets: semmem.Semmem) -> None:
    before = scores(pets, "cat")
    for n in range(5):
        pets.remember(f"cat number {n} in another house", namespace="elsewhere")
    assert scores(pets, "cat") == before


def test_folding_and_forgetting_leave_the_scores_of_a_store_that_never_had_more(pets: semmem.Semmem) -> None:
    before = scores(pets, "cat dog fish")
    pets.remember("cat dog fish bird", id="extra")
    assert scores(pets, "cat dog fish") != before
    pets.maintain()
    pets.forget("extra")
    assert scores(pets, "cat dog fish") == pytest.approx(before, abs=1e-12)


# ---------------------------------------------------------------------- which memories match


def test_one_shared_term_is_enough(pets: semmem.Semmem) -> None:
    assert ids(pets, "dog zeppelin") == {"m1", "m3"}
    assert ids(pets, "dog fish") == {"m1", "m2", "m3"}
    assert ids(pets, "zeppelin") == set()


def test_all_terms_must_match_when_asked_to(pets: semmem.Semmem) -> None:
    assert ids(pets, "cat dog", recipe={"lexical": {"match": "all"}}) == {"m1"}
    assert ids(pets, "cat zeppelin", recipe={"lexical": {"match": "all"}}) == set()


def test_a_turn_has_all_terms_only_where_it_has_them_itself(mem: semmem.Semmem) -> None:
    for at, text in enumerate(["harbour ferry", "ferry", "harbour", "tea"]):
        mem.remember(text, id=text, author=("Ada", "Bob")[at % 2], session="s", position=at)
    assert ids(mem, "harbour ferry") == {"harbour ferry", "ferry", "harbour", "tea"}
    assert ids(mem, "harbour ferry", recipe={"lexical": {"match": "all"}}) == {"harbour ferry"}


@pytest.mark.parametrize(("both", "found"), [(10, 10), (9, 14)])
def test_auto_asks_for_all_terms_and_broadens_when_fewer_than_ten_have_them(
    mem: semmem.Semmem, both: int, found: int
) -> None:
    mem.remember_many({"text": f"harbour ferry {n} {'x' * n}"} for n in range(both))
    mem.remember_many({"text": f"ferry {n} {'y' * n}"} for n in range(5))
    assert len(ids(mem, "harbour ferry", recipe={"lexical": {"match": "auto"}})) == found
    assert len(ids(mem, "harbour ferry")) == both + 5


def test_a_question_of_stop_words_is_an_empty_leg_and_that_is_normal(pets: semmem.Semmem) -> None:
    found = pets.recall("what is it that they did to the", recipe="lexical")
    assert (list(found), found.total, found.total_is_exact, dict(found.degraded)) == ([], 0, True, {})


def test_total_counts_every_match_beyond_the_depth(mem: semmem.Semmem) -> None:
    mem.remember_many({"text": f"ferry number {n}"} for n in range(30))
    found = mem.recall("ferry", recipe=semmem.recipe("lexical", depths={"lexical": 4}))
    assert (len(found), found.total, found.total_is_exact) == (4, 30, True)


# ---------------------------------------------------------------------- quoted phrases


@pytest.fixture
def bank(mem: semmem.Semmem) -> semmem.Semmem:
    mem.remember("The Bank of England raised the rate.", id="exact")
    mem.remember("England has a bank of its own in every town.", id="apart")
    mem.remember("A BANK, of 'England'!", id="punctuated")
    mem.remember("Rates are high.", id="title", title="Bank of England")
    mem.remember("of England and elsewhere", id="across", title="Bank")
    mem.remember("The riverbank of England", id="inside")
    return mem


def test_a_quoted_phrase_must_occur_whatever_case_punctuation_or_stop_words(bank: semmem.Semmem) -> None:
    assert ids(bank, '"bank of england"') == {"exact", "punctuated", "title"}
    assert ids(bank, "“BANK OF ENGLAND” rate") == {"exact", "punctuated", "title"}
    assert ids(bank, "bank of england") == {"exact", "apart", "punctuated", "title", "across", "inside"}


def test_a_phrase_is_made_of_whole_words_in_their_order(bank: semmem.Semmem) -> None:
    assert ids(bank, '"england bank"') == set()
    assert ids(bank, '"bank of eng"') == set()


def test_every_phrase_must_occur(bank: semmem.Semmem) -> None:
    assert ids(bank, '"bank of england" "raised the rate"') == {"exact"}


def test_of_a_phrase_only_texts_that_hold_each_of_its_terms_are_read(
    bank: semmem.Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    texts = bank.store.texts
    monkeypatch.setattr(bank.store, "texts", lambda spaces, row_ids: read.extend(row_ids) or texts(spaces, row_ids))
    assert ids(bank, '"bank of england"') == {"exact", "punctuated", "title"}
    names = {head.id for head in bank.store.candidate_metadata(["default"], read).values()}
    assert names == {"exact", "apart", "punctuated", "title", "across"}  # not inside, which has no bank


def test_a_phrase_of_stop_words_narrows_what_the_other_terms_find(bank: semmem.Semmem) -> None:
    assert ids(bank, 'bank "of its own"') == {"apart"}
    assert ids(bank, '"of its own"') == set()


def test_a_phrase_finds_japanese_inside_a_longer_run(mem: semmem.Semmem) -> None:
    mem.remember("明日は東京都庁に行く。", id="tocho")
    mem.remember("京都の東にある。", id="kyoto")
    assert ids(mem, '"東京都"') == {"tocho"}


def test_a_phrase_without_a_letter_is_compared_as_it_stands(mem: semmem.Semmem) -> None:
    mem.remember("Ada writes C++ at night", id="plus")
    mem.remember("Ada writes C at night", id="plain")
    assert ids(mem, 'Ada "++"') == {"plus"}


def test_a_phrase_of_words_and_one_without_a_letter_must_both_occur_each_in_title_or_text(mem: semmem.Semmem) -> None:
    mem.remember("She wrote it in C++.", id="both", title="The ferry of Ada")
    mem.remember("Ada has the ferry; she wrote it in C++.", id="sign")
    mem.remember("The ferry of Ada, in C.", id="words")
    mem.remember("She writes C+", id="cut", title="+ The ferry of Ada")  # the sign goes on into the text
    assert ids(mem, '"ferry of ada" "++"') == {"both"}


def test_phrases_hold_in_several_namespaces_at_once(bank: semmem.Semmem) -> None:
    bank.remember("He banked at the Bank of England", id="far", namespace="far")
    bank.remember("England, of the bank", id="not", namespace="far")
    found = ids(bank, '"bank of england"', namespace=["default", "far"])
    assert found == {"exact", "punctuated", "title", "far"}


# ---------------------------------------------------------------------- ties


def test_a_tie_at_the_depth_is_cut_by_id_and_not_by_insertion(mem: semmem.Semmem) -> None:
    order = [(n * 167) % 400 for n in range(400)]  # 167 and 400 share no factor: every number once, well shuffled
    mem.remember_many({"text": f"ferry x{n:03}", "id": f"{n:03}"} for n in order)
    assert list(scores(mem, "ferry", limit=20)) == [f"{n:03}" for n in range(20)]


# ---------------------------------------------------------------------- input


@pytest.fixture
def scripts(mem: semmem.Semmem) -> semmem.Semmem:
    """One memory a script, so that hostile questions meet something they could match."""
    for n, text in enumerate(
        ["tide tables", "naïve café", "東京タワー", "مرحبا بالعالم", "שלום עולם", "ไทย", "foo bar 1"]
    ):
        mem.remember(text, id=str(n))
    return mem


def test_any_input_is_safe(scripts: semmem.Semmem) -> None:
    for query in HOSTILE:
        if query.replace("\x00", " ").strip():
            assert "lexical" not in scripts.recall(query).degraded, query[:40]


def test_a_question_finds_its_own_script(scripts: semmem.Semmem) -> None:
    for query, expected in [("東京タワー", "2"), ("مرحبا", "3"), ("שלום", "4"), ("cafe", "1"), ("a\x00 tide 😀", "0")]:
        assert expected in ids(scripts, query), query


def test_no_string_at_all_breaks_a_recall(scripts: semmem.Semmem) -> None:
    absent = {"graph"} - scripts.store.capabilities

    @given(st.text(min_size=1, max_size=80))
    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def ask(query: str) -> None:
        if not query.replace("\x00", " ").strip():
            with pytest.raises(semmem.InvalidInput, match="empty"):
                scripts.recall(query)
        else:
            assert set(scripts.recall(query).degraded) <= {"dense"} | absent

    ask()


# ---------------------------------------------------------------------- against bm25s


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def assert_agrees(mem: semmem.Semmem, memories: list[dict[str, Any]], queries: list[str], k1: float, b: float) -> None:
    """Hold the leg to the order of bm25s over the same tokens; equal scores may stand in any order."""
    corpus = [terms(m.get("title") or "") * 2 + terms(m["text"]) for m in memories]
    reference = bm25s.BM25(method="lucene", k1=k1, b=b, dtype="float64")
    reference.index(corpus, show_progress=False)
    known = {token for tokens in corpus for token in tokens}
    at = {str(m["id"]): n for n, m in enumerate(memories)}
    compared = 0
    for query in queries:
        asked = [token for token in terms(query) if token in known]
        if not asked:
            continue
        theirs = reference.get_scores(asked)
        ours = scores(mem, query.replace('"', " "), recipe={"lexical": {"k1": k1, "b": b}})
        assert len(ours) == min(1000, int((theirs > 0).sum()))
        expected = np.array([theirs[at[i]] for i in ours])
        np.testing.assert_allclose(list(ours.values()), expected, rtol=1e-6)
        assert (np.diff(expected) <= 1e-9).all()  # in the reference's order, ties aside
        np.testing.assert_allclose(expected[:10], np.sort(theirs)[::-1][: len(expected)][:10], rtol=1e-6)
        compared += 1
    assert compared >= 10


@pytest.mark.slow
@pytest.mark.parametrize(("k1", "b"), [(1.2, 0.5), (0.9, 0.4), (1.5, 0.75)])
def test_the_order_is_that_of_bm25s_on_committed_texts(mem: semmem.Semmem, k1: float, b: float) -> None:
    story = lines(ROOT / "semmem" / "interfaces" / "cli" / "demo" / "story.jsonl")
    toy = lines(ROOT / "eval" / "data" / "toy" / "documents.jsonl")
    memories = [{k: m[k] for k in ("id", "title", "text") if k in m} for m in story + toy]
    memories = list({m["id"]: m for m in memories}.values())
    mem.remember_many(memories)
    queries = [q["question"] for q in lines(ROOT / "eval" / "data" / "toy" / "queries.jsonl")]
    assert_agrees(mem, memories, queries + [m["text"] for m in story[:10]], k1, b)


@pytest.mark.slow
@pytest.mark.parametrize("mem", ["postgresql"], indirect=True)  # the committed texts stand for the other store
def test_the_order_is_that_of_bm25s_on_vaswani_abstracts(mem: semmem.Semmem) -> None:
    if not (SHARED / "vaswani" / "documents.jsonl").is_file():
        pytest.skip("the shared data are not on this machine")
    memories = [{"id": str(m["id"]), "text": m["text"]} for m in lines(SHARED / "vaswani" / "documents.jsonl")[:2000]]
    mem.remember_many(memories)
    queries = [q["question"] for q in lines(SHARED / "vaswani" / "queries.jsonl")[:20]]
    assert_agrees(mem, memories, queries, 1.2, 0.5)
