"""Runs of any retriever are judged like ours: read in every usual form, refused where they cannot say anything."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eval.cli import app
from eval.datasets import DatasetError
from eval.foreign.files import judgments, run

# Twelve questions, each with a document of its own; the vector list has the gold of the first six, words of the others.
QUESTIONS = [f"q{i}" for i in range(12)]


def trec(path: Path, found: dict[str, list[str]]) -> Path:
    lines = [f"{q} Q0 {d} {rank} {1 / rank:.4f} mine\n" for q, ds in found.items() for rank, d in enumerate(ds, 1)]
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    (tmp_path / "qrels.txt").write_text("".join(f"{q} 0 gold-{q} 1\n" for q in QUESTIONS), encoding="utf-8")
    vector = {q: ([f"gold-{q}"] if i < 10 else []) + [f"v{n}-{q}" for n in range(12)] for i, q in enumerate(QUESTIONS)}
    words = {q: ([f"gold-{q}"] if i > 9 else []) + [f"w{n}-{q}" for n in range(12)] for i, q in enumerate(QUESTIONS)}
    fused = {
        q: [d for pair in zip(vector[q], words[q], strict=False) for d in pair][:20]  # equal weights: they take turns
        for q in QUESTIONS
    }
    return {
        "qrels": tmp_path / "qrels.txt",
        "vector": trec(tmp_path / "vector.trec", vector),
        "words": trec(tmp_path / "words.trec", words),
        "fused": trec(tmp_path / "fused.trec", fused),
    }


def said(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["compare", *map(str, words)])
    return result.exit_code, " ".join(result.output.split())


def result_of(*words: object) -> dict:
    result = CliRunner().invoke(app, ["compare", *map(str, words), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_run_is_compared_with_another_one_question_by_question(files: dict[str, Path]) -> None:
    result = result_of("--run", files["words"], "--run", files["vector"], "--qrels", files["qrels"], "--metric", "R@10")
    (row,) = [c for c in result["comparisons"] if c["group"] == "headline"]
    at = row["paired"]
    # words finds 2 of 12, vector 10 of 12: ten won, two lost
    assert (at["base"], at["mean"], at["won"], at["tied"], at["lost"]) == (2 / 12, 10 / 12, 10, 0, 2)
    # of 4096 arrangements of 12 signs, 2 (1 + 12 + 66) are as far from even
    assert at["p"] == 158 / 4096
    assert (row["name"], row["verdict"]) == ("vector against words", "helps")


def test_the_lists_of_legs_are_fused_with_and_without_each(files: dict[str, Path]) -> None:
    legs = ("--leg", f"vector={files['vector']}", "--leg", f"words={files['words']}")
    result = result_of(*legs, "--run", files["fused"], "--qrels", files["qrels"], "--metric", "R@10")
    rows = {c["leg"]: c for c in result["comparisons"] if c["group"] == "headline"}
    assert set(rows) == {"vector", "words"}
    # the words' list brings the gold of two questions that no other list has, and no question loses its own
    assert (rows["words"]["paired"]["won"], rows["words"]["paired"]["lost"]) == (2, 0)
    assert rows["words"]["turnover"]["leg-only gold"] == 2
    assert rows["words"]["reach"] == {"any": "possible"}
    assert result["corpus"]["notes"] == {"of 12 questions, the fusion gives the first 10 of fused": 12}


def test_a_fusion_that_is_not_what_the_system_returned_is_refused(files: dict[str, Path]) -> None:
    legs = ("--leg", f"vector={files['vector']}", "--leg", f"fts={files['words']}")
    code, output = said(*legs, "--run", files["vector"], "--qrels", files["qrels"], "--system", "lancedb")
    assert code == 2
    assert "gives the first 10 of vector for 0 of 12 questions, so it is not what the system does" in output
    assert "compare its runs with and without the leg by --run" in output


def test_scores_that_are_made_of_ranks_are_refused_where_the_fusion_reads_scores(
    files: dict[str, Path], tmp_path: Path
) -> None:
    def legs(words: Path) -> list[object]:
        lists = ["--leg", f"vector={files['vector']}", "--leg", f"fts={words}", "--system", "lancedb"]
        return [*lists, "--fusion", "LinearCombinationReranker", "--qrels", files["qrels"], "--metric", "R@10"]

    code, output = said(*legs(files["words"]))  # 1/rank in each list of both
    assert (code, "those of vector are the same at each place for every question" in output) == (2, True)
    for name in ("vector", "words"):  # the same lists, with scores of their own
        rows = (line.split() for line in files[name].read_text(encoding="utf-8").splitlines())
        own = [" ".join([*row[:4], str(float(row[4]) * (1 + int(row[0][1:]))), row[5]]) for row in rows]
        files[name].write_text("\n".join(own), encoding="utf-8")
    assert said(*legs(files["words"]))[0] == 0
    plain = [json.dumps({"id": q, "results": [f"w{i}" for i in range(3 + n % 2)]}) for n, q in enumerate(QUESTIONS)]
    (tmp_path / "plain.jsonl").write_text("\n".join(plain), encoding="utf-8")
    assert "those of fts are the same at each place" in said(*legs(tmp_path / "plain.jsonl"))[1]


def test_a_cut_off_that_is_not_below_the_documents_there_were_to_find_is_not_evaluable(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("".join(f"{q} 0 d{i % 10} 1\n" for i, q in enumerate(QUESTIONS)), encoding="utf-8")
    ten = [f"d{i}" for i in range(10)]
    one = trec(tmp_path / "one.trec", dict.fromkeys(QUESTIONS, ten))
    other = trec(tmp_path / "other.trec", dict.fromkeys(QUESTIONS, ten[::-1]))
    runs = ("--run", one, "--run", other, "--qrels", tmp_path / "qrels", "--metric", "R@10")
    code, output = said(*runs, "--documents", 10, "--strict")
    assert code == 3
    assert "not evaluable: k = 10 is not below the number of candidates" in output


def test_a_report_is_written_and_its_conditions_can_be_compared_later(files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    runs = ("--run", files["words"], "--run", files["vector"], "--qrels", files["qrels"])
    code, output = said(*runs, "--out", out)
    assert (code, "report.html" in output) == (0, True)
    assert "vector against words" in (out / "summary.md").read_text(encoding="utf-8")
    code, output = said(f"{out}:words", f"{out}:vector", "--metric", "R@10")
    assert code == 0
    assert "+.667" in output
    assert "differs" not in output


def test_two_results_of_other_questions_are_refused_and_another_embedder_is_named(
    files: dict[str, Path], tmp_path: Path
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for out in (one, other):
        said("--run", files["words"], "--run", files["vector"], "--qrels", files["qrels"], "--out", out)
    result = json.loads((other / "result.json").read_text(encoding="utf-8"))
    result["environment"]["embedder"] = "hashing"
    (other / "result.json").write_text(json.dumps(result), encoding="utf-8")
    assert "note: the embedder differs: None in A, hashing in B." in said(f"{one}:words", f"{other}:vector")[1]
    values = (other / "private" / "per-question.jsonl").read_text(encoding="utf-8").splitlines()
    kept = [line for line in values if '"q3"' not in line]
    (other / "private" / "per-question.jsonl").write_text("\n".join(kept), encoding="utf-8")
    code, output = said(f"{one}:words", f"{other}:vector")
    assert (code, "A has 12 questions and B has 11, not the same ones" in output) == (2, True)


FORMS = {
    "ranx": ("run.json", json.dumps({"q1": {"b": 0.5, "a": 0.9}})),
    "rows of questions": ("run.jsonl", '{"id": "q1", "results": ["a", "b"]}\n'),
    "rows of questions with scores": (
        "run.jsonl",
        '{"query": "q1", "results": [{"doc_id": "a", "score": 2}, {"id": "b", "score": 0.5}]}\n',
    ),
    "rows of documents": (
        "run.jsonl",
        '{"query_id": "q1", "doc_id": "b", "score": 1}\n{"query_id": "q1", "doc_id": "a", "score": 2}\n',
    ),
    "TREC": ("run.trec", "q1 Q0 b 2 0.5 tag\nq1 Q0 a 1 0.9 tag\n"),
    "TREC with equal scores, by rank": ("run.trec", "q1 Q0 b 2 1 tag\n\nq1\tQ0\ta\t1\t1\ttag"),
}


@pytest.mark.parametrize(("name", "text"), FORMS.values(), ids=FORMS)
def test_a_run_is_read_in_every_usual_form(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert {query: [id for id, _ in found] for query, found in run(path).items()} == {"q1": ["a", "b"]}


JUDGED = {
    "TREC": ("qrels.txt", "q1 0 a 2\nq1 0 b 0\nq2 0 c 1\nq2 0 c 1.0\n"),
    "BEIR": ("test.tsv", "query-id\tcorpus-id\tscore\nq1\ta\t2\nq1\tb\t0\nq2\tc\t1\n"),
    "ranx": ("qrels.json", '{"q1": {"a": 2, "b": 0}, "q2": {"c": 1}}'),
}


@pytest.mark.parametrize(("name", "text"), JUDGED.values(), ids=JUDGED)
def test_judgments_are_read_in_every_usual_form(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert {q.id: dict(q.grades) for q in judgments(path)} == {"q1": {"a": 2}, "q2": {"c": 1}}


def test_the_questions_of_a_data_set_are_judgments_with_their_strata(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text('{"id": "q1", "question": "who?", "gold_ids": ["a"], "stratum": "people"}\n', encoding="utf-8")
    (query,) = judgments(path)
    assert (query.id, query.gold, query.stratum) == ("q1", ("a",), "people")


BAD = [
    ("q1 Q0 a 1 0.5\n", ":1 has 5 columns; a TREC run has six"),
    ("q1 Q0 a 1 0.5 t\nq1 Q0 b 2 high t\n", ":2 has the score 'high'; it must be a number"),
    ("q1 Q0 a 1 nan t\n", ":1 has the score nan; it must be a finite number"),
    ("q1 Q0 a 1 0.5 t\nq1 Q0 a 2 0.4 t\n", ":2 repeats the document 'a' of question 'q1'"),
    ('{"id": "q1", "results": ["a"]}\n{"id": "q2", "results": "a"}\n', ":2 has 'results' that is not a list"),
    ('{"id": "q1", "results": ["a"]}\n{"id": \n', ":2 is not JSON"),
    ('{"query_id": "q1", "score": 1}\n', ":1 has none of doc_id"),
    ('{"q1": {"a": "best"}}', "'q1', has the score 'best'"),
    ("", "holds no results"),
    ("q1 Q0 a 1 0.1 t\nq1 Q0 b 2 0.4 t\n", ":2 has a higher score than the document before it of question 'q1'"),
    ('{"id": "q1", "results": [{"id": "a", "score": 0.1}, {"id": "b", "score": 2}]}', ":1 has a higher score than"),
    ('{"id": "q1", "results": ["a"]}\n{"id": "q1", "results": ["b"]}\n', ":2 repeats the question 'q1'"),
    ('{"id": "q1", "results": [["a", 0.9]]}', ':1 has the result ["a", 0.9]; an id is a string or a whole number'),
    ('{"id": true, "results": ["a"]}', ":1 has the id true; an id is a string or a whole number"),
    ('{"id": "q1", "results": ["a"]}\nq2 Q0 a 1 1 t\n', ":2 has another form than the lines before it"),
    ('{"query_id": "q1", "query_id": "q2", "doc_id": "a", "score": 1}', ":1 has 'query_id' twice in one object"),
    ('{"q1": {"a": 1, "a": 2}}', "has 'a' twice in one object; keep one"),
    ('{"q1": {"a": 1}, "q1": {"b": 2}}', "has 'q1' twice in one object; keep one"),
    ('{"q1": {"a": true}}', "'q1', has the score True; it must be a number"),
    ('{"q1": {"a": 1}, "q2": ["a"]}', "'q2', has no object of documents"),
    ('{\n "q1": {\n  "a": 1,\n  "b"\n }\n}', ":5 is not JSON (Expecting ':' delimiter)"),
    ('[{"id": "q1", "results": ["a"]}]', "is a JSON list; write its objects as JSON lines"),
]


@pytest.mark.parametrize(("text", "words"), BAD, ids=[words for _, words in BAD])
def test_a_bad_line_of_a_run_is_named_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "bad.trec"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DatasetError, match=re.escape(words)):
        run(path)


BAD_JUDGED = [
    ("q1 0 a 1\nq1 a\n", ":2 has 2 columns"),
    ("q1 0 a yes\n", ":1 has the grade 'yes'; it must be a number"),
    ('{"id": "q1"}\n', ":1 has no 'gold_ids'"),
    ("q1 0 a 0\n", "calls no document relevant"),
    ("", "holds no judgments"),
    ("q1 a x\nq2 b 1\n", ":1 has the grade 'x'; it must be a number"),  # no head of a table
    ("q1 0 a .5\n", ":1 has the grade '.5'; it must be a whole number"),
    ('{"q1": {"a": 1.7}}', "'q1', has the grade 1.7; it must be a whole number"),
    ("q1 0 a 1\nq1 0 a 0\n", ":2 gives the document 'a' of question 'q1' another grade; keep one"),
    ('{"id": "q1", "gold_ids": ["a"]}\n{"id": "q1", "gold_ids": ["b"]}', ":2 repeats the question id 'q1'"),
    ('{"id": null, "gold_ids": ["a"]}', ":1 has none of id"),
    ('{"id": "q1", "gold_ids": ["a"]}\nq2 0 a 1\n', ":2 has another form than the lines before it"),
    ('[{"id": "q1", "gold_ids": ["a"]}]', "is a JSON list"),
]


@pytest.mark.parametrize(("text", "words"), BAD_JUDGED, ids=[words for _, words in BAD_JUDGED])
def test_a_bad_line_of_judgments_is_named_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "qrels"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DatasetError, match=re.escape(words)):
        judgments(path)


def test_what_cannot_be_compared_is_told_in_a_sentence(files: dict[str, Path], tmp_path: Path) -> None:
    other = trec(tmp_path / "other.trec", {"elsewhere": ["a"]})
    qrels = ("--qrels", files["qrels"])
    for words, sentence in (
        (("--run", files["vector"]), "--run and --leg go with --qrels FILE"),
        (("--run", files["vector"], *qrels), "One run compares with nothing"),
        (("--leg", files["vector"], *qrels), "One leg alone has nothing to be compared with"),
        (("--run", files["vector"], "--run", other, *qrels), "share no question: one has 'elsewhere', the other 'q0'"),
        (("--run", files["vector"], "--run", files["vector"], *qrels), "Two files have the name 'vector'"),
        (("--run", files["vector"], "--run", tmp_path / "no.trec", *qrels), "no.trec; pass what a retriever returned"),
        ((), "Pass two result folders, or --run twice, or --leg for each leg"),
        (
            ("--run", files["vector"], "--run", files["words"], "--weights", "1,2", *qrels),
            "--constant fuse the lists of --leg",
        ),
        (
            ("--run", files["vector"], "--run", files["words"], "--documents", 9, *qrels),
            "--documents 9 is fewer than the 300 documents of these results",
        ),
    ):
        code, output = said(*words)
        assert code == 2
        assert sentence in output


def test_legs_that_a_system_does_not_have_are_named_beside_those_it_has(files: dict[str, Path]) -> None:
    legs = ("--leg", f"vector={files['vector']}", "--leg", f"words={files['words']}", "--qrels", files["qrels"])
    code, output = said(*legs, "--system", "lancedb")
    assert code == 2
    assert "LanceDB hybrid search has no fusion of the legs vector, words; its fusions and legs are" in output
    assert "There are 2 legs and 3 weights" in said(*legs, "--weights", "1,2,3")[1]
    assert "Weights are numbers with commas" in said(*legs, "--weights", "much")[1]
    assert "Weights are numbers of 0 or more, such as .7,.3, not '1,inf'" in said(*legs, "--weights", "1,inf")[1]
    assert "The rank constant is a number of 0 or more, such as 60, not nan" in said(*legs, "--constant", "nan")[1]
    assert "a --system has its own" in said(*legs, "--system", "lancedb", "--constant", "60")[1]
    assert "--fusion names one of a system's" in said(*legs, "--fusion", "rrf")[1]


def test_questions_without_a_result_count_nothing_and_are_told(files: dict[str, Path], tmp_path: Path) -> None:
    found = {q: [f"gold-{q}", "x", "y"][: 1 + i % 3] for i, q in enumerate(QUESTIONS[:6])}
    few = trec(tmp_path / "few.trec", {**found, "unknown": ["x"]})
    result = result_of("--run", files["vector"], "--run", few, "--qrels", files["qrels"], "--metric", "R@10")
    assert result["conditions"]["few"]["measures"]["headline"]["R@10"] == 6 / 12
    assert result["corpus"]["notes"] == {
        "questions of few without a judgment": 1,
        "questions without a result in few, which count 0": 6,
    }
    told = said("--run", files["vector"], "--run", few, "--qrels", files["qrels"])[1]
    assert "note: questions of few without a judgment: 1." in told  # right in number for one as for many


def test_a_run_with_results_for_fewer_than_half_of_the_questions_is_not_judged(
    files: dict[str, Path], tmp_path: Path
) -> None:
    cut = trec(tmp_path / "cut.trec", {q: [f"gold-{q}"] for q in QUESTIONS[:5]})
    code, output = said("--run", files["vector"], "--run", cut, "--qrels", files["qrels"])
    assert (code, "cut.trec has results for 5 of 12 questions; a run that was cut short" in output) == (2, True)
    legs = ("--leg", f"vector={files['vector']}", "--leg", f"rare={cut}", "--qrels", files["qrels"])
    code, output = said(*legs, "--metric", "R@10")  # of a leg it may be so: then it alone cannot be judged
    assert (code, "rare in rrf not evaluable: rare is empty for 58% of the questions" in output) == (0, True)


def test_a_run_that_was_cut_off_is_not_compared_beyond_its_end(tmp_path: Path) -> None:
    (tmp_path / "qrels.jsonl").write_text(
        "".join(json.dumps({"id": f"q{i}", "gold_ids": [f"g{i}"]}) + "\n" for i in range(12)), encoding="utf-8"
    )
    for name, depth in (("cut", 10), ("deep", 20)):
        lines = [
            f"q{i} Q0 {f'g{i}' if place == 15 else f'n{place}'} {place} {1 / place} x\n"
            for i in range(12)
            for place in range(1, depth + 1 + (i == 7) - (i == 8))  # one list that goes on, one that ends before
        ]
        (tmp_path / f"{name}.trec").write_text("".join(lines), encoding="utf-8")
    words = ["--run", tmp_path / "cut.trec", "--run", tmp_path / "deep.trec", "--qrels", tmp_path / "qrels.jsonl"]
    code, output = said(*words, "--metric", "R@20")
    assert code == 2
    assert "Most lists of cut end at 10, and others go on" in output
    assert said(*words, "--metric", "R@10")[0] == 0
