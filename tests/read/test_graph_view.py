"""A piece of the graph as networkx has it: what is in it, how far it goes, where it stops."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx
import pytest

import semmem

MEMORIES: tuple[dict[str, Any], ...] = (
    {"id": "kestrel", "title": "Kestrel", "text": "Petra Lindqvist designed it."},
    {"id": "petra", "title": "Petra Lindqvist", "text": "Her bakery stands in Norrbeck."},
    {"id": "norrbeck", "text": "The ferry to Norrbeck is blue."},
    {"id": "one", "text": "Rain.", "session": "s", "author": "Ada"},
    {"id": "two", "text": "Snow.", "session": "s", "author": "Ada"},
    {"id": "three", "text": "Hail.", "session": "s", "author": "Bo"},
)


@pytest.fixture
def mem(store_url: str) -> Iterator[semmem.Semmem]:
    with semmem.connect(store_url, embedder="none") as opened:
        opened.remember_many(MEMORIES, namespace="n")
        yield opened


def memories(graph: networkx.Graph) -> set[str]:
    return {about["name"] for _, about in graph.nodes(data=True) if about["kind"] == "memory"}


def concepts(graph: networkx.Graph) -> set[str]:
    return {about["name"] for _, about in graph.nodes(data=True) if about["kind"] == "concept"}


def tie(graph: networkx.Graph, memory: str, concept: str) -> dict[str, Any]:
    node = next(n for n, about in graph.nodes(data=True) if (about["kind"], about["name"]) == ("concept", concept))
    found: dict[str, Any] = graph.edges[f"m:{memory}", node]
    return found


def test_a_name_leads_to_the_memories_that_hold_it_and_further_hop_by_hop(mem: semmem.Semmem) -> None:
    near = mem.graph(namespace="n", around="Petra Lindqvist", hops=1)
    assert memories(near) == {"kestrel", "petra"}
    assert concepts(near) == {"Petra Lindqvist"}
    assert memories(mem.graph(namespace="n", around="Petra Lindqvist", hops=2)) == {"kestrel", "petra", "norrbeck"}


@pytest.mark.parametrize(
    "written",
    ["petra lindqvist", "PETRA LINDQVIST", "Pétra Lindqvist's", "who is Petra Lindqvist?", "the Petra Lindqvists"],
)
def test_a_name_is_found_however_it_is_written(mem: semmem.Semmem, written: str) -> None:
    assert memories(mem.graph(namespace="n", around=written, hops=1)) == {"kestrel", "petra"}


def test_a_word_that_is_no_name_will_do(mem: semmem.Semmem) -> None:
    assert memories(mem.graph(namespace="n", around="ferries", hops=1)) == {"norrbeck"}


def test_a_memory_leads_over_its_concepts_to_others(mem: semmem.Semmem) -> None:
    near = mem.graph(namespace="n", around="petra", hops=1)
    assert memories(near) == {"petra", "kestrel", "norrbeck"}
    assert [n for n, about in near.nodes(data=True) if about["start"]] == ["m:petra"]
    assert {"Petra Lindqvist", "Norrbeck"} <= concepts(near)


def test_a_mention_weighs_idf_times_a_and_a_subject_says_so(mem: semmem.Semmem) -> None:
    # "Petra Lindqvist" is mentioned by 2 of 6 memories: idf = ln(1 + 6/2) / ln(1 + 6) = 1.3863 / 1.9459 = .7124; a = 1.
    graph = mem.graph(namespace="n", around="Petra Lindqvist", hops=1)
    idf = math.log(4) / math.log(7)
    assert tie(graph, "kestrel", "Petra Lindqvist") == {
        "type": "mention", "role": "mention", "weight": pytest.approx(idf)
    }  # fmt: skip
    assert tie(graph, "petra", "Petra Lindqvist") == {
        "type": "mention", "role": "subject", "weight": pytest.approx(idf)
    }  # fmt: skip


def test_concepts_of_exactly_the_same_memories_are_drawn_once(mem: semmem.Semmem) -> None:
    graph = mem.graph(namespace="n", around="Petra Lindqvist", hops=1)
    about = next(about for _, about in graph.nodes(data=True) if about["kind"] == "concept")
    assert (about["sort"], about["df"]) == ("name", 2)
    assert set(about["also"].split(", ")) == {"Petra", "Lindqvist"}  # its two words, and not the pair once more


def test_turns_side_by_side_are_tied_and_those_of_one_author_less(mem: semmem.Semmem) -> None:
    graph = mem.graph(namespace="n", around="two", hops=1)
    assert memories(graph) == {"one", "two", "three"}
    assert graph.edges["m:one", "m:two"] == {"type": "next in session", "weight": 0.25}
    assert graph.edges["m:two", "m:three"] == {"type": "next in session", "weight": 0.5}


def test_a_namespace_is_drawn_whole_up_to_the_limit(mem: semmem.Semmem) -> None:
    assert memories(mem.graph(namespace="n", limit=6)) == {str(m["id"]) for m in MEMORIES}
    with pytest.raises(semmem.InvalidInput, match="holds 6 memories and parts, more than the 5 that are drawn at once"):
        mem.graph(namespace="n", limit=5)
    assert len(mem.graph(namespace="empty")) == 0


def test_concepts_are_shown_as_people_wrote_them_most(mem: semmem.Semmem) -> None:
    for n, text in enumerate(
        ("they postponed the kafka upgrade", "postponed kafka again", "postponing kafka worries me")
    ):
        mem.remember(text, id=str(n), namespace="w")
    shown = {a["name"] for _, a in mem.graph(namespace="w").nodes(data=True) if a["kind"] == "concept"}
    others = {a["also"] for _, a in mem.graph(namespace="w").nodes(data=True) if a["kind"] == "concept"}
    said = {*shown, *(one for also in others for one in also.split(", "))}
    assert {"postponed kafka"} <= said
    assert not any("postpon " in one or one == "postpon" for one in said), said
    path = str(mem.recall("postponed kafka", namespace="w").explain("1"))
    assert "postpon kafka" not in path


def test_what_too_many_memories_mention_is_counted_and_said(mem: semmem.Semmem) -> None:
    mem.remember_many({"text": f"Then Marlow met Ravik{n} here.", "id": str(n)} for n in range(40))
    graph = mem.graph()
    assert (graph.graph["too_common"], graph.graph["max_df"]) == (1, 30)  # Marlow
    assert "Marlow" not in {a["name"] for _, a in graph.nodes(data=True)}
    assert mem.graph(around="Marlow").graph["too_common"] == 0
    assert mem.graph(namespace="n").graph["too_common"] == 0


def test_concepts_without_room_are_counted(mem: semmem.Semmem) -> None:
    for id, text in (("1", "alder birch cedar"), ("2", "alder birch dogwood"), ("3", "alder cedar dogwood")):
        mem.remember(text, id=id, namespace="r")
    graph = mem.graph(
        namespace="r", limit=3
    )  # alder in all three, birch, cedar and dogwood in two each: four, for three
    assert sum(a["kind"] == "concept" for _, a in graph.nodes(data=True)) == 3
    assert graph.graph["left_out_concepts"] == 1
    assert mem.graph(namespace="r", limit=4).graph["left_out_concepts"] == 0


def test_what_has_no_room_is_counted(mem: semmem.Semmem) -> None:
    graph = mem.graph(namespace="n", around="petra", hops=1, limit=2)
    assert memories(graph) == {"petra", "kestrel"}  # tied by a name and its words, Norrbeck by a name alone
    assert graph.graph["left_out"] == 1
    again = mem.graph(namespace="n", around="petra", hops=6, limit=2)
    assert again.graph["left_out"] == 1  # once, however often it was met


def test_a_long_memory_is_one_node_whatever_its_parts(mem: semmem.Semmem) -> None:
    text = "Gulls cry over Norrbeck. " * 100
    mem.remember(text, id="long", namespace="n", session="log")
    whole = mem.graph(namespace="n", around="long", hops=1)
    assert len(mem.store.row_ids_of("n", "long")) == 2
    assert {"long", "norrbeck"} <= memories(whole)
    assert [n for n, about in whole.nodes(data=True) if about["start"]] == ["m:long"]
    assert whole.nodes["m:long"]["text"] == text
    assert not list(networkx.selfloop_edges(whole))
    with pytest.raises(semmem.NotFound):
        mem.graph(namespace="n", around="long#2")


def test_a_name_that_was_merged_by_hand_leads_to_the_other(mem: semmem.Semmem) -> None:
    mem.merge_concepts("Kestrel", "Norrbeck", namespace="n")
    assert memories(mem.graph(namespace="n", around="Kestrel", hops=1)) == {"kestrel", "petra", "norrbeck"}


def test_another_namespace_stays_behind_its_wall(mem: semmem.Semmem) -> None:
    mem.remember("Petra Lindqvist again.", id="elsewhere", namespace="other")
    assert memories(mem.graph(namespace="n", around="Petra Lindqvist", hops=6)) == {"kestrel", "petra", "norrbeck"}


@pytest.mark.parametrize(
    ("given", "error", "sentence"),
    [
        ({"around": "Nobody"}, semmem.NotFound, "Nothing in namespace 'n' is called 'Nobody'"),
        ({"around": "  "}, semmem.InvalidInput, "it is empty"),
        ({"around": "petra", "hops": 0}, semmem.InvalidInput, "hops must be a whole number from 1 to 6"),
        ({"limit": True}, semmem.InvalidInput, "limit must be a whole number"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_a_sentence(
    mem: semmem.Semmem, given: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        mem.graph(namespace="n", **given)


def test_the_store_is_asked_a_few_times_a_hop_and_never_once_a_memory(
    mem: semmem.Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.remember_many(({"text": f"Note {n} from Norrbeck."} for n in range(20)), namespace="n")
    asked = []
    rows = mem.store.rows
    monkeypatch.setattr(mem.store, "rows", lambda name, parameters: asked.append(name) or rows(name, parameters))
    assert len(memories(mem.graph(namespace="n", around="Norrbeck", hops=2))) == 23  # 20, norrbeck, petra, kestrel
    assert 8 <= len(asked) <= 18


def test_a_relationship_ties_two_concepts(store_url: str, tmp_path: Path) -> None:
    triples = tmp_path / "graph.json"
    passage = {"passage": "Oona\nOona mended the Wren.", "extracted_entities": ["Oona", "Wren"]}
    passage["extracted_triples"] = [["Oona", "mended", "Wren"]]  # type: ignore[list-item]  # as the file has it
    triples.write_text(json.dumps({"docs": [passage]}), encoding="utf-8")
    with semmem.connect(store_url, embedder="none", extractor="precomputed", triples=triples) as mem:
        mem.remember("Oona mended the Wren.", title="Oona", id="a", namespace="n")
        graph = mem.graph(namespace="n", around="a", hops=1)
        ends = {
            frozenset(graph.nodes[n]["name"].lower() for n in (one, other))
            for one, other, about in graph.edges(data=True)
            if about["type"] == "relationship"
        }
    assert ends == {frozenset(("oona", "wren"))}
