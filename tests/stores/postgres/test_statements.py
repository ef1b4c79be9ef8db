"""Statements are written so that Citus plans them for one node and means what PostgreSQL does."""

from __future__ import annotations

import re

import pytest

from semmem.stores.sql_files import statements

_INSERTS = re.compile(r"\b(?:AS|MATERIALIZED) \(\s*INSERT\b")
_ROWS_IN = re.compile(r"\(\w+(?:, \w+)+\) IN \(")
_PICKED_IN = re.compile(r"\bIN \(\s*SELECT\b[^;]*\bSKIP LOCKED\b")
_CHANGES = re.compile(r"^\s*(?:DELETE|UPDATE|INSERT)\b", re.MULTILINE)

HANDED_ON = {
    "likeness_add": "nothing is read from what it inserts, so nothing is handed on",
    "likeness_find": "of one server; likeness_find_on_nodes is that of several",
    "likeness_pack": "of maintain, which asks every node anyway",
    "singleton_pack": "of maintain, which asks every node anyway",
}
"""The statements that insert in a WITH, and why they may."""


def test_no_statement_inserts_in_a_with_which_needs_every_node() -> None:
    found = {name for name, text in statements("postgres").items() if _INSERTS.search(text)}
    assert found == HANDED_ON.keys()


def test_no_statement_that_changes_rows_asks_for_the_time_and_compares_several_columns() -> None:
    texts = statements("postgres").items()
    assert [n for n, text in texts if _CHANGES.search(text) and "now()" in text and _ROWS_IN.search(text)] == []


def test_rows_that_nobody_has_locked_are_picked_once_whatever_the_plan() -> None:
    """A join that reads the list again for each row would pick other rows each time."""
    assert [name for name, text in statements("postgres").items() if _PICKED_IN.search(text)] == []


@pytest.mark.parametrize(
    ("text", "found"), [("WITH a AS (\n INSERT INTO b", True), ("WITH a AS (DELETE FROM b) INSERT INTO c", False)]
)
def test_an_insert_in_a_with_is_recognised(text: str, found: bool) -> None:
    assert bool(_INSERTS.search(text)) is found
