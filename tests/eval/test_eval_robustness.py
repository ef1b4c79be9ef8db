"""What the robustness rows change, and what they leave as it is; how a namespace is grown."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval.datasets import Corpus, DatasetError, Query
from eval.robustness import foreign, rows
from eval.scale import grown

CORPUS = Corpus(
    "c",
    tuple({"id": id, "namespace": "n", "text": f"text {id}", "title": f"Title {id}"} for id in "abcd"),
    (Query("q", "Who is Ada?", "n", ("a",)),),
)


def test_each_row_changes_one_thing_and_says_which(tmp_path: Path) -> None:
    (tmp_path / "two.txt").write_text("One sentence.\n\nAnother.\n")
    (tmp_path / "one.conllu").write_text("# sent_id = 1\n# text = A third.\n1\tA\n")
    crowds = foreign([str(tmp_path / "two.txt"), str(tmp_path / "one.conllu")], 3)
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


def test_too_few_foreign_memories_are_told(tmp_path: Path) -> None:
    (tmp_path / "two.txt").write_text("One sentence.\nAnother.\n")
    with pytest.raises(DatasetError, match="hold 2 memories, not 3; name another set"):
        foreign([str(tmp_path / "two.txt")], 3)


def test_a_grown_namespace_begins_with_the_memories_that_are_there_and_is_the_same_again() -> None:
    memories = [{"id": "1", "text": "a b c d"}, {"id": "2", "text": "e f g h"}]
    made = list(grown(memories, 5))
    assert made[:2] == memories
    assert [m["id"] for m in made[2:]] == ["grown 2", "grown 3", "grown 4"]
    assert {m["text"] for m in made[2:]} <= {"a b c d", "e f g h", "a b g h", "e f c d"}
    assert list(grown(memories, 5)) == made
    assert list(grown(memories, 1)) == memories[:1]
