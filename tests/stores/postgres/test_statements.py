"""Statements are written so that Citus plans them for one node and means what PostgreSQL does."""

from __future__ import annotations

import re

import pytest

from semmem.stores.sql_files import statements

_INSERTS = re.compile(r"\b(?:AS|MATERIALIZED) \(\s*INSERT\b")
_ROWS_IN = re.compile(r"\(\w+(?:, \w+)+\) IN \(")
_LOCKS = re.compile(r"\bFOR (?:NO KEY )?UPDATE\b")
_ONCE = re.compile(r"(?:\bARRAY|\bAS(?: MATERIALIZED)?) ?$")
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


def locks_again(text: str) -> bool:
    """Return whether a subselect that a join may run again locks rows: one that is neither an ARRAY nor in a WITH."""
    opened: list[int] = []
    for place, character in enumerate(text):
        if character == "(":
            opened.append(place)
        elif character == ")" and opened:
            before = text[: (start := opened.pop())]
            if _LOCKS.search(text[start:place]) and not _ONCE.search(before):
                return True
            text = f"{before}{' ' * (place + 1 - start)}{text[place + 1 :]}"  # an outer one need not count it
    return False


def test_rows_are_locked_once_whatever_the_plan() -> None:
    assert [name for name, text in statements("postgres").items() if locks_again(text)] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("DELETE FROM a WHERE b IN (SELECT b FROM a LIMIT 2 FOR UPDATE SKIP LOCKED)", True),
        ("DELETE FROM a WHERE b IN (\n  SELECT b FROM a LIMIT 2 FOR UPDATE)", True),
        ("DELETE FROM a WHERE b = ANY (SELECT b FROM a LIMIT 2 FOR UPDATE)", True),
        ("DELETE FROM a USING (SELECT b FROM a WHERE c = ANY(%s) FOR UPDATE) o WHERE a.b = o.b", True),
        ("DELETE FROM a WHERE b = ANY(ARRAY(SELECT b FROM a LIMIT 2 FOR UPDATE))", False),
        ("WITH o AS (SELECT b FROM a LIMIT 2 FOR UPDATE) DELETE FROM a USING o WHERE a.b = o.b", False),
        ("WITH o AS MATERIALIZED (SELECT b FROM a FOR UPDATE) DELETE FROM a USING o WHERE a.b = o.b", False),
        ("SELECT b FROM a WHERE c IN (SELECT c FROM d) ORDER BY b FOR UPDATE", False),
    ],
)
def test_a_lock_in_a_list_that_may_be_read_again_is_recognised(text: str, found: bool) -> None:
    assert locks_again(text) is found


@pytest.mark.parametrize(
    ("text", "found"), [("WITH a AS (\n INSERT INTO b", True), ("WITH a AS (DELETE FROM b) INSERT INTO c", False)]
)
def test_an_insert_in_a_with_is_recognised(text: str, found: bool) -> None:
    assert bool(_INSERTS.search(text)) is found
