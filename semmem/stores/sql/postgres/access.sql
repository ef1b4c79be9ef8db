-- access_lock --
-- Lock those of the given memories that exist until their counts are written, so that no count outlives its memory. One
-- that is not locked was replaced or removed while the lock was waited for.
WITH existing AS MATERIALIZED (
    SELECT id FROM memory WHERE namespace = %(namespace)s AND id = ANY(%(ids)s) AND part = 0 AND <open>
), locked AS MATERIALIZED (
    SELECT id FROM memory WHERE namespace = %(namespace)s AND id = ANY(%(ids)s) AND part = 0 AND <open>
    ORDER BY id FOR KEY SHARE
)
SELECT id, id IN (SELECT id FROM locked) FROM existing ORDER BY 1;

-- access_add --
-- Add the accesses that one process has counted since its last write.
INSERT INTO access AS a (namespace, id, count, last_at)
SELECT m.namespace, m.id, c.count, c.last_at
FROM unnest(%(ids)s::text[], %(counts)s::bigint[], %(times)s::timestamptz[]) AS c(id, count, last_at)
JOIN memory m ON m.namespace = %(namespace)s AND m.id = c.id AND m.part = 0
ORDER BY m.id
ON CONFLICT (namespace, id) DO UPDATE SET count = a.count + excluded.count, last_at = greatest(a.last_at, excluded.last_at);

-- access_list --
-- Return the access counts of memories; memories never returned have no row.
SELECT id, count, last_at FROM access WHERE namespace = %(namespace)s AND id = ANY(%(ids)s) AND <open>;

-- access_purge --
-- Delete the access counts of removed memories; a memory stored anew under the id starts from 0.
DELETE FROM access a WHERE namespace = %(namespace)s AND id = ANY(%(ids)s) AND NOT EXISTS (
    SELECT FROM memory m WHERE m.namespace = a.namespace AND m.id = a.id);

-- drop_access --
-- Delete access counts whose memory no longer exists.
DELETE FROM access WHERE namespace = %(namespace)s AND id IN (
    SELECT a.id FROM access a WHERE a.namespace = %(namespace)s AND NOT EXISTS (
        SELECT FROM memory m WHERE m.namespace = %(namespace)s AND m.id = a.id) LIMIT %(limit)s);

-- memory_list_important --
-- As memory_list, the most important first, in the order of an index.
SELECT <memory_columns>, count, last_at, importance
FROM <counted_memory>
WHERE <listed>
  AND (%(cursor_at)s::timestamptz IS NULL
       OR (importance, created_at, id) < (%(cursor_key)s::float8, %(cursor_at)s, %(cursor_id)s COLLATE "C"))
ORDER BY importance DESC, created_at DESC, id DESC
LIMIT %(limit)s;

-- memory_list_updated --
-- As memory_list, the last changed first, in the order of an index.
SELECT <memory_columns>, count, last_at, (extract(epoch FROM updated_at) * 1000000)::float8
FROM <counted_memory>
WHERE <listed>
  AND (%(cursor_at)s::timestamptz IS NULL
       OR (updated_at, created_at, id) < (%(cursor_time)s::timestamptz, %(cursor_at)s, %(cursor_id)s COLLATE "C"))
ORDER BY updated_at DESC, created_at DESC, id DESC
LIMIT %(limit)s;

-- memory_list_accessed --
-- As memory_list, the last returned by a recall first, and those never returned last: the former by the index of
-- accesses, the latter only where the page has room for them.
WITH returned AS MATERIALIZED (
    SELECT m.*, a.count, a.last_at, (extract(epoch FROM a.last_at) * 1000000)::float8 AS key
    FROM access a CROSS JOIN LATERAL (
        SELECT * FROM memory
        WHERE id = a.id AND <listed>) AS m
    WHERE a.namespace = %(namespace)s AND (%(cursor_at)s::timestamptz IS NULL OR (
        a.last_at <= %(cursor_time)s::timestamptz
        AND (a.last_at, m.created_at, m.id) < (%(cursor_time)s, %(cursor_at)s, %(cursor_id)s COLLATE "C")))
    ORDER BY a.last_at DESC, m.created_at DESC, m.id DESC LIMIT %(limit)s
), never AS (
    SELECT *, NULL::bigint AS count, NULL::timestamptz AS last_at, '-Infinity'::float8 AS key
    FROM memory
    WHERE <listed>
      AND NOT EXISTS (SELECT FROM access a WHERE a.namespace = %(namespace)s AND a.id = memory.id)
      AND (%(cursor_at)s::timestamptz IS NULL OR %(cursor_time)s::timestamptz IS NOT NULL
           OR (created_at, id) < (%(cursor_at)s, %(cursor_id)s COLLATE "C"))
    ORDER BY created_at DESC, id DESC LIMIT %(limit)s::bigint - (SELECT count(*) FROM returned)
)
SELECT <memory_columns>, count, last_at, key FROM returned
UNION ALL SELECT <memory_columns>, count, last_at, key FROM never
ORDER BY key DESC, created_at DESC, id DESC;
