-- access_add --
-- Add the accesses that one process has counted since its last write, for memories that exist.
INSERT INTO access (namespace, id, count, last_at)
SELECT :namespace, :id, :count, :last_at
WHERE EXISTS (SELECT 1 FROM memory WHERE namespace = :namespace AND id = :id AND part = 0)
ON CONFLICT (namespace, id) DO UPDATE SET count = count + excluded.count, last_at = max(last_at, excluded.last_at);

-- access_list --
-- Return the access counts of memories; memories never returned have no row.
SELECT id, count, last_at FROM access WHERE namespace = :namespace AND id IN (SELECT value FROM json_each(:ids));

-- access_purge --
-- Delete the access counts of removed memories; a memory stored anew under the id starts from 0.
DELETE FROM access WHERE namespace = :namespace AND id IN (SELECT value FROM json_each(:ids)) AND NOT EXISTS (
    SELECT 1 FROM memory AS m WHERE m.namespace = :namespace AND m.id = access.id);

-- drop_access --
-- Delete access counts whose memory no longer exists.
DELETE FROM access WHERE namespace = :namespace AND id NOT IN (SELECT id FROM memory WHERE namespace = :namespace);

-- memory_list_important --
-- As memory_list, the most important first, in the order of an index.
SELECT <memory_columns>, count, last_at, importance
FROM <counted_m>
WHERE <listed>
  AND importance <= coalesce(:cursor_key, 1)
  AND (:cursor_at IS NULL OR (importance, created_at, id) < (:cursor_key, :cursor_at, :cursor_id))
ORDER BY importance DESC, created_at DESC, id DESC
LIMIT :limit;

-- memory_list_updated --
-- As memory_list, the last changed first, in the order of an index.
SELECT <memory_columns>, count, last_at, CAST(updated_at AS REAL)
FROM <counted_m>
WHERE <listed>
  AND updated_at <= coalesce(:cursor_time, <last_time>)
  AND (:cursor_at IS NULL OR (updated_at, created_at, id) < (:cursor_time, :cursor_at, :cursor_id))
ORDER BY updated_at DESC, created_at DESC, id DESC
LIMIT :limit;

-- memory_list_accessed --
-- As memory_list, the last returned by a recall first, and those never returned last: the former by the index of
-- accesses, the latter only where the page has room for them.
WITH returned AS MATERIALIZED (
    SELECT m.*, a.count, a.last_at, CAST(a.last_at AS REAL) AS key
    FROM (SELECT id AS returned_id, count, last_at FROM access
          WHERE namespace = :namespace AND last_at <= coalesce(:cursor_time, <last_time>)) AS a
    CROSS JOIN memory AS m ON m.namespace = :namespace AND m.id = a.returned_id
    WHERE <listed>
      AND (:cursor_at IS NULL OR (a.last_at, created_at, id) < (:cursor_time, :cursor_at, :cursor_id))
    ORDER BY a.last_at DESC, created_at DESC, id DESC LIMIT :limit
), never AS (
    SELECT *, NULL AS count, NULL AS last_at, -9e999 AS key
    FROM memory AS m
    WHERE <listed>
      AND NOT EXISTS (SELECT 1 FROM access AS a WHERE a.namespace = :namespace AND a.id = m.id)
      AND (:cursor_at IS NULL OR :cursor_time IS NOT NULL OR (created_at, id) < (:cursor_at, :cursor_id))
    ORDER BY created_at DESC, id DESC LIMIT :limit - (SELECT count(*) FROM returned)
)
SELECT <memory_columns>, count, last_at, key FROM returned
UNION ALL SELECT <memory_columns>, count, last_at, key FROM never
ORDER BY key DESC, created_at DESC, id DESC;
