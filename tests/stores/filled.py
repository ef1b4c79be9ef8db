"""A small store in which no table is empty, and what two stores must have in common to be the same."""

from __future__ import annotations

from typing import Any

import semmem
from semmem.client.memory import Semmem
from semmem.stores.postgres import postings, upkeep
from tests.stores.audit import sql

__all__ = ["asked", "fill", "held", "rows", "tables", "url_of", "write"]

TIES = r"""
INSERT INTO relationship SELECT namespace, ord, 7, -8, 'sells "œ"' FROM memory WHERE parts = 0 ORDER BY 1, 2 LIMIT 2;
INSERT INTO relationship SELECT namespace, ord, 7, -8, 'Sells' FROM memory WHERE parts = 0 ORDER BY 1, 2 LIMIT 1;
INSERT INTO embedding_next SELECT * FROM embedding ORDER BY namespace, ord LIMIT 3;
INSERT INTO namespace_setting (namespace, name, value) VALUES ('one', 'weights.graph', '0.25');
INSERT INTO history (namespace, id, version, text, importance, created_at, updated_at, valid_from)
VALUES ('one', 'm1', 1, 'As it was.', .5, now(), now(), now());
INSERT INTO likeness SELECT namespace, ord, '{-5,7}' FROM memory WHERE id = 'm1';
INSERT INTO likeness_key SELECT namespace, 7, ord FROM likeness WHERE keys = '{-5,7}';
INSERT INTO packed_likeness SELECT namespace, 31, -1, '{-5}', ARRAY[ord::oid] FROM likeness WHERE keys = '{-5,7}';
INSERT INTO uncompared SELECT namespace, ord FROM memory WHERE parts = 0 ORDER BY 1, 2 LIMIT 1;
INSERT INTO link (namespace, from_id, type, to_id) VALUES ('one', 'm1', 'see-also', 'm2');
INSERT INTO recall_log (namespace, recall_id, query, hits)
VALUES ('one', 'r1', 'Which owl?', '{"m1": {"useful": true, "judged_at": "2026-01-01T00:00:00.000000+00:00"}}');
INSERT INTO access (namespace, id, count, last_at) VALUES ('one', 'm1', 3, now());
INSERT INTO access_key (id, key) VALUES ('k1', '{"name": "laptop"}');
INSERT INTO answered (key, request, answer) VALUES ('\x01', '\x02', '{}');
"""
COLUMNS = """SELECT table_name, string_agg(quote_ident(column_name), ', ' ORDER BY ordinal_position)
FROM information_schema.columns WHERE table_schema = 'semmem' GROUP BY table_name"""


def url_of(mem: Semmem) -> str:
    return str(mem.store.url)


def fill(mem: Semmem, count: int = 70) -> None:
    """Remember, forget, correct and tie, so that every table holds something; two namespaces."""
    items = [
        {
            "id": f"m{n}", "text": f"Note {n}: Ada Lovelace met the owl {n % 7} in Köln." + " It hooted." * (n % 3),
            "title": f"Owl {n}" if n % 4 else None, "author": f"Author {n % 3}", "session": f"s{n % 5}", "position": n,
            "source": "notes.md", "tags": ["x", f"t{n % 2}"], "metadata": {"n": n, "list": [1.5, None, "é"]},
            "importance": 0.1 + 0.02 * (n % 40), "created_at": f"2026-01-{n % 28 + 1:02d}T10:00:00.123456+01:00",
        }
        for n in range(count)
    ]  # fmt: skip
    mem.remember_many(items, namespace="one", batch_size=count)  # large enough to be flushed at once
    mem.store.transaction(lambda c: upkeep.settle(c, {"one": postings.FIRST_KEY}, 1, {"one"}))
    mem.remember("The whole text is long. " * 120, id="long", title="Long", namespace="one")
    mem.remember_many(items[: count // 4], namespace="zwei ☂", batch_size=2)
    mem.forget("m3", namespace="one")
    mem.merge_concepts("owl 2", "owl 1", namespace="one")
    mem.remember("Late: owl 77 is pending.", id="late", title="Owl 77", namespace="one")
    write(mem, TIES)


def write(where: Semmem | str, statements: str) -> None:
    """Run statements one by one."""
    for statement in statements.split(";"):
        if statement.strip():
            sql(where, statement)


STAYING = {"migration", "audit", "rate_bucket"}
"""The tables that no copy takes along: the record of migrations, the audit, and what clients may still send."""


def tables(where: Semmem | str) -> set[str]:
    """Return the tables of the schema, but for those that stay where they are."""
    return {name for (name,) in sql(where, "SELECT tablename FROM pg_tables WHERE schemaname = 'semmem'")} - STAYING


def rows(where: Semmem | str) -> dict[str, list[str]]:
    """Return every row of every table as PostgreSQL writes it, but for what is about one store alone."""
    columns = {name: columns for name, columns in sql(where, COLUMNS) if name not in STAYING}
    found = {
        name: sorted(row for (row,) in sql(where, f"SELECT t::text FROM (SELECT {which} FROM {name}) AS t"))
        for name, which in columns.items()
    }
    own = "(backup,", "(copy,", "(restored,", "(scrubs,", "(unshrunk,"
    found["meta"] = [row for row in found["meta"] if not row.startswith(own)]
    return found


def held(where: str) -> Any:
    """Return the counts and hashes of every namespace."""
    with semmem.connect(where, embedder="none", pool_size=1) as mem:
        return mem.hashes()


def asked(where: str) -> list[Any]:
    """Return what some questions find, with scores and components."""
    out = []
    with semmem.connect(where, embedder="hashing", pool_size=3, count_accesses=False) as mem:
        for question in ("Which owl met Ada Lovelace in Köln?", "What did Author 2 say of owl 4?"):
            for namespace in ("one", "zwei ☂"):
                found = mem.recall(question, namespace=namespace, limit=10)
                assert len(found) == 10
                out.append([(hit.memory, hit.score, dict(hit.components)) for hit in found])
    return out
