"""Loaders: tiny files written by the test, and counts of the shared sets where they are present."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import semmem
from eval.datasets import FORMATS, KNOWN_SHA256, DatasetError, data_root, is_known_copy, load


def jsonl(path: Path, *rows: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def folder(tmp_path: Path, documents: list[Any], queries: list[Any]) -> Path:
    jsonl(tmp_path / "tiny" / "documents.jsonl", *documents)
    jsonl(tmp_path / "tiny" / "queries.jsonl", *queries)
    return tmp_path / "tiny"


DOC = {"id": 1, "title": "Ports", "text": "Redis listens on 6380."}
ASK = {"id": 9, "question": "Which port?", "gold_ids": [1], "type": "exact", "answer": "6380"}


# --- the folder form ---------------------------------------------------------------------------------------------


def test_an_exported_namespace_is_half_a_data_set_as_it_is(store_url: str, tmp_path: Path) -> None:
    with semmem.connect(store_url, embedder="hashing") as mem:
        mem.remember("Redis listens on 6380.", id="1", namespace="team", title="Ports")
        jsonl(tmp_path / "tiny" / "documents.jsonl", *mem.export(namespace="team"))
    jsonl(tmp_path / "tiny" / "queries.jsonl", ASK)
    corpus = load(tmp_path / "tiny")
    assert [(q.namespace, q.gold) for q in corpus.headline] == [("team", ("1",))]


def test_questions_about_several_namespaces_name_theirs(tmp_path: Path) -> None:
    documents = [DOC | {"namespace": "a"}, DOC | {"namespace": "b"}]
    words = r"queries\.jsonl line 1 names no 'namespace'; documents\.jsonl has memories in a, b"
    with pytest.raises(DatasetError, match=words):
        load(folder(tmp_path, documents, [ASK]))
    corpus = load(folder(tmp_path, documents, [ASK | {"namespace": "b"}]))
    assert corpus.headline[0].namespace == "b"


def test_integer_ids_become_strings_and_the_namespace_is_the_folder(tmp_path: Path) -> None:
    corpus = load(folder(tmp_path, [DOC], [ASK]))
    assert corpus.format == "folder"
    assert corpus.memories == ({"namespace": "tiny", "id": "1", "title": "Ports", "text": "Redis listens on 6380."},)
    query = corpus.queries[0]
    assert (query.id, query.text, query.namespace, query.gold, query.stratum, query.apart) == (
        "9", "Which port?", "tiny", ("1",), "exact", False,
    )  # fmt: skip
    assert dict(query.extra) == {"answer": "6380"}
    assert query.grades == {"1": 1}


def test_author_session_time_and_tags_pass_through(tmp_path: Path) -> None:
    row = {**DOC, "author": "ada", "session": 3, "created_at": "2026-01-06T09:02:46Z", "tags": ["infra"]}
    memory = load(folder(tmp_path, [row], [ASK])).memories[0]
    assert memory["author"] == "ada"
    assert memory["session"] == "3"
    assert memory["created_at"] == datetime(2026, 1, 6, 9, 2, 46, tzinfo=UTC)
    assert memory["tags"] == ["infra"]


def test_a_question_without_gold_is_kept_apart_and_out_of_the_headline(tmp_path: Path) -> None:
    none = {"id": "u", "question": "Who?", "gold_ids": [], "type": "unanswerable", "near_ids": [1]}
    corpus = load(folder(tmp_path, [DOC], [ASK, none]))
    assert [q.id for q in corpus.queries if q.apart] == ["u"]
    assert [q.id for q in corpus.headline] == ["9"]
    assert corpus.queries[1].extra["near_ids"] == ("1",)


def test_gold_ids_that_no_memory_has_are_dropped_and_counted(tmp_path: Path) -> None:
    lost = {"id": "l", "question": "Where?", "gold_ids": [77]}
    corpus = load(folder(tmp_path, [DOC], [{**ASK, "gold_ids": [1, 78]}, lost]))
    assert [q.gold for q in corpus.queries] == [("1",)]
    assert corpus.notes == {"gold ids that do not exist": 2, "questions without any gold that exists": 1}


@pytest.mark.parametrize(
    ("documents", "queries", "sentence"),
    [
        ([DOC, {"id": 2}], [ASK], "documents.jsonl line 2: The text is empty; a memory needs some text"),
        ([DOC, {"id": 2, "text": "  "}], [ASK], "documents.jsonl line 2: The text is empty; a memory needs some text"),
        ([DOC, DOC], [ASK], "documents.jsonl line 2 repeats the id '1'"),
        ([DOC, ["x"]], [ASK], "documents.jsonl line 2: it is list, not a memory"),
        (
            [{**DOC, "created_at": "yesterday"}],
            [ASK],
            "line 1: created_at must be an ISO 8601 time",
        ),
        ([DOC], [ASK, ASK], "queries.jsonl line 2 repeats the question id '9'"),
        ([DOC], [{**ASK, "gold_ids": 1}], "queries.jsonl line 1 has 'gold_ids' that is not a list"),
        ([DOC], [{"id": 1, "gold_ids": [1]}], "queries.jsonl line 1 has an empty 'question'"),
        ([], [ASK], "holds no memories"),
        ([DOC], [], "holds no questions that can be scored"),
        ([DOC], [{**ASK, "namespace": "b"}], "queries.jsonl line 1 asks for '1' in namespace 'b'; correct gold_ids or"),
    ],
)
def test_a_malformed_row_is_named_by_file_and_line(
    tmp_path: Path, documents: list[Any], queries: list[Any], sentence: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        load(folder(tmp_path, documents, queries))
    assert sentence in str(caught.value)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_memories_in_two_forms_are_refused(tmp_path: Path) -> None:
    path = folder(tmp_path, [DOC], [ASK])
    (path / "documents.csv").write_text("id,text\n1,Redis.\n", encoding="utf-8")
    with pytest.raises(
        DatasetError, match=r"tiny holds documents\.jsonl, documents\.csv; put one of documents\.jsonl,"
    ):
        load(path)


def test_a_memory_without_an_id_is_refused_because_no_question_can_name_it(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"documents\.jsonl line 2 has no id; questions name their memories by it"):
        load(folder(tmp_path, [DOC, {"text": "Nameless."}], [ASK]))


def test_a_line_that_is_not_json_is_named_by_its_number(tmp_path: Path) -> None:
    path = folder(tmp_path, [DOC], [ASK])
    (path / "documents.jsonl").write_text('{"id": 1, "text": "a"}\n\n{"id": 2, "text"\n', encoding="utf-8")
    with pytest.raises(DatasetError, match=r"documents\.jsonl line 3: it is not JSON"):
        load(path)


def test_a_file_that_is_not_utf8_is_named_by_line(tmp_path: Path) -> None:
    path = folder(tmp_path, [DOC], [ASK])
    (path / "documents.jsonl").write_bytes(b'{"id": 1, "text": "a"}\n{"id": 2, "text": "\xff"}\n')
    with pytest.raises(DatasetError, match=r"line 2: it is not UTF-8"):
        load(path)


def test_a_line_separator_inside_a_string_does_not_end_the_row(tmp_path: Path) -> None:
    path = folder(tmp_path, [DOC], [ASK])
    row = json.dumps({"id": 1, "text": "one\u2028two"}, ensure_ascii=False)
    (path / "documents.jsonl").write_text(row + "\n", encoding="utf-8")
    assert load(path).memories[0]["text"] == "one\u2028two"


# --- finding and checking -----------------------------------------------------------------------------------------


def test_an_absent_set_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no data set at no-such-set; pass its path, or set SEMMEM_EVAL_DATA"):
        load("no-such-set")


def test_a_folder_of_no_known_form_lists_the_forms(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="beir, folder, hipporag, locomo, longmemeval, own"):
        load(tmp_path)


def test_a_folder_that_lacks_a_file_says_which_one_to_put_there(tmp_path: Path) -> None:
    path = folder(tmp_path, [DOC], [ASK])
    (path / "queries.jsonl").unlink()
    with pytest.raises(DatasetError, match=r"put your questions beside documents\.jsonl, as queries\.jsonl\.$"):
        load(path)
    (path / "documents.jsonl").unlink()
    with pytest.raises(DatasetError, match=r"put memories there, as one of documents\.jsonl, .* as queries\.jsonl\.$"):
        load(path)


def test_an_unknown_format_lists_the_formats(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="There is no format 'csv'"):
        load(tmp_path, format="csv")


def test_a_set_is_found_by_name_under_the_data_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(tmp_path, [DOC], [ASK])
    monkeypatch.setenv("SEMMEM_EVAL_DATA", str(tmp_path))
    assert data_root() == tmp_path
    assert load("tiny").name == "tiny"


def test_the_sha256_is_over_the_bytes_read_and_a_wrong_one_is_refused(tmp_path: Path) -> None:
    import hashlib

    path = folder(tmp_path, [DOC], [ASK])
    right = hashlib.sha256((path / "documents.jsonl").read_bytes() + (path / "queries.jsonl").read_bytes()).hexdigest()
    assert load(path, sha256=right).sha256 == right
    with pytest.raises(DatasetError, match="has the sha256"):
        load(path, sha256="0" * 64)


def test_every_format_has_a_name_and_both_functions() -> None:
    for name, module in FORMATS.items():
        assert name == module.NAME
        assert callable(module.recognises)
        assert callable(module.load)


# --- the shared sets ----------------------------------------------------------------------------------------------

SHARED = {
    # name: (memories, namespaces, questions that can be asked, questions in the headline, skipped)
    "agentnotes_a": (283, 1, 110, 100, 0),
    "hotpotqa100": (994, 1, 100, 100, 0),
    "locomo3": (1451, 3, 495, 383, 2),
    "longmemeval_mini": (764, 1, 20, 16, 0),
    "musique100": (1890, 1, 100, 100, 0),
    "vaswani": (11429, 1, 93, 93, 0),
}


def shared(name: str) -> Path:
    path = data_root() / name
    if not path.exists():
        pytest.skip(f"{name} is not here; set SEMMEM_EVAL_DATA to where the shared sets lie")
    return path


@pytest.mark.parametrize("name", sorted(SHARED))
def test_a_shared_set_has_the_counts_its_readme_gives(name: str) -> None:
    path = shared(name)
    corpus = load(path)
    if is_known_copy(path, corpus) is False:
        pytest.skip(f"{name} is another copy than the one counted here")
    counted = (
        len(corpus.memories),
        len(corpus.namespaces),
        len(corpus.queries),
        len(corpus.headline),
        corpus.notes.get("questions without evidence", 0),
    )
    assert counted == SHARED[name]


def test_locomos_own_file_and_its_rows_are_the_same_corpus() -> None:
    rows, own = load(shared("locomo3")), load(shared("locomo3/locomo3.json"))
    assert rows.memories == own.memories
    assert rows.queries == own.queries
    assert own.notes == {"questions without evidence": 2}


def test_the_known_sums_are_of_full_length() -> None:
    assert all(len(sum) == 64 and set(sum) <= set("0123456789abcdef") for sum in KNOWN_SHA256.values())


def test_an_exported_namespace_is_a_set_as_it_is_whatever_its_folder_is_called(tmp_path: Path) -> None:
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        mem.remember("The ferry leaves at nine.", id="m1", namespace="notes")
        mem.remember("Tickets are sold on board.", id="m2", namespace="notes")
        rows = [json.dumps(row) + "\n" for row in mem.export(namespace="notes")]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "documents.jsonl").write_text("".join(rows), encoding="utf-8")
    (tmp_path / "mine" / "queries.jsonl").write_text(
        '{"id": "q1", "question": "When does the ferry leave?", "gold_ids": ["m1"]}\n', encoding="utf-8"
    )
    corpus = load(tmp_path / "mine")
    assert [(q.namespace, q.gold) for q in corpus.queries] == [("notes", ("m1",))]
    assert corpus.namespaces == ("notes",)
