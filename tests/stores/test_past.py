"""A recall that asks for another time finds the versions that were valid then, over every store there is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import semmem
from semmem.client.memory import Semmem
from semmem.model.errors import InvalidInput
from semmem.model.history import Earlier
from semmem.model.types import Hit, Memory
from semmem.read.recall import Recaller
from semmem.stores.past import _nearest_passages
from semmem.stores.postgres import life as postgres_life
from semmem.stores.sqlite import life as sqlite_life
from tests.stores.expiry import let_expire


def fill(mem: Semmem) -> None:
    """Ana moves twice; Bo stays."""
    mem.remember(
        "Ana lives in Lisbon.", id="ana", created_at="2020-01-01", author="clerk", session="s", tags=["home"],
        metadata={"floor": 3},
    )  # fmt: skip
    mem.remember("Bo lives in Bern.", id="bo", created_at="2020-06-01")
    mem.update("ana", text="Ana lives in Porto.", valid_from="2022-01-01", tags=["home", "moved"])
    mem.update("ana", text="Ana lives in Faro.", valid_from="2024-01-01", valid_to="2025-01-01", metadata={"floor": 9})


def then(mem: Semmem, at: str, query: str = "Where does Ana live?", **asked: object) -> list[tuple[str, int]]:
    hits: tuple[Hit, ...] = mem.recall(query, as_of=at, **asked).hits  # type: ignore[arg-type]
    return [(hit.text, hit.memory.version) for hit in hits if hit.id == "ana"]


def test_a_recall_finds_the_version_that_was_valid_then(mem: Semmem) -> None:
    fill(mem)
    lisbon, porto, faro = ("Ana lives in Lisbon.", 1), ("Ana lives in Porto.", 2), ("Ana lives in Faro.", 3)
    asked = ("2019-12-31", "2020-01-01", "2021-12-31", "2022-01-01", "2024-06-01", "2025-01-01")
    assert [then(mem, at) for at in asked] == [[], [lisbon], [lisbon], [porto], [faro], []]
    for at in asked[1:5]:
        assert then(mem, at) == [(mem.get("ana", as_of=at).text, mem.get("ana", as_of=at).version)]
    assert mem.recall("Ana Bo", as_of="2019-12-31").hits == ()
    assert [hit.id for hit in mem.recall("lives in", as_of="2020-03-01")] == ["ana"]
    assert {hit.id for hit in mem.recall("lives in", as_of="2021-03-01")} == {"ana", "bo"}
    assert [hit.id for hit in mem.recall("lives in", as_of="2025-03-01")] == ["bo"]


def test_between_the_end_of_a_version_and_the_begin_of_the_next_nothing_is_found(mem: Semmem) -> None:
    mem.remember("Ana lives in Lisbon.", id="ana", created_at="2020-01-01", valid_to="2021-01-01")
    mem.update("ana", text="Ana lives in Faro.", valid_from="2024-01-01", valid_to="2025-01-01")
    assert [then(mem, at) for at in ("2020-12-31", "2021-01-01", "2024-01-01")] == [
        [("Ana lives in Lisbon.", 1)], [], [("Ana lives in Faro.", 2)],
    ]  # fmt: skip


def test_a_memory_is_found_until_its_end_and_takes_no_place_at_it(mem: Semmem) -> None:
    mem.remember("Ana lives in Faro.", id="ana", created_at="2024-01-01", valid_to="2025-01-01")
    mem.remember("Bo knows where Ana is.", id="bo", created_at="2024-01-01")
    for at, first in (("2024-12-31", "ana"), ("2025-01-01", "bo")):
        found = mem.recall("Ana lives in Faro", as_of=at, limit=1)
        assert [hit.id for hit in found] == [first]


def test_the_words_of_then_are_asked_and_no_others(mem: Semmem) -> None:
    fill(mem)
    lexical = {"recipe": "lexical"}
    assert then(mem, "2021-01-01", "Lisbon", **lexical) == [("Ana lives in Lisbon.", 1)]
    assert then(mem, "2021-01-01", '"in Lisbon"', **lexical) == [("Ana lives in Lisbon.", 1)]
    assert then(mem, "2021-01-01", "Porto Faro", **lexical) == []
    assert then(mem, "2024-06-01", "Lisbon Porto", **lexical) == []
    assert then(mem, "2022-06-01", "Porto", **lexical) == [("Ana lives in Porto.", 2)]


def test_filters_are_about_the_version_of_then(mem: Semmem) -> None:
    fill(mem)
    early, late = "2021-01-01", "2024-06-01"
    for filters in (
        {"tags": ["moved"]},
        {"metadata": {"floor": 9}},
        {"authors": "bo"},
        {"created_after": "2020-02-01"},
    ):
        assert then(mem, early, filters=filters) == []
    for filters in (
        {"tags": ["home"]}, {"metadata": {"floor": 3}}, {"authors": "clerk"}, {"sessions": "s"},
        {"created_before": "2020-02-01"},
    ):  # fmt: skip
        assert then(mem, early, filters=filters) == [("Ana lives in Lisbon.", 1)]
    assert then(mem, late, filters={"metadata": {"floor": 3}}) == []
    assert then(mem, early, exclude=["ana"]) == []


def test_what_is_forgotten_or_secret_is_not_found_then(mem: Semmem) -> None:
    fill(mem)
    mem.forget("ana")
    assert then(mem, "2021-01-01") == []
    mem.restore_memory("ana")
    assert then(mem, "2021-01-01") == [("Ana lives in Lisbon.", 1)]
    mem.update("ana", sensitive=True)
    assert [then(mem, at) for at in ("2021-01-01", "2022-06-01", "2024-06-01")] == [[], [], []]
    mem.forget("bo", hard=True)
    assert mem.recall("Bo", as_of="2021-01-01").hits == ()


def test_a_time_is_read_in_utc_and_what_is_none_is_refused(mem: Semmem) -> None:
    mem.remember("Ana lives in Lisbon.", id="ana", created_at="2020-01-01")
    mem.update("ana", text="Ana lives in Porto.", valid_from="2022-01-01T12:00:00+00:00")
    assert then(mem, "2022-01-01T11:59:59") == [("Ana lives in Lisbon.", 1)]
    assert then(mem, "2022-01-01T12:00:00") == [("Ana lives in Porto.", 2)]
    assert then(mem, "2022-01-01T12:59:59+01:00") == [("Ana lives in Lisbon.", 1)]
    for wrong, why in (("then", "as_of must be an ISO 8601 time"), (7, "as_of must be a datetime")):
        with pytest.raises(InvalidInput, match=why):
            mem.recall("Ana", as_of=wrong)  # type: ignore[arg-type]


def test_a_version_is_explained_and_counted_like_any_hit(mem: Semmem) -> None:
    fill(mem)
    found = mem.recall("Where does Ana live?", as_of="2021-01-01", limit=1)
    assert (found[0].text, found[0].rank, found[0].passage.text) == ("Ana lives in Lisbon.", 1, "Ana lives in Lisbon.")
    assert found[0].text[slice(*found[0].matches[0])] in ("Ana", "lives")
    why = found.explain("ana")
    assert (why.rank, why.returned, why.legs["lexical"].rank) == (1, True, 1)
    assert found.reach.k == 1
    assert found.scope_size == 2
    assert not found.explain("bo").returned
    assert mem.recall("Where does Ana live?").degraded == {k: v for k, v in found.degraded.items() if k != "as_of"}
    assert ("as_of" in found.degraded) == ("dense" not in found.degraded)


def test_the_memories_searched_are_those_valid_then_each_once(mem: Semmem) -> None:
    mem.remember("Ana lives in Lisbon.", id="ana", created_at="2020-01-01", valid_from="2020-01-01")
    mem.update("ana", text="Ana lives in Porto.", valid_from="2023-01-01")
    mem.update("ana", text="Ana lives in Faro.", valid_from="2024-01-01")
    mem.remember("Bo was born.", id="bo", valid_from="2025-01-01")

    def searched(as_of: str | None, **more: Any) -> int:
        return mem.recall("Where does Ana live?", as_of=as_of, **more).scope_size

    assert [searched(time) for time in ("2019-06-01", "2021-06-01", "2025-06-01", None)] == [0, 1, 2, 2]
    assert searched("2021-06-01", filters={"created_after": "2024-01-01"}) == 0
    assert searched("2021-06-01", exclude=["ana"]) == 0
    assert "nothing in scope" in repr(mem.recall("Ana", as_of="2019-06-01"))
    mem.remember("Cy was born.", id="cy", valid_from="2025-01-01", ttl=3600)
    let_expire(mem, "cy")  # now it is out of scope for two reasons
    assert [searched(time) for time in ("2019-06-01", "2021-06-01", "2025-06-01", None)] == [0, 1, 2, 2]


def test_several_namespaces_are_asked_for_one_time(mem: Semmem) -> None:
    fill(mem)
    mem.remember("Ana likes tea.", id="tea", namespace="other", created_at="2020-01-01")
    mem.update("tea", namespace="other", text="Ana likes coffee.")
    found = mem.recall("What does Ana like, where does she live?", namespace=["default", "other"], as_of="2021-01-01")
    assert {(hit.namespace, hit.text) for hit in found if hit.id != "bo"} == {
        ("default", "Ana lives in Lisbon."), ("other", "Ana likes tea."),
    }  # fmt: skip
    assert found.explain("tea").namespace == "other"


def test_a_long_version_is_found_as_a_whole(mem: Semmem) -> None:
    text = " ".join(f"Sentence {n} tells of herons." for n in range(400)) + " The last one is about a kingfisher."
    mem.remember(text, id="long", created_at="2020-01-01")
    mem.update("long", text="Nothing.")
    (hit,) = mem.recall("kingfisher", as_of="2021-01-01").hits
    assert (hit.memory.text, hit.part, hit.memory.version) == (text, None, 1)
    assert "kingfisher" in hit.snippet


def test_what_superseded_a_memory_later_does_not_do_so_then(mem: Semmem) -> None:
    mem.remember("The port is 5432.", id="old", created_at="2020-01-01")
    mem.remember("The port is 6543 now.", id="new", created_at="2022-01-01")
    mem.link("new", "supersedes", "old")
    before, after = (mem.recall("Which port?", as_of=at).hits for at in ("2021-01-01", "2023-01-01"))
    assert [(hit.id, hit.superseded_by) for hit in before] == [("old", None)]
    assert [(hit.id, hit.superseded_by) for hit in after] == [("new", None), ("old", "new")]


def test_a_memory_whose_version_was_valid_then_supersedes_though_a_later_version_begins_after_it(mem: Semmem) -> None:
    mem.remember("The port is 5432.", id="old", created_at="2020-01-01")
    mem.remember("The port is 6543 now.", id="new", created_at="2022-01-01", valid_from="2022-01-01")
    mem.link("new", "supersedes", "old")
    mem.update("new", text="The port is 7654 now.", valid_from="2024-01-01")
    found = {at: mem.recall("Which port?", as_of=at).hits for at in ("2021-06-01", "2023-01-01", "2024-06-01")}
    assert {at: [(hit.id, hit.memory.version, hit.superseded_by) for hit in hits] for at, hits in found.items()} == {
        "2021-06-01": [("old", 1, None)],
        "2023-01-01": [("new", 1, None), ("old", 1, "new")],
        "2024-06-01": [("new", 2, None), ("old", 1, "new")],
    }


def test_what_has_expired_since_supersedes_nothing_then(mem: Semmem) -> None:
    mem.remember("The port is 5432.", id="old", created_at="2020-01-01")
    mem.remember("The port is 6543 now.", id="new", created_at="2021-01-01")
    mem.link("new", "supersedes", "old")
    let_expire(mem, "new")
    assert [(hit.id, hit.superseded_by) for hit in mem.recall("Which port?", as_of="2022-01-01")] == [("old", None)]


def test_a_change_of_a_memory_does_not_change_how_rare_its_words_were(mem: Semmem) -> None:
    # both terms have df 1, so the shorter memory is first; were its version counted too, df of cat would be 2
    mem.remember("cat", id="short", created_at="2020-01-01")
    mem.remember("owl hoots", id="long", created_at="2020-01-01")
    for _ in range(2):
        assert [hit.id for hit in mem.recall("cat owl", as_of="2021-01-01", recipe="lexical")] == ["short", "long"]
        mem.update("short", importance=0.75, valid_from="2022-01-01")


def test_a_context_of_then_has_pinned_memories_as_they_were(mem: Semmem) -> None:
    fill(mem)
    mem.update("ana", pinned=True)
    text = mem.context("Bo", as_of="2021-01-01").text
    assert [word in text for word in ("Lisbon", "Faro", "Bern")] == [True, False, True]


def test_too_many_versions_are_refused_in_one_sentence(mem: Semmem, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(mem)
    monkeypatch.setattr("semmem.stores.past.MOST_EARLIER", 0)
    with pytest.raises(InvalidInput, match="More than 0 memories of namespace 'default' have been changed since 2021"):
        mem.recall("Ana", as_of="2021-01-01")
    assert mem.recall("Bo", as_of=datetime.now(UTC))[0].id == "bo"


def test_the_vector_of_a_version_finds_it(store_url: str) -> None:
    with semmem.connect(store_url, embedder="hashing", pool_size=2) as mem:
        mem.remember("Bo lives in Bern.", id="bo", created_at="2020-01-01")
        mem.remember("Cy sails to Crete.", id="cy", created_at="2020-01-01")
        mem.update("bo", text="Rain is expected.")
        found = mem.recall("Bo lives in Bern.", as_of="2021-01-01", recipe="dense")
        assert (found[0].text, found[0].legs["dense"].rank) == ("Bo lives in Bern.", 1)
        assert found[0].legs["dense"].score == pytest.approx(1.0)
        assert [hit.id for hit in found] == ["bo", "cy"]


@pytest.mark.parametrize("changes", [1, 2])
def test_a_memory_that_is_changed_meanwhile_is_not_found_in_a_version_of_later(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch, changes: int
) -> None:
    mem.remember("Ana lives in Lisbon.", id="ana", created_at="2020-01-01")
    answers: list[int] = []
    answer = Recaller._answer

    def changed(self: Recaller, asked: Any, snapshot: Any) -> Any:
        answers.append(len(answers))
        if len(answers) <= changes:
            mem.update("ana", text=f"Ana lives in Porto {len(answers)}.", valid_from=f"202{len(answers)}-06-01")
        return answer(self, asked, snapshot)

    monkeypatch.setattr(Recaller, "_answer", changed)
    found = [hit.text for hit in mem.recall("Where does Ana live?", as_of="2021-01-01", recipe="lexical")]
    assert (found, answers) == (["Ana lives in Lisbon."], [0, 1])


def test_of_many_versions_a_recall_makes_memories_of_those_that_it_looks_at(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(30):
        mem.remember(f"Lantern {n} hangs in the {'harbour' if n < 2 else 'mill'}.", id=str(n), created_at="2020-01-01")
        mem.update(str(n), text=f"Lantern {n} is sold.", valid_from="2022-01-01")
    made: list[str] = []
    for life in (postgres_life, sqlite_life):
        monkeypatch.setattr(life, "memory_of", lambda row, of=life.memory_of: made.append(row[1]) or of(row))
    found = mem.recall("harbour", as_of="2021-01-01", recipe="lexical")
    assert sorted((hit.text, hit.memory.version) for hit in found) == [
        ("Lantern 0 hangs in the harbour.", 1), ("Lantern 1 hangs in the harbour.", 1),
    ]  # fmt: skip
    assert sorted(made) == ["0", "1"]
    made.clear()
    assert len(mem.recall("lantern", as_of="2021-01-01", recipe="lexical", filters={"tags": "none"})) == 0
    assert len(made) == 30  # a filter looks at each


def test_the_nearest_passage_of_a_version_stands_for_it_if_its_vector_can_be_compared() -> None:
    import numpy as np

    def version(*vectors: list[float], embedder: dict[str, str] | None = None) -> Earlier:
        each = {part: np.array(one, dtype=">f4") for part, one in enumerate(vectors)}
        return Earlier("a", lambda: Memory("a", "n", "text"), 1, np.zeros(0), embedder, each)

    versions = {
        1: version([0.0, 1.0], [0.5, 0.25]),
        2: version([0.5, 0.25]),
        3: version([1.0, 0.0, 0.0]),  # of another dimension
        4: version(),
    }
    nearest = _nearest_passages(versions, np.array([1.0, 0.0], dtype=np.float32))
    assert {row_id: (product, own.tolist()) for row_id, (product, own) in nearest.items()} == {
        1: (0.5, [0.5, 0.25]),
        2: (0.5, [0.5, 0.25]),
    }
    assert _nearest_passages({4: version()}, np.array([1.0, 0.0], dtype=np.float32)) == {}


@given(st.integers(1, 60), st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_equal_vectors_of_versions_have_equal_products_wherever_they_stand(count: int, size: int, seed: int) -> None:
    import numpy as np

    drawn = np.random.default_rng(seed)
    same, asked = drawn.normal(size=(2, size)).astype(np.float32)
    versions = {n: Earlier("a", lambda: Memory("a", "n", "text"), 1, (), None, {0: same}) for n in range(count)}
    products = {product for product, _ in _nearest_passages(versions, asked).values()}
    assert len(products) == 1
    assert products.pop() == pytest.approx(sum(map(float.__mul__, same.tolist(), asked.tolist())), abs=1e-4)
