-- upkeep_orphans --
-- Count links, likeness keys and vectors of memories that neither exist nor can be restored.
SELECT (SELECT count(*) FROM link l
        LEFT JOIN memory f ON f.namespace = l.namespace AND f.id = l.from_id AND f.part = 0
        LEFT JOIN memory t ON t.namespace = l.namespace AND t.id = l.to_id AND t.part = 0
        LEFT JOIN (SELECT namespace, id FROM history GROUP BY namespace, id) AS hf
            ON hf.namespace = l.namespace AND hf.id = l.from_id
        LEFT JOIN (SELECT namespace, id FROM history GROUP BY namespace, id) AS ht
            ON ht.namespace = l.namespace AND ht.id = l.to_id
        WHERE (f.id IS NULL AND hf.id IS NULL) OR (t.id IS NULL AND ht.id IS NULL))
     + (SELECT count(*) FROM likeness l WHERE NOT EXISTS (
            SELECT FROM memory m WHERE m.namespace = l.namespace AND m.ord = l.ord))
     + (SELECT count(*) FROM embedding v WHERE NOT EXISTS (
            SELECT FROM memory m WHERE m.namespace = v.namespace AND m.ord = v.ord));

-- upkeep_hubs --
-- Count names that too many memories mention to carry weight in the graph leg.
SELECT count(*) FROM (SELECT FROM posting WHERE kind = 3 GROUP BY namespace, key HAVING sum(n) > %(cap)s) AS hubs;

-- upkeep_contradictions --
-- Count the contradictions that a person should look at.
SELECT count(*) FROM link WHERE type = 'contradicts';

-- derivations_list --
-- Return the last row id and the marks of derivation versions of one namespace, or of each, that has some, and that
-- nobody is moving.
SELECT namespace, ords, makers FROM namespace
WHERE makers IS NOT NULL AND memories > 0 AND state IS NULL
  AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s) ORDER BY namespace;

-- derivations_own --
-- Return the last row id and the marks of derivation versions of a namespace, under the lock of its row.
SELECT ords, makers FROM namespace WHERE namespace = %(namespace)s FOR NO KEY UPDATE;

-- derivations_set --
-- Store the marks of derivation versions of a namespace.
UPDATE namespace SET makers = %(makers)s WHERE namespace = %(namespace)s;

-- made_between --
-- Return whole memories that are indexed, by their row ids, with the row ids and the lengths of their parts.
SELECT <memory_columns_m>, m.payload, m.text_at,
       ARRAY(SELECT length(p.text) FROM memory p
             WHERE p.namespace = %(namespace)s AND p.id = m.id AND p.part > 0 ORDER BY p.part),
       ARRAY(SELECT p.ord FROM memory p
             WHERE p.namespace = %(namespace)s AND p.id = m.id AND p.parts = 0 ORDER BY p.part)
FROM memory m
WHERE m.namespace = %(namespace)s AND m.ord > %(after)s AND m.ord <= %(upto)s AND m.part = 0 AND m.parts >= 0
ORDER BY m.ord LIMIT %(limit)s;

-- count_made --
-- Count whole memories that are indexed, by their row ids.
SELECT count(*) FROM memory
WHERE namespace = %(namespace)s AND ord > %(after)s AND ord <= %(upto)s AND part = 0 AND parts >= 0;

-- made_seen --
-- Return how often memories were seen, and when last, before they are written again and say the same.
SELECT id, seen_count, last_seen FROM memory WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s) AND part = 0;

-- made_seen_set --
-- Give them back what they had.
UPDATE memory m SET seen_count = r.seen_count, last_seen = r.last_seen
FROM unnest(%(ids)s::text[], %(counts)s::int[], %(times)s::timestamptz[]) AS r(id, seen_count, last_seen)
WHERE m.namespace = %(namespace)s AND m.id = r.id AND m.part = 0;

-- table_rows --
-- Return about how many rows a table has, from the pages that the last ANALYZE read.
SELECT reltuples::bigint FROM pg_class WHERE oid = %(table)s::regclass;

-- statistics_outdated --
-- List those of some tables of which the planner has no statistics, or old ones: more than one row in share has changed
-- since. A hard forget deletes them.
SELECT s.relname::text FROM pg_stat_all_tables s
WHERE s.schemaname = 'semmem' AND s.relname = ANY(%(tables)s::text[])
  AND (%(share)s * s.n_mod_since_analyze > s.n_live_tup
       OR NOT EXISTS (SELECT FROM pg_stats p WHERE p.schemaname = 'semmem' AND p.tablename = s.relname))
ORDER BY s.relname;

-- rewrite_awaited --
-- Return whether a session waits for a lock that another one holds, or waits for before it.
SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND %(pid)s = ANY(pg_blocking_pids(pid)));
