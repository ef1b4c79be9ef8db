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
SELECT <memory_columns>, importance
FROM memory AS m
WHERE namespace = :namespace AND part = 0 AND (expires_at IS NULL OR expires_at > :now)
  AND <memory_filters>
  AND (:cursor_at IS NULL OR (importance, created_at, id) < (:cursor_key, :cursor_at, :cursor_id))
ORDER BY importance DESC, created_at DESC, id DESC
LIMIT :limit;

-- memory_list_sorted --
-- As memory_list, by another key, downwards: what is equal in it the newest first, what was never returned last.
SELECT <memory_columns>, key
FROM (
    SELECT *, CASE :sort_by
        WHEN 'updated' THEN CAST(updated_at AS REAL)
        ELSE coalesce((SELECT CAST(a.last_at AS REAL) FROM access AS a
                       WHERE a.namespace = :namespace AND a.id = m.id), -9e999) END AS key
    FROM memory AS m
    WHERE namespace = :namespace AND part = 0 AND (expires_at IS NULL OR expires_at > :now)
      AND <memory_filters>) AS s
WHERE :cursor_at IS NULL OR (key, created_at, id) < (:cursor_key, :cursor_at, :cursor_id)
ORDER BY key DESC, created_at DESC, id DESC
LIMIT :limit;
