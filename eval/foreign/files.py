"""Read runs and judgments in the forms that others write: TREC, BEIR's tables, the JSON of ranx and BEIR, JSON lines.

The form is recognised by the content. A line that cannot be read stops with file and line: a run that is cut short
would be measured as a worse retriever.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from eval.datasets import DatasetError, Query
from eval.datasets.folder import question

__all__ = ["Ranked", "digest", "judgments", "run"]

Ranked: TypeAlias = Mapping[str, Sequence[tuple[str, float]]]
"""A run: by question, its documents with their scores, best first."""
_ONE_SPACE = "questions"
_QUERY = ("query_id", "qid", "query-id", "query")
_DOCUMENT = ("doc_id", "docid", "corpus-id", "document", "id")
_OF_ROWS = frozenset(("results", "gold_ids", "score"))
_HEADS = frozenset(("score", "grade", "relevance", "rel", "label"))
"""Heads of the last column of a table of judgments."""


def run(path: Path) -> Ranked:
    """Return a run. Documents are ordered by score, those of equal scores by rank or, without ranks, as in the file.

    TREC: ``question Q0 document rank score tag``. ranx, BEIR: ``{"question": {"document": score}}``. JSON lines: a row
    a question, ``{"id": …, "results": ["document", …]}`` best first or ``[{"id": …, "score": …}]``; or a row a
    document, ``{"query_id": …, "doc_id": …, "score": …}``. Raises DatasetError.
    """
    found: dict[str, dict[str, _Place]] = {}
    for where, query, document, score, rank in _rows_of_a_run(path):
        of_query = found.setdefault(query, {})
        if document in of_query:
            raise DatasetError(f"{where} repeats the document {document!r} of question {query!r}; keep its best place.")
        if not math.isfinite(score):
            raise DatasetError(f"{where} has the score {score}; it must be a finite number.")
        of_query[document] = _Place(score, rank, where)
    if not found:
        raise DatasetError(f"{path} holds no results; write a line a document, or a row a question.")
    return {query: _ordered(query, of_query) for query, of_query in found.items()}


class _Place(NamedTuple):
    """Where a run has a document of a question: the rank is None where the form has none."""

    score: float
    rank: float | None
    where: str


def _ordered(query: str, places: Mapping[str, _Place]) -> list[tuple[str, float]]:
    """Return the documents best first. Raises DatasetError where scores rise with the rank, as distances do."""
    by_rank = sorted((place for place in places.values() if place.rank is not None), key=lambda place: place.rank or 0)
    for better, worse in pairwise(by_rank):
        if better.rank != worse.rank and better.score < worse.score:
            raise DatasetError(
                f"{worse.where} has a higher score than the document before it of question {query!r}; scores fall from "
                "the first rank on, so write similarities and no distances."
            )
    best_first = sorted(places.items(), key=lambda item: (-item[1].score, item[1].rank or 0))
    return [(document, place.score) for document, place in best_first]


def judgments(path: Path) -> list[Query]:
    """Return the questions with what is relevant to each: grades above 0.

    TREC: ``question 0 document grade``. BEIR: a table of question, document and grade. ranx:
    ``{"question": {"document": grade}}``. JSON lines: the questions of a data set, ``{"id": …, "gold_ids": […]}`` with
    ``namespace`` and ``stratum`` where there are any. Raises DatasetError.
    """
    questions: dict[str, Query] = {}
    grades: dict[str, dict[str, int]] = {}
    for where, of in _rows_of_judgments(path):
        if isinstance(of, Query):
            if questions.setdefault(of.id, of) is not of:
                raise DatasetError(f"{where} repeats the question id {of.id!r}; question ids are unique.")
            continue
        query, document, grade = of
        if grades.setdefault(query, {}).setdefault(document, grade) != grade:
            raise DatasetError(
                f"{where} gives the document {document!r} of question {query!r} another grade; keep one."
            )
    queries = [*questions.values(), *(_judged(id, of_query) for id, of_query in grades.items())]
    if not queries:
        raise DatasetError(f"{path} holds no judgments; write a line for each relevant document.")
    if not any(query.gold for query in queries):
        raise DatasetError(f"{path} calls no document relevant; a grade above 0 says that one is.")
    return queries


def digest(paths: Sequence[Path]) -> str:
    """Return the sha256 of the files, one after the other."""
    total = sha256()
    for path in paths:
        total.update(path.read_bytes())
    return total.hexdigest()


def _judged(id: str, grades: Mapping[str, int]) -> Query:
    relevant = {document: grade for document, grade in grades.items() if grade > 0}
    return Query(id, "", _ONE_SPACE, tuple(relevant), "all", not relevant, {"grades": relevant})


def _rows_of_a_run(path: Path) -> Iterator[tuple[str, str, str, float, float | None]]:
    """Yield (where, question, document, score, rank)."""
    text = _text(path)
    if (nested := _nested(path, text)) is not None:
        for where, query, of_query in nested:
            for document, score in of_query.items():
                yield where, query, document, _number(score, where), None
        return
    answered: set[str] = set()
    for where, line in _lines(path, text):
        if line.startswith("{"):
            yield from _of_a_row(where, _object(where, line), answered)
            continue
        cells = line.split()
        if len(cells) != 6:
            raise DatasetError(
                f"{where} has {len(cells)} columns; a TREC run has six: question, Q0, document, rank, score, tag."
            )
        yield where, cells[0], cells[2], _number(cells[4], where), _number(cells[3], where, "rank")


def _of_a_row(
    where: str, row: Mapping[str, Any], answered: set[str]
) -> Iterator[tuple[str, str, str, float, float | None]]:
    if "results" not in row:
        yield where, _key(where, row, _QUERY), _key(where, row, _DOCUMENT), _number(row.get("score"), where), None
        return
    results = row["results"]
    if not isinstance(results, list):
        raise DatasetError(f"{where} has 'results' that is not a list; write documents best first.")
    query = _key(where, row, ("id", *_QUERY))
    if query in answered:
        raise DatasetError(f"{where} repeats the question {query!r}; write one row with all its results.")
    answered.add(query)
    for place, one in enumerate(results):
        if isinstance(one, Mapping):
            yield where, query, _key(where, one, _DOCUMENT), _number(one.get("score"), where), place
        else:  # no score: the order says all, and scores that follow from the place keep it
            yield where, query, _id(where, one, "result"), 1 / (place + 1), place


def _rows_of_judgments(path: Path) -> Iterator[tuple[str, Query | tuple[str, str, int]]]:
    text = _text(path)
    if (nested := _nested(path, text)) is not None:
        for where, query, of_query in nested:
            for document, grade in of_query.items():
                yield where, (query, document, _grade(grade, where))
        return
    for number, (where, line) in enumerate(_lines(path, text)):
        if line.startswith("{"):
            row = _object(where, line)
            for key in ("id", "gold_ids"):
                if key not in row:
                    raise DatasetError(f"{where} has no {key!r}; a row is a question with id and gold_ids.")
            yield where, question({"question": _key(where, row, ("id",)), **row}, where, _ONE_SPACE)
            continue
        cells = line.split()
        if number == 0 and len(cells) in (3, 4) and cells[-1].casefold() in _HEADS:
            continue
        if len(cells) not in (3, 4):
            raise DatasetError(
                f"{where} has {len(cells)} columns; judgments have four (TREC: question, 0, document, grade) or three "
                "(BEIR: question, document, grade), with spaces or tabs between them."
            )
        yield where, (cells[0], cells[-2], _grade(cells[-1], where))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8.") from None


def _nested(path: Path, text: str) -> list[tuple[str, str, Mapping[str, Any]]] | None:
    """Return (where, question, values by document) of a file that is one JSON object, None for a file of lines."""
    begins = text.lstrip()
    if begins.startswith("["):
        raise DatasetError(f"{path} is a JSON list; write its objects as JSON lines, one a line.")
    if not begins.startswith("{") or _is_a_row(begins.split("\n", 1)[0]):
        return None
    try:
        of_question = json.loads(text, object_pairs_hook=_each_once)
    except json.JSONDecodeError as error:
        raise DatasetError(f"{path}:{error.lineno} is not JSON ({error.msg}); write the file again.") from None
    except ValueError as error:
        raise DatasetError(f"{path} {error}") from None
    for query, of in of_question.items():
        if not isinstance(of, dict):
            raise DatasetError(f'{path}, question {query!r}, has no object of documents; write {{"document": number}}.')
    return [(f"{path}, question {query!r},", query, of) for query, of in of_question.items()]


def _is_a_row(line: str) -> bool:
    """Tell whether a line is a row of JSON lines: an object, be it broken, that does not give documents by question."""
    try:
        row = json.loads(line)
    except ValueError:
        return line.rstrip().endswith("}")
    return not any(isinstance(of, dict) for of in row.values()) or not row.keys().isdisjoint(_OF_ROWS)


def _each_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these pairs. Raises ValueError for a repeated key, of which JSON would keep the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"has {repeated!r} twice in one object; keep one.")
    return found


def _lines(path: Path, text: str) -> Iterator[tuple[str, str]]:
    json_lines = text.lstrip().startswith("{")
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            if line.lstrip().startswith("{") != json_lines:
                raise DatasetError(f"{path}:{number} has another form than the lines before it; a file has one form.")
            yield f"{path}:{number}", line.strip()


def _object(where: str, line: str) -> Mapping[str, Any]:
    try:
        row: Mapping[str, Any] = json.loads(line, object_pairs_hook=_each_once)
    except json.JSONDecodeError as error:
        raise DatasetError(f"{where} is not JSON ({error.msg}); write one object a line.") from None
    except ValueError as error:
        raise DatasetError(f"{where} {error}") from None
    return row


def _key(where: str, row: Mapping[str, Any], names: Sequence[str]) -> str:
    for name in names:
        if row.get(name) is not None:
            return _id(where, row[name], name)
    raise DatasetError(f"{where} has none of {', '.join(names)}.")


def _id(where: str, value: Any, what: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise DatasetError(f"{where} has the {what} {json.dumps(value)}; an id is a string or a whole number.")
    return str(value)


def _number(value: Any, where: str, what: str = "score") -> float:
    try:
        if not isinstance(value, bool):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise DatasetError(f"{where} has the {what} {value!r}; it must be a number.")


def _grade(value: Any, where: str) -> int:
    grade = _number(value, where, "grade")
    if not grade.is_integer():
        raise DatasetError(f"{where} has the grade {value!r}; it must be a whole number.")
    return int(grade)
