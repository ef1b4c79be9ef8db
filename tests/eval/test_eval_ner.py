"""How the spans of the rules are scored against marked text."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval.ner import Marked, main, predicted, read_conll, score, spans_of


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("O I-PER I-PER O", ((1, 3),)),
        ("B-PER B-PER I-PER", ((0, 1), (1, 3))),
        ("I-PER I-LOC", ((0, 1), (1, 2))),
        ("O O", ()),
        ("I-PER", ((0, 1),)),
    ],
)
def test_tags_of_all_three_schemes_are_read(tags: str, spans: tuple[tuple[int, int], ...]) -> None:
    assert spans_of(tags.split()) == spans


def test_a_file_is_read_sentence_by_sentence(tmp_path: Path) -> None:
    path = tmp_path / "x.conll"
    path.write_text("-DOCSTART- O\n\nAda I-PER\nran O\n\n@\tB-PER\nbob\tB-PER\n", encoding="utf-8")
    assert list(read_conll(path)) == [Marked(("Ada", "ran"), ((0, 1),)), Marked(("@", "bob"), ((1, 2),))]


def test_spans_are_runs_of_the_marked_tokens_whatever_the_spaces_between() -> None:
    # the whole, the name up to its possessive, the name after it: "Mr. Peel's Mill"
    sentence = ("In", "Mr", ".", "Peel", "'s", "Mill", "it", "rained", ".")
    assert predicted(sentence) == {(1, 6), (1, 5), (5, 6)}
    assert predicted(("He", "saw", "(", "Ada", ")", "in", "Mill")) == {(3, 4), (6, 7)}


def test_maximal_leaves_out_spans_within_others() -> None:
    sentence = ("We", "saw", "Ada", "and", "Charles", ".")
    assert predicted(sentence) == {(2, 5), (2, 3), (4, 5)}
    assert predicted(sentence, maximal=True) == {(2, 5)}


def test_precision_recall_and_kinds_of_error_are_counted() -> None:
    sentences = [
        Marked(("We", "saw", "Ada", "and", "Charles", "."), ((2, 3), (4, 5))),  # spans 2-5, 2-3, 4-5
        Marked(("Rain", "fell", "on", "amsterdam", "."), ((3, 4),)),  # span 0-1
        Marked(("on", "Monday", "Grace", "Hopper", "left"), ((2, 4),)),  # span 1-4
    ]
    counts = score(sentences)
    assert (counts.names, counts.predictions) == (4, 5)
    assert (counts.found, counts.right) == (2, 2)
    assert (counts.touched, counts.near) == (3, 4)
    assert counts.errors == {"missed: lower-case name": 1, "no name: sentence-initial word": 1, "boundary: too long": 1}
    measures = counts.measures()
    assert measures["P exact"] == pytest.approx(2 / 5)
    assert measures["R exact"] == pytest.approx(2 / 4)
    assert measures["F1 exact"] == pytest.approx(4 / 9)  # 2 * .4 * .5 / .9
    assert measures["P overlap"] == pytest.approx(4 / 5)
    assert measures["R overlap"] == pytest.approx(3 / 4)


def test_the_command_prints_counts_and_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.conll").write_text("Zebulon I-PER\nran O\n\nsadly O\nqwilliam I-PER\n", encoding="utf-8")
    assert main([str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "| missed: lower-case name | 1 | 100.0% |" in printed
    assert "ebulon" not in printed
    assert "qwilliam" not in printed


def test_a_path_without_data_is_refused_with_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none")]) == 2
    assert "no CoNLL file" in capsys.readouterr().err
