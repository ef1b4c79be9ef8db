"""The tables of the documents say what the code says."""

from __future__ import annotations

import json
import re

from tests.docs.tables import DOCUMENTS, ROOT, TABLES, written


def test_the_tables_of_every_document_are_those_of_the_code() -> None:
    texts = {document: (ROOT / document).read_text(encoding="utf-8") for document in DOCUMENTS}
    assert [document for document, text in texts.items() if written(text) != text] == [], "run: make docs"


def test_every_table_stands_in_a_document_once() -> None:
    texts = [(ROOT / document).read_text(encoding="utf-8") for document in DOCUMENTS]
    marks = [mark for text in texts for mark in re.findall(r"<!-- (.*?): made by make docs -->", text)]
    assert sorted(marks) == sorted(TABLES)


def test_the_page_names_the_version_of_every_system_that_was_measured() -> None:
    versions = json.loads((ROOT / "eval" / "results" / "peers.json").read_text(encoding="utf-8"))["versions"]
    said = " ".join((ROOT / "docs" / "compare.md").read_text(encoding="utf-8").split())
    assert [name for name, version in versions.items() if name != "semmem" and f"{name} {version}" not in said] == []


def test_a_table_that_somebody_changed_by_hand_is_written_anew_and_nothing_beside_it() -> None:
    text = "before\n<!-- errors: made by make docs -->\n| old |\n<!-- end of errors -->\nafter\n"
    found = written(text)
    assert found.startswith("before\n<!-- errors: made by make docs -->\n| class | is also a |")
    assert found.endswith("<!-- end of errors -->\nafter\n")
    assert "| old |" not in found
    assert written(found) == found


def test_every_row_of_a_table_has_all_its_cells() -> None:
    for name, make in sorted(TABLES.items()):
        lines = make().splitlines()
        cells = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
        assert len(cells) == 1, name
        assert len(lines) > 2, name
        assert not [line for line in lines if "<semmem" in line or "object at" in line], name
