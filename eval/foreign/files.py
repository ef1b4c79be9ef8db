"""Read runs and judgments in the forms that others write: TREC, BEIR's tables, the JSON of ranx and BEIR, JSON lines.

The form is recognised by the content. A line that cannot be read stops with file and line: a run that is cut short
would be measured as a worse retriever.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

from eval.datasets import DatasetError, Query
from eval.datasets.folder import question

__all__ = ["Ranked", "digest", "judgments", "run"]

Ranked: TypeAlias = Mapping[str, Sequence[tuple[str, float]]]
"""A run: by question, its documents with their scores, best first."""
_ONE_SPACE = "questions"
_QUERY = ("query_id", "qid", "query-id", "query")
_DOCUMENT = ("doc_id", "docid", "corpus-id", "document", "id")


def run(path: Path) -> Ranked:
    """Return a run. Documents are ordered by score, and those of equal scores by rank (TREC) or as in the file.

    TREC: ``question Q0 document rank score tag``. ranx, BEIR: ``{"question": {"document": score}}``. JSON lines: a row
    a question, ``{"id": …, "results": ["document", …]}`` best first or ``[{"id": …, "score": …}]``; or a row a
    document, ``{"query_id": …, "doc_id": …, "score": …}``. Raises DatasetError.
    """
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for where, query, document, score, rank in _rows_of_a_run(path):
        of_query = found.setdefault(query, {})
        if document in of_query:
            raise DatasetError(f"{where} repeats the document {document!r} of question {query!r}; keep its best place.")
        if not math.isfinite(score):
            raise DatasetError(f"{where} has the score {score}; it must be a finite number.")
        of_query[document] = (-score, rank)
    if not found:
        raise DatasetError(f"{path} holds no results; write a line a document, or a row a question.")
    return {
        query: [(document, -of_query[document][0]) for document in sorted(of_query, key=of_query.__getitem__)]
        for query, of_query in found.items()
    }


def judgments(path: Path) -> list[Query]:
    """Return the questions with what is relevant to each: grades above 0.

    TREC: ``question 0 document grade``. BEIR: a table of question, document and grade. ranx:
    ``{"question": {"document": grade}}``. JSON lines: the questions of a data set, ``{"id": …, "gold_ids": […]}`` with
    ``namespace`` and ``stratum`` where there are any. Raises DatasetError.
    """
    rows = _rows_of_judgments(path)
    first = next(rows, None)
    if first is None:
        raise DatasetError(f"{path} holds no judgments; write a line for each relevant document.")
    if isinstance(first[1], Query):
        queries = [first[1], *(of for _, of in rows if isinstance(of, Query))]
        ids = [query.id for query in queries]
        if len(set(ids)) < len(ids):
            repeated = next(id for id in ids if ids.count(id) > 1)
            raise DatasetError(f"{path} repeats the question id {repeated!r}; question ids are unique.")
    else:
        grades: dict[str, dict[str, int]] = {}
        for _, of in (first, *rows):
            if not isinstance(of, Query):
                query, document, grade = of
                grades.setdefault(query, {})[document] = grade
        queries = [_judged(id, of_query) for id, of_query in grades.items()]
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


def _rows_of_a_run(path: Path) -> Iterator[tuple[str, str, str, float, float]]:
    """Yield (where, question, document, score, rank)."""
    text = _text(path)
    if nested := _nested(text):
        for query, of_query in nested.items():
            for place, (document, score) in enumerate(of_query.items()):
                yield f"{path}, question {query!r},", query, document, _number(score, f"{path}, {query!r},"), place
        return
    for where, line in _lines(path, text):
        if line.startswith("{"):
            yield from _of_a_row(where, _object(where, line))
            continue
        cells = line.split()
        if len(cells) != 6:
            raise DatasetError(
                f"{where} has {len(cells)} columns; a TREC run has six: question, Q0, document, rank, score, tag."
            )
        yield where, cells[0], cells[2], _number(cells[4], where), _number(cells[3], where, "rank")


def _of_a_row(where: str, row: Mapping[str, Any]) -> Iterator[tuple[str, str, str, float, float]]:
    if "results" not in row:
        yield where, _key(where, row, _QUERY), _key(where, row, _DOCUMENT), _number(row.get("score"), where), 0
        return
    results = row["results"]
    if not isinstance(results, list):
        raise DatasetError(f"{where} has 'results' that is not a list; write documents best first.")
    query = _key(where, row, ("id", *_QUERY))
    for place, one in enumerate(results):
        if isinstance(one, Mapping):
            yield where, query, _key(where, one, _DOCUMENT), _number(one.get("score"), where), place
        else:  # no score: the order says all, and falling scores keep it
            yield where, query, str(one), float(len(results) - place), place


def _rows_of_judgments(path: Path) -> Iterator[tuple[str, Query | tuple[str, str, int]]]:
    text = _text(path)
    if nested := _nested(text):
        for query, of_query in nested.items():
            for document, grade in of_query.items():
                yield f"{path}, question {query!r},", (query, document, _grade(grade, f"{path}, question {query!r},"))
        return
    for number, (where, line) in enumerate(_lines(path, text)):
        if line.startswith("{"):
            row = _object(where, line)
            for key in ("id", "gold_ids"):
                if key not in row:
                    raise DatasetError(f"{where} has no {key!r}; a row is a question with id and gold_ids.")
            yield where, question({"question": row["id"], **row}, where, _ONE_SPACE)
            continue
        cells = line.split()
        if number == 0 and len(cells) == 3 and not cells[2].lstrip("-").isdigit():
            continue  # the head of a table
        if len(cells) not in (3, 4):
            raise DatasetError(
                f"{where} has {len(cells)} columns; judgments have four (TREC: question, 0, document, grade) or three "
                "(BEIR: question, document, grade)."
            )
        yield where, (cells[0], cells[-2], _grade(cells[-1], where))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8.") from None


def _nested(text: str) -> Mapping[str, Mapping[str, Any]] | None:
    """Return the one JSON object of documents by question that a file is, None where it is something else."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        whole = json.loads(text)
    except ValueError:
        return None
    is_nested = isinstance(whole, dict) and whole and all(isinstance(of, dict) for of in whole.values())
    return whole if is_nested else None


def _lines(path: Path, text: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield f"{path}:{number}", line.strip()


def _object(where: str, line: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise DatasetError(f"{where} is not JSON ({error}); write one object a line.") from None
    if not isinstance(row, dict):
        raise DatasetError(f"{where} is no JSON object; write one object a line.")
    return row


def _key(where: str, row: Mapping[str, Any], names: Sequence[str]) -> str:
    for name in names:
        if row.get(name) is not None:
            return str(row[name])
    raise DatasetError(f"{where} has none of {', '.join(names)}.")


def _number(value: Any, where: str, what: str = "score") -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise DatasetError(f"{where} has the {what} {value!r}; it must be a number.") from None


def _grade(value: Any, where: str) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise DatasetError(f"{where} has the grade {value!r}; it must be a whole number.") from None
