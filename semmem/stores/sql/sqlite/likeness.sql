-- memory_first --
-- Return the first memory with the same content that no other one has contradicted since; "+" keeps SQLite from using
-- the index of times.
SELECT id FROM memory AS o
WHERE namespace = :namespace AND content = :content AND payload = :payload AND part = 0 AND id <> :id AND NOT sensitive
  AND expires_at IS NULL AND NOT EXISTS (
      SELECT 1 FROM link AS l JOIN memory AS n ON n.namespace = l.namespace AND n.id = l.from_id AND n.part = 0
      WHERE l.namespace = :namespace AND l.to_id = o.id AND l.type IN ('contradicts', 'supersedes'))
ORDER BY +created_at, id LIMIT 1;

-- memory_corroborate --
-- Count a repeat and its time; version and time of the last change stay as they are. Where it is asked for, what another
-- memory has contradicted since, or may have as its links are not made yet, is left out; some are not looked at. So is a
-- memory that has another content by now than the repeat.
UPDATE memory AS m SET seen_count = seen_count + :times, last_seen = max(:now, coalesce(last_seen, 0))
WHERE namespace = :namespace AND id = :id AND part = 0 AND (:content IS NULL OR content = :content) AND (:besides IS NULL OR NOT EXISTS (
        SELECT 1 FROM link AS l JOIN memory AS n ON n.namespace = l.namespace AND n.id = l.from_id AND n.part = 0
        WHERE l.namespace = :namespace AND l.to_id = :id AND l.type IN ('contradicts', 'supersedes')
          AND n.id NOT IN (SELECT value FROM json_each(:besides)))
    AND NOT EXISTS (
        SELECT 1 FROM likeness AS a JOIN likeness AS b ON b.namespace = a.namespace AND b.key = a.key AND b.ord <> a.ord
        JOIN uncompared AS u ON u.namespace = b.namespace AND u.ord = b.ord
        JOIN memory AS n ON n.row = m.row - m.ord + u.ord
        WHERE a.namespace = :namespace AND a.ord = m.ord AND n.id NOT IN (SELECT value FROM json_each(:besides))))
RETURNING id;

-- comparison_like --
-- Return the memories whose links are not made yet and that have keys in common with some.
SELECT <memory_columns_m>, m.text_at
FROM uncompared AS u JOIN memory AS m
    ON m.row = ((SELECT number FROM namespace WHERE namespace = :namespace) << 40) + u.ord
WHERE u.namespace = :namespace AND EXISTS (
    SELECT 1 FROM memory AS o JOIN likeness AS a ON a.namespace = o.namespace AND a.ord = o.ord
    JOIN likeness AS b ON b.namespace = a.namespace AND b.key = a.key AND b.ord = u.ord
    WHERE o.namespace = :namespace AND o.id IN (SELECT value FROM json_each(:ids)) AND o.part = 0 AND o.ord <> u.ord)
ORDER BY u.ord;

-- likeness_add --
-- Store the likeness keys of memories, as (key, row id).
INSERT INTO likeness (namespace, key, ord)
SELECT :namespace, value ->> 0, value ->> 1 FROM json_each(:pairs) WHERE true
ON CONFLICT (namespace, key, ord) DO NOTHING;

-- likeness_find --
-- Return the newest few memories that have each of some keys; keys without a memory are left out.
SELECT k.value, (
    SELECT json_group_array(ord) FROM (
        SELECT ord FROM likeness WHERE namespace = :namespace AND key = k.value ORDER BY ord DESC LIMIT :newest))
FROM json_each(:keys) AS k WHERE EXISTS (SELECT 1 FROM likeness WHERE namespace = :namespace AND key = k.value);

-- likeness_memories --
-- Return the memories that share likeness keys with another one.
SELECT ord, id, text, title, author, coalesce(text_at, created_at) FROM memory
WHERE row IN (SELECT (SELECT number FROM namespace WHERE namespace = :namespace) << 40 | value FROM json_each(:ords))
  AND NOT sensitive AND (expires_at IS NULL OR expires_at > :now);

-- uncompared_backlog --
-- Count the memories whose comparison is pending, and return when the oldest was noted.
SELECT count(*), min(at) FROM uncompared;

