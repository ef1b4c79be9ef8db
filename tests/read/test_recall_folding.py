"""The folding of a recall: copies of a text and parts of a long memory become one hit."""

from __future__ import annotations

from itertools import pairwise

import semmem
from tests.read.harbour import ids, words


def test_the_same_normalised_text_is_folded_into_the_first_and_named(mem: semmem.Semmem) -> None:
    mem.remember("The ferry leaves at dawn.", id="b")
    mem.remember("  the FERRY leaves\nat dawn!! ", id="a")
    mem.remember("The ferry leaves at dusk.", id="c")
    found = mem.recall("ferry dawn")
    assert [(h.memory.id, h.duplicates) for h in found] == [("a", ("b",)), ("c", ())]
    assert found.total == 3
    kept = mem.recall("ferry dawn", recipe=semmem.recipe("default", dedup=False))
    assert sorted(ids(kept)) == ["a", "b", "c"]


def test_copies_do_not_take_the_places_of_others(mem: semmem.Semmem) -> None:
    mem.remember_many({"text": "ferry ferry", "id": f"copy{n}"} for n in range(8))
    mem.remember_many({"text": f"ferry number{n}", "id": f"one{n}"} for n in range(9))
    found = mem.recall("ferry", recipe="lexical")
    assert len(found) == 10
    assert [len(h.duplicates) for h in found] == [7] + [0] * 9


def paragraph(seed: int) -> str:
    """Return about 900 characters that only this seed gives, in sentences."""
    return " ".join(f"{words(1000 * seed + n, 9).capitalize()} {seed}x{n}." for n in range(16)) + "\n\n"


def test_parts_are_folded_into_the_best_one_of_their_memory(mem: semmem.Semmem) -> None:
    mem.remember(paragraph(1) + paragraph(2) + "The zeppelin landed.", id="long", title="Log")
    mem.remember("ferry", id="short")
    folded = mem.recall("zeppelin landed ferry")
    assert sorted(ids(folded)) == ["long", "short"]
    best = next(h for h in folded if h.part)
    assert best.memory == mem.get("long")
    assert "zeppelin" in best.passage.text
    assert best.snippet == "The zeppelin landed."
    assert [best.snippet[a:b] for a, b in best.matches] == ["zeppelin", "landed"]
    assert best.duplicates == ()
    assert folded.total == 2
    every = mem.recall("zeppelin ferry", fold_parts=False)
    parts = [h.part for h in every if h.id == "long"]
    assert sorted(parts) == [1, 2]
    assert [h.part for h in every if h.id == "short"] == [None]
    assert all(h.memory == best.memory for h in every if h.id == "long")


def test_a_hit_of_a_long_memory_is_the_memory_as_it_was_remembered_and_says_where_the_answer_is(
    mem: semmem.Semmem,
) -> None:
    text = (
        "  "
        + paragraph(1)
        + "\n \t"
        + paragraph(2)
        + "\u3000\n"
        + paragraph(3)
        + "Ünïcode 🦊 zeppelin. "
        + paragraph(1)
    )
    given = mem.remember(text, id="log#7", title="Log", tags=["kept"], metadata={"deck": 2})
    for fold in (True, False):
        found = mem.recall("zeppelin ferry", fold_parts=fold)
        assert {h.id for h in found} == {"log#7"}
        for hit in found:
            assert hit.memory == given == mem.get(hit.id)
            assert (hit.text, hit.namespace, hit.memory.parent_id) == (text, "default", None)
            assert text[hit.passage.start : hit.passage.end] == hit.passage.text
            assert len(hit.passage.text) <= 1400
    parts = {h.part: h.passage for h in found}
    assert sorted(p for p in parts if p) == list(range(1, len(parts) + 1))
    inner = [parts[n] for n in sorted(p for p in parts if p)]
    assert all(not text[one.end : other.start].strip() for one, other in pairwise(inner))
    best = mem.recall("zeppelin")[0]
    assert "zeppelin" in best.passage.text
    plain = best.as_dict()
    assert (plain["id"], plain["memory"]["id"], plain["memory"]["parent_id"]) == ("log#7", "log#7", None)
    assert plain["passage"] == {"text": best.passage.text, "start": best.passage.start, "end": best.passage.end}
    assert plain["part"] == best.part
    mem.remember("A short note of the zeppelin.", id="short")
    short = next(h for h in mem.recall("zeppelin") if h.id == "short")
    assert (short.part, short.passage) == (None, semmem.Passage("A short note of the zeppelin.", 0, 29))


def test_two_long_memories_that_share_a_part_are_not_the_same(mem: semmem.Semmem) -> None:
    common = "The zeppelin landed. " + paragraph(1) + paragraph(1)  # split into equal parts in both
    mem.remember(common + paragraph(2) + paragraph(3), id="a")
    mem.remember(common + paragraph(4) + paragraph(5), id="b")
    held = [mem.store.indexed_memories(["default"], mem.store.row_ids_of("default", id)) for id in ("a", "b")]
    assert min(held[0].items())[1].text == min(held[1].items())[1].text
    found = mem.recall("zeppelin")
    assert sorted(ids(found)) == ["a", "b"]
    assert all(h.duplicates == () for h in found)


def test_two_equal_long_memories_are_one_hit_that_names_the_other(mem: semmem.Semmem) -> None:
    text = paragraph(1) + paragraph(2) + paragraph(3)
    mem.remember(text, id="a")
    mem.remember(text.upper(), id="b")
    found = mem.recall("ferry tide")
    assert [(h.id, h.duplicates) for h in found] == [("a", ("b",))]
    assert found.total == 2
    every = mem.recall("ferry tide", fold_parts=False)
    assert {(h.id, h.duplicates) for h in every} == {("a", ("b",))}


def test_a_memory_that_repeats_itself_is_not_its_own_duplicate(mem: semmem.Semmem) -> None:
    mem.remember("The ferry leaves at dawn. " * 200, id="long")
    found = mem.recall("ferry")
    assert [(h.id, h.duplicates) for h in found] == [("long", ())]
    assert {(h.id, h.duplicates) for h in mem.recall("ferry", fold_parts=False)} == {("long", ())}


def test_of_several_namespaces_a_hit_says_in_which_the_memories_of_the_same_text_are(mem: semmem.Semmem) -> None:
    for namespace in ("own", "shared", "third"):
        mem.remember("The ferry leaves at nine.", id="a", namespace=namespace)
    mem.remember("The ferry leaves at nine.", id="b", namespace="own")
    (hit,) = mem.recall("ferry at nine", namespace=["own", "shared"])
    assert hit.namespace == "own"
    others = set(zip(hit.duplicates, hit.duplicate_namespaces, strict=True))
    assert others == {("a", "own"), ("b", "own"), ("a", "shared")} - {(hit.id, hit.namespace)}
    assert len(hit.duplicates) == len(hit.duplicate_namespaces) == 2
    assert hit.as_dict()["duplicate_namespaces"] == list(hit.duplicate_namespaces)
    (single,) = mem.recall("ferry at nine", namespace="third")
    assert (single.duplicates, single.duplicate_namespaces) == ((), ())
