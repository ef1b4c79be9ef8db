"""What the robustness rows change, and what they leave as it is; how a namespace is grown."""

from __future__ import annotations

from pathlib import Path

import pytest

import semmem
from eval.bench.scale import grown
from eval.datasets import Corpus, DatasetError, Query
from eval.robustness import foreign, rows, table

CORPUS = Corpus(
    "c",
    tuple({"id": id, "namespace": "n", "text": f"text {id}", "title": f"Title {id}"} for id in "abcd"),
    (Query("q", "Who is Ada?", "n", ("a",)),),
)


def test_each_row_changes_one_thing_and_says_which(tmp_path: Path) -> None:
    (tmp_path / "two.txt").write_text("One sentence.\n\nAnother.\n")
    (tmp_path / "one.conllu").write_text("# sent_id = 1\n# text = A third.\n1\tA\n")
    crowds = foreign([str(tmp_path / "two.txt"), str(tmp_path / "one.conllu")], [3])
    made = dict(rows(CORPUS, crowds))
    assert list(made) == [
        "as they are",
        "questions in lower case",
        "memories in shuffled order",
        "titles left out",
        "2 foreign memories beside",
        "3 foreign memories beside",
    ]
    plain, low, shuffled, bare, _, crowd = made.values()
    assert [q.text for q in low.queries] == ["who is ada?"]
    assert low.memories == plain.memories
    assert [m["id"] for m in shuffled.memories] != list("abcd")
    assert sorted(m["id"] for m in shuffled.memories) == list("abcd")
    assert [set(m) for m in bare.memories] == [{"id", "namespace", "text"}] * 4
    assert [m["text"] for m in crowd.memories[4:]] == ["One sentence.", "Another.", "A third."]
    assert {m["namespace"] for m in crowd.memories} == {crowd.queries[0].namespace}
    # rows stand in namespaces of their own, but for the one that changes the questions alone
    assert len({c.namespaces for c in made.values()}) == 5


def test_foreign_memories_have_a_row_at_each_count_and_at_the_end_of_each_source(tmp_path: Path) -> None:
    (tmp_path / "three.txt").write_text("One.\nTwo.\nThree.\n")
    (tmp_path / "two.txt").write_text("Four.\nFive.\n")
    crowds = foreign([str(tmp_path / "three.txt"), str(tmp_path / "two.txt")], [2, 4])
    assert [[item["text"] for item in crowd] for crowd in crowds] == [
        ["One.", "Two."],
        ["One.", "Two.", "Three."],
        ["One.", "Two.", "Three.", "Four."],
    ]
    assert [item["id"] for item in crowds[0]] == ["foreign 0", "foreign 1"]


def test_each_leg_has_a_row_of_its_own_after_the_row_of_its_change(tmp_path: Path) -> None:
    texts = {"a": "Ada builds boats of oak.", "b": "Ben bakes bread at dawn."}
    memories = tuple({"id": id, "namespace": "n", "text": text} for id, text in texts.items())
    corpus = Corpus("c", memories, (Query("q", "boats of oak", "n", ("a",)), Query("r", "flour", "n", ("b",))))
    with semmem.connect(f"sqlite:///{tmp_path / 'notes.db'}", embedder="hashing") as mem:
        found = table(mem, corpus, [], semmem.recipe(), legs=True)
    assert [row["row"] for row in found[:5]] == [
        "as they are",
        "as they are, lexical alone",
        "as they are, dense alone",
        "as they are, graph alone",
        "questions in lower case",
    ]
    # no memory holds "flour", any vector is near, and the walk starts from the nearest
    assert [row["R@5"] for row in found[:4]] == [1, 0.5, 1, 1]
    assert ["R@5 difference" in row for row in found[:5]] == [False, False, False, False, True]


def test_too_few_foreign_memories_are_told(tmp_path: Path) -> None:
    (tmp_path / "two.txt").write_text("One sentence.\nAnother.\n")
    with pytest.raises(DatasetError, match="hold 2 memories, not 3; name another set"):
        foreign([str(tmp_path / "two.txt")], [1, 3])


def test_a_grown_namespace_begins_with_the_memories_that_are_there_and_is_the_same_again() -> None:
    memories = [{"id": "1", "text": "a b c d"}, {"id": "2", "text": "e f g h"}]
    made = list(grown(memories, 5))
    assert made[:2] == memories
    assert [m["id"] for m in made[2:]] == ["grown 2", "grown 3", "grown 4"]
    assert {m["text"] for m in made[2:]} <= {"a b c d", "e f g h", "a b g h", "e f c d"}
    assert list(grown(memories, 5)) == made
    assert list(grown(memories, 1)) == memories[:1]
