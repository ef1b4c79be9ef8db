"""Every table has a place on several nodes: beside its namespace, or whole on each."""

from __future__ import annotations

import psycopg

from semmem.stores.postgres.migrate import migrate
from semmem.stores.postgres.nodes import EVERYWHERE

_KEYS = """
SELECT c.relname, (SELECT array_agg(a.attname::text ORDER BY array_position(i.indkey::int[], a.attnum::int))
                   FROM pg_index i JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
                   WHERE i.indrelid = c.oid AND i.indisprimary)
FROM pg_class c WHERE c.relnamespace = 'semmem'::regnamespace AND c.relkind = 'r'
"""


def test_a_table_is_led_by_its_namespace_or_named_as_one_of_all_nodes(store_url: str) -> None:
    migrate(store_url)
    with psycopg.connect(store_url) as connection:
        keys = dict(connection.execute(_KEYS).fetchall())
    assert keys["memory"] == ["namespace", "id", "part"]
    assert {name for name, key in keys.items() if "namespace" not in (key or [])[:1]} == set(EVERYWHERE) == {
        "access_key", "answered", "meta", "migration", "rate_bucket",
    }  # fmt: skip
