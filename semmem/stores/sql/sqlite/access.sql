-- access_add --
-- What one process has counted since it last wrote, of a memory that is there.
INSERT INTO access (namespace, id, count, last_at)
SELECT :namespace, :id, :count, :last_at
WHERE EXISTS (SELECT 1 FROM memory WHERE namespace = :namespace AND id = :id AND part = 0)
ON CONFLICT (namespace, id) DO UPDATE SET count = count + excluded.count, last_at = max(last_at, excluded.last_at);

-- access_list --
-- Of memories that were returned at all.
SELECT id, count, last_at FROM access WHERE namespace = :namespace AND id IN (SELECT value FROM json_each(:ids));

-- access_purge --
-- It goes with the memory; of an id that is used anew it is its own.
DELETE FROM access WHERE namespace = :namespace AND id IN (SELECT value FROM json_each(:ids)) AND NOT EXISTS (
    SELECT 1 FROM memory AS m WHERE m.namespace = :namespace AND m.id = access.id);

-- drop_access --
-- Of memories that are not there any more.
DELETE FROM access WHERE namespace = :namespace AND id NOT IN (SELECT id FROM memory WHERE namespace = :namespace);

-- memory_list_sorted --
-- As memory_list, by another key, downwards: what is equal in it the newest first, what was never returned last.
SELECT <memory_columns>, key
FROM (
    SELECT *, CASE :sort_by
        WHEN 'importance' THEN importance
        WHEN 'updated' THEN CAST(updated_at AS REAL)
        ELSE coalesce((SELECT CAST(a.last_at AS REAL) FROM access AS a
                       WHERE a.namespace = :namespace AND a.id = m.id), -9e999) END AS key
    FROM memory AS m
    WHERE namespace = :namespace AND part = 0 AND (expires_at IS NULL OR expires_at > :now)
      AND <memory_filters>) AS s
WHERE :cursor_at IS NULL OR (key, created_at, id) < (:cursor_key, :cursor_at, :cursor_id)
ORDER BY key DESC, created_at DESC, id DESC
LIMIT :limit;