-- <never_compared> --
-- What has no keys, and may have some, or whose links are not made yet.
part = 0 AND NOT sensitive AND (session IS NULL OR position IS NULL) AND (expires_at IS NULL OR expires_at > :now)
  AND (NOT EXISTS (SELECT 1 FROM likeness AS l WHERE l.namespace = m.namespace AND l.ord = m.ord)
       OR EXISTS (SELECT 1 FROM uncompared AS u WHERE u.namespace = m.namespace AND u.ord = m.ord))

-- likeness_missing --
-- Return some memories of a namespace that were never compared or linked.
SELECT <memory_columns>, text_at
FROM memory AS m
WHERE row > (SELECT number FROM namespace WHERE namespace = :namespace) << 40 | :after
  AND row < ((SELECT number FROM namespace WHERE namespace = :namespace) + 1) << 40 AND <never_compared>
ORDER BY row LIMIT :limit;

-- likeness_missing_somewhere --
-- List the namespaces that have such memories.
SELECT DISTINCT namespace FROM memory AS m WHERE <never_compared>;

-- likeness_again --
-- Delete the likeness keys of some memories.
DELETE FROM likeness WHERE namespace = :namespace AND ord IN (SELECT value FROM json_each(:ords));

-- likeness_forget --
-- Delete the likeness keys of a removed memory, by its row.
DELETE FROM likeness WHERE (namespace, ord) IN (SELECT namespace, ord FROM memory WHERE row = :row);

-- comparison_note --
-- Note memories that share a key with others, until their links are made.
INSERT INTO uncompared (namespace, ord, at) SELECT :namespace, value, :now FROM json_each(:ords) WHERE true
ON CONFLICT (namespace, ord) DO NOTHING;

-- comparison_waiting --
-- Return some memories whose comparison others left pending; a writer has some time to link what it has just noted.
SELECT <memory_columns_m>, m.text_at
FROM uncompared AS u JOIN memory AS m
    ON m.row = ((SELECT number FROM namespace WHERE namespace = :namespace) << 40) + u.ord
WHERE u.namespace = :namespace AND u.at <= :before ORDER BY u.ord LIMIT :limit;

-- comparison_left --
-- Return whether some have been noted for long.
SELECT EXISTS (SELECT 1 FROM uncompared WHERE namespace = :namespace AND at <= :before);

-- comparison_done --
-- Delete the notes of memories that were compared.
DELETE FROM uncompared WHERE namespace = :namespace AND ord IN (SELECT value FROM json_each(:ords));

-- comparison_forget --
-- Delete the note of a removed memory, by its row.
DELETE FROM uncompared WHERE (namespace, ord) IN (SELECT namespace, ord FROM memory WHERE row = :row);

-- comparison_again --
-- Note memories that are to be compared again at once.
INSERT INTO uncompared (namespace, ord, at)
SELECT :namespace, m.ord, 0 FROM memory AS m
WHERE m.namespace = :namespace AND m.id IN (SELECT value FROM json_each(:ids)) AND m.part = 0 AND NOT m.sensitive
ON CONFLICT (namespace, ord) DO UPDATE SET at = excluded.at;

-- comparison_around --
-- Note the memories that semmem linked with some that are removed or get another text, to be compared again.
INSERT INTO uncompared (namespace, ord, at)
SELECT :namespace, m.ord, 0 FROM (
    SELECT l.from_id AS id FROM link AS l WHERE l.namespace = :namespace
        AND l.to_id IN (SELECT value FROM json_each(:ids))
        AND l.made_by = 'semmem' AND l.type IN ('contradicts', 'supersedes')
    UNION
    SELECT l.to_id FROM link AS l WHERE l.namespace = :namespace AND l.from_id IN (SELECT value FROM json_each(:ids))
        AND l.made_by = 'semmem' AND l.type IN ('contradicts', 'supersedes')) AS o
JOIN memory AS m ON m.namespace = :namespace AND m.id = o.id AND m.part = 0 AND NOT m.sensitive
WHERE o.id NOT IN (SELECT value FROM json_each(:ids))
ON CONFLICT (namespace, ord) DO UPDATE SET at = excluded.at;
