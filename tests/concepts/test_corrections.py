"""Names listed, and corrected by hand: in what is stored, in what comes, in questions, and after a rebuild."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

import semmem
from semmem.concepts.names import name_of
from semmem.model.errors import InvalidInput, NotFound
from semmem.model.types import Concept
from tests.snapshots import names_of, snapshot
from tests.stores.audit import sql
from tests.stores.test_graph_hash import df_is_exact

TEXTS = {
    "1": "It was said that Big Blue sold its works.",
    "2": "A man at Acme Corp knew it.",
    "3": "They left Acme Corp for good.",
    "4": "It rained on Leeds.",
}


@pytest.fixture
def mem(store_url: str) -> Iterator[semmem.Semmem]:
    with semmem.connect(store_url, embedder="none", recipe="graph") as mem:
        mem.remember_many([{"id": id, "text": text, "created_at": "2026-01-31"} for id, text in TEXTS.items()])
        yield mem


def listed(mem: semmem.Semmem, like: str | None = None) -> list[tuple[str, int, tuple[str, ...]]]:
    return [(c.name, c.df, c.aliases) for c in mem.concepts(like=like)]


@pytest.mark.parametrize("folded", [False, True], ids=["pending", "folded"])
def test_concepts_are_listed_by_how_many_memories_mention_them(mem: semmem.Semmem, folded: bool) -> None:
    if folded:
        mem.maintain()
    assert listed(mem) == [("Acme Corp", 2, ()), ("Big Blue", 1, ()), ("Leeds", 1, ())]
    assert listed(mem, "BLUE") == [("Big Blue", 1, ())]
    assert listed(mem, "%") == []
    mem.remember("Founded in 1900.", id="5", title="Acme Corp")
    assert mem.concepts(limit=1) == [Concept("Acme Corp", "name", 3, 1)]
    with pytest.raises(InvalidInput, match="limit must be from 1 to 10000, not 0"):
        mem.concepts(limit=0)


@pytest.mark.parametrize("folded", [False, True], ids=["pending", "folded"])
def test_a_name_is_listed_in_the_form_that_most_memories_have(mem: semmem.Semmem, folded: bool) -> None:
    for n, text in enumerate(("The KESTREL sank.", "Then Kestrel sailed.", "When Kestrel burned.")):
        mem.remember(text, id=f"k{n}", namespace="k")
    if folded:
        mem.maintain()
    assert [(c.name, c.df) for c in mem.concepts(namespace="k")] == [("Kestrel", 3)]


def test_a_merged_name_is_the_other_one_in_old_memories_new_ones_and_questions(mem: semmem.Semmem) -> None:
    mem.merge_concepts("big blue", "Acme Corp")
    assert listed(mem) == [("Acme Corp", 3, ("big blue",)), ("Leeds", 1, ())]
    assert listed(mem, "blue") == [("Acme Corp", 3, ("big blue",))]
    mem.remember("It all went to Big Blue.", id="6")
    assert listed(mem)[0] == ("Acme Corp", 4, ("big blue",))
    df_is_exact(mem)
    assert {"1", "2", "3", "6"} <= {hit.memory.id for hit in mem.recall("Who worked for Acme Corp?")}
    assert {"1", "2", "3", "6"} <= {hit.memory.id for hit in mem.recall("Who worked for Big Blue?")}


def test_a_merge_of_a_subject_makes_mentions_of_either_name_lead_to_it(mem: semmem.Semmem) -> None:
    mem.remember("A large company.", id="5", title="Acme Corp")
    mem.remember("He was at Big blue then.", id="7")  # no span, so a mention only as a known name
    mem.merge_concepts("Big Blue", "Acme Corp")
    assert listed(mem, "blue") == [("Acme Corp", 4, ("Big Blue",))]
    walked = semmem.recipe("graph", graph={"seeders": (), "lone_names": "always"})
    way = mem.recall("What was said of Big Blue?", recipe=walked)
    assert "5" in [hit.id for hit in way]
    view = mem.graph(around="7", hops=1)
    assert {view.nodes[node]["title"] for node in view if view.nodes[node]["kind"] == "concept"} >= {"Acme Corp"}
    mem.forget("5")
    assert listed(mem, "blue") == [("Acme Corp", 3, ("Big Blue",))]


def test_a_split_takes_merges_back_and_a_later_merge_moves_earlier_ones_along(mem: semmem.Semmem) -> None:
    before = listed(mem)
    mem.merge_concepts("Big Blue", "Acme Corp")
    mem.merge_concepts("Acme Corp", "Leeds")
    assert listed(mem) == [("Leeds", 4, ("Acme Corp", "Big Blue"))]
    with pytest.raises(InvalidInput, match="'Big Blue' and 'Acme Corp' are one concept already"):
        mem.merge_concepts("Big Blue", "Acme Corp")
    mem.split_concept("Big Blue")
    assert listed(mem) == [("Leeds", 3, ("Acme Corp",)), ("Big Blue", 1, ())]
    mem.split_concept("Leeds")
    assert listed(mem) == before
    df_is_exact(mem)


def test_two_who_merge_the_same_names_crosswise_at_once_make_one_concept(mem: semmem.Semmem, store_url: str) -> None:
    mem.remember("Ada Lovelace met Countess Augusta.", namespace="n")
    waiting = "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted"
    said: list[str] = []

    def merge(one: str, other: str) -> None:
        try:
            mem.merge_concepts(one, other, namespace="n")
            said.append("merged")
        except semmem.InvalidInput as error:
            said.append(error.message)

    names = ("Ada Lovelace", "Countess Augusta")
    threads = [threading.Thread(target=merge, args=pair) for pair in (names, names[::-1])]
    with psycopg.connect(store_url) as first:
        first.execute("SELECT ords FROM semmem.namespace WHERE namespace = 'n' FOR NO KEY UPDATE")
        for thread in threads:
            thread.start()
        while first.execute(waiting).fetchone() != (2,):
            assert all(thread.is_alive() for thread in threads)
    for thread in threads:
        thread.join(30)
    assert sorted(said)[1] == "merged"
    assert "are one concept already; nothing was changed" in sorted(said)[0]
    (concept,) = mem.concepts(namespace="n")
    assert (concept.name in names, len(concept.aliases), concept.df) == (True, 1, 1)


def test_corrections_outlive_a_rebuild_and_are_part_of_the_hash(mem: semmem.Semmem) -> None:
    untouched = mem.graph_hash()
    mem.merge_concepts("Big Blue", "Acme Corp")
    merged = mem.graph_hash()
    assert mem.rebuild(extract=True).changed == 0
    assert mem.graph_hash() == merged != untouched
    with semmem.connect(mem.store.url, embedder="none", recipe="graph") as other:
        assert listed(other)[0] == ("Acme Corp", 3, ("Big Blue",))


def test_corrections_of_one_namespace_stay_in_it_and_go_with_its_last_memory(mem: semmem.Semmem) -> None:
    mem.remember("It was Big Blue, not Acme Corp.", namespace="other", id="1")
    mem.merge_concepts("Big Blue", "Acme Corp", namespace="other")
    assert ("Big Blue", 1, ()) in listed(mem)
    mem.forget("1", namespace="other")
    assert sql(mem, "SELECT 1 FROM correction") == []


def test_an_unknown_name_is_refused_in_one_sentence_and_changes_nothing(mem: semmem.Semmem) -> None:
    before = mem.graph_hash()
    for call in (
        lambda: mem.merge_concepts("Nobody", "Leeds"),
        lambda: mem.merge_concepts("Leeds", "Nobody"),
        lambda: mem.split_concept("Nobody"),
    ):
        with pytest.raises(
            NotFound, match="No memory in namespace 'default' mentions 'Nobody' as a name; `semmem conc"
        ):
            call()
    assert mem.graph_hash() == before


def test_a_memory_that_holds_two_names_that_are_one_counts_once_with_the_larger_weights(mem: semmem.Semmem) -> None:
    mem.remember("It was Big Blue, not Acme Corp.", id="5", title="Acme Corp")
    mem.merge_concepts("Big Blue", "Acme Corp")
    names = names_of(mem)
    acme, blue = name_of("Acme Corp"), name_of("Big Blue")
    (row_id,) = mem.store.row_ids_of("default", "5")
    ((at, entries),) = names.postings([blue]).items()
    assert (at, entries["ord"].tolist(), entries[["mention", "subject"]].tolist()[-1]) == (
        acme,
        [1, 2, 3, 5],
        (100, 100),
    )
    held = names.forwards([row_id]).entries
    assert held[held["key"] == acme][["mention", "subject"]].tolist() == [(100, 100)]
    assert blue not in held["key"]
    assert len(names.postings([blue], max_df=3).keys) == 0


# ---------------------------------------------------------------------- other names of subjects, in questions


@pytest.mark.parametrize(
    ("title", "question"),
    [
        ("Maurice, Prince of Orange", "Where did Maurice of Orange fight?"),
        ("Ada Lovelace", "Where did Lovelace live?"),
        ("Rolling Hills", "Where is Rolling Hill?"),
        ("Great Exhibition", "When was The Great Exhibition?"),
    ],
)
def test_a_subject_is_linked_by_another_form_of_its_name(mem: semmem.Semmem, title: str, question: str) -> None:
    mem.remember("That was long ago.", id="5", title=title)
    found = mem.recall(question, recipe=semmem.recipe("graph", graph={"seeders": ()}))
    assert found[0].memory.id == "5"


def test_a_surname_that_two_share_and_a_name_set_apart_are_not_linked(mem: semmem.Semmem) -> None:
    from semmem.concepts.rules import question
    from semmem.legs.graph_linking import WalkTrace, link
    from semmem.model.recipe import GraphSettings

    def linked() -> set[int]:
        trace = WalkTrace()
        names = names_of(mem)
        asked = question("Where did Lovelace live?")
        link(snapshot(mem, "default"), "default", names, asked, GraphSettings(), "english", trace)
        return set(trace.linked)

    mem.remember("That was long ago.", id="5", title="Ada Lovelace")
    assert linked() == set(mem.store.row_ids_of("default", "5"))
    mem.split_concept("Ada Lovelace")
    assert linked() == set()
    mem.remember("That was longer ago.", id="6", title="William Lovelace")
    assert linked() == set(mem.store.row_ids_of("default", "6"))
    mem.remember("That was longest ago.", id="7", title="Ralph Lovelace")
    assert linked() == set()


def test_a_title_is_linked_by_its_initials_where_no_other_has_them(mem: semmem.Semmem) -> None:
    from semmem.concepts.rules import question
    from semmem.legs.graph_linking import WalkTrace, link
    from semmem.model.recipe import GraphSettings

    def linked(asked: str) -> set[int]:
        trace = WalkTrace()
        names = names_of(mem)
        link(snapshot(mem, "default"), "default", names, question(asked), GraphSettings(), "english", trace)
        return set(trace.linked)

    mem.remember("That was long ago.", id="5", title="Grand Trunk Railway")
    five = set(mem.store.row_ids_of("default", "5"))
    assert linked("When did the GTR open?") == five
    assert linked("When did the gtr open?") == set()  # only capitals are an acronym
    for _ in range(2):  # before the store is tidied, and after
        assert "GTR" not in {concept.name for concept in mem.concepts()}
        mem.maintain()
    mem.remember("It is an order (GTO).", id="6", title="Grand Tall Order")
    assert linked("When did the GTR open?") == five
    mem.remember("That was longer ago.", id="7", title="Green Tea Room")
    assert linked("When did the GTR open?") == set()
