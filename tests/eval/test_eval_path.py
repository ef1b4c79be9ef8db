"""The path of a verb: the command counts it, and no verb makes more round trips to its store than it did."""

from __future__ import annotations

import json
import re
from pathlib import Path

import psycopg
import pytest
from typer.testing import CliRunner

from eval.cli import app
from eval.path import Counter, installed

ROOT = Path(__file__).resolve().parents[2]
MOST = {
    "PostgreSQL": {
        "remember": 5, "remember, warm": 5, "recall": 10, "explain": 8, "recall, warm": 10, "recall, resident": 1,
        "forget": 5,
    },
    "SQLite": {
        "remember": 26, "remember, warm": 29, "recall": 6, "explain": 9, "recall, warm": 6, "recall, resident": 4,
        "forget": 17,
    },
}  # fmt: skip
"""Round trips; to be lowered as they fall, and raised only for a verb that does more: what is alike is looked for,
that it was compared is noted until then, and one round trip finds the older memories that ``remember`` names. On SQLite
a store keeps concepts and vectors too, and its first recall brings the namespace into memory (adr/0065)."""


def documented_counts() -> dict[str, dict[str, int]]:
    """Return the round trips of the table in CONTEXT.md, by store and verb."""
    section = (ROOT / "CONTEXT.md").read_text(encoding="utf-8").split("## The path of a verb\n")[1].split("\n## ")[0]
    table: dict[str, dict[str, int]] = {}
    for verb, store, *_, trips in re.findall(
        r"(?m)^\| ([a-z, ]+?) \| (\w+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", section
    ):
        table.setdefault(store, {})[verb] = int(trips)
    return table


@pytest.mark.slow
def test_no_verb_makes_more_round_trips_than_it_did(store_url: str, tmp_path: Path) -> None:
    urls = ["--url", store_url, "--url", f"sqlite:{tmp_path / 'path.db'}"]
    shown = CliRunner().invoke(app, ["path", *urls, "--json"])
    assert shown.exit_code == 0, shown.output
    counted = json.loads(shown.stdout)
    made = {store: {verb: counts["round_trips"] for verb, counts in verbs.items()} for store, verbs in counted.items()}
    assert {store: list(verbs) for store, verbs in made.items()} == {store: list(most) for store, most in MOST.items()}
    more = [(s, v, n, MOST[s][v]) for s, verbs in made.items() for v, n in verbs.items() if n > MOST[s][v]]
    assert more == [], more
    entered = [list(verbs[verb]["entered"]) for verbs in counted.values() for verb in ("remember", "recall")]
    assert all("client/memory.py" in files[:2] for files in entered)  # tracing stands around it
    assert documented_counts() == made, "write the table of CONTEXT.md again from `python -m eval path`"
    for verbs in counted.values():
        for counts in verbs.values():
            assert 0 < counts["files"] <= counts["functions"] <= counts["calls"]
            assert sum(counts["entered"].values()) == counts["functions"]
            assert sum(counts["trips"].values()) == counts["round_trips"]


def test_a_store_that_holds_memories_is_not_measured(filled_url: str) -> None:
    refused = CliRunner().invoke(app, ["path", "--url", filled_url])
    assert refused.exit_code == 2
    assert "holds memories" in refused.stderr


def test_a_round_trip_is_one_wait_for_the_server(store_url: str) -> None:
    counter = Counter()
    with installed(counter), psycopg.connect(store_url, autocommit=True) as connection:
        with counter.counting():
            connection.execute("SELECT 1")
        assert counter.counts().trips == {"SELECT 1": 1}
        with counter.counting(), connection.transaction():
            connection.execute("CREATE TEMPORARY TABLE many (n int)")
            with connection.cursor().copy("COPY many FROM STDIN") as copy:
                for n in range(1000):
                    copy.write_row((n,))
        trips = {"BEGIN": 1, "CREATE TEMPORARY": 1, "COPY many": 1, "COPY end": 1, "COMMIT": 1}
        assert counter.counts().trips == dict(sorted(trips.items()))
        with counter.counting():
            with connection.pipeline():
                cursors = [connection.execute("SELECT %s::int", (n,)) for n in range(3)]
            assert [cursor.fetchone() for cursor in cursors] == [(0,), (1,), (2,)]
            connection.commit()  # nothing is open, so nothing is sent
        assert counter.counts().trips == {"pipeline": 1}
    with psycopg.connect(store_url) as connection, counter.counting():
        connection.execute("SELECT 1")  # nothing reports to it any more
    assert counter.counts().trips == {}


def test_calls_outside_semmem_and_outside_the_block_are_not_counted() -> None:
    from semmem.text import passages

    counter = Counter()
    with installed(counter):
        passages.terms("before", "english")
        with counter.counting():
            pytest.approx(1.0)
        assert counter.counts().calls == 0
        with counter.counting():
            passages.terms("the boat", "english")
        once = counter.counts()
        assert 1 <= once.files <= once.functions <= once.calls
