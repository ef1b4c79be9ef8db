-- memory_first --
-- Return the first memory with the same content; "+" keeps SQLite from using the index of times.
SELECT id FROM memory
WHERE namespace = :namespace AND content = :content AND payload = :payload AND part = 0 AND id <> :id AND NOT sensitive
  AND expires_at IS NULL
ORDER BY +created_at, id LIMIT 1;

-- memory_corroborate --
-- Count a repeat and its time; version and time of the last change stay as they are.
UPDATE memory SET seen_count = seen_count + :times, last_seen = max(:now, coalesce(last_seen, 0))
WHERE namespace = :namespace AND id = :id AND part = 0
RETURNING id;

-- likeness_add --
-- Store the likeness keys of memories, as (key, ord).
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
SELECT ord, id, text, title, author, created_at FROM memory
WHERE row IN (SELECT (SELECT number FROM namespace WHERE namespace = :namespace) << 40 | value FROM json_each(:ords))
  AND NOT sensitive AND (expires_at IS NULL OR expires_at > :now);

-- likeness_missing --
-- What has no keys, and may have some.
SELECT <memory_columns>
FROM memory AS m
WHERE row > (SELECT number FROM namespace WHERE namespace = :namespace) << 40 | :after
  AND row < ((SELECT number FROM namespace WHERE namespace = :namespace) + 1) << 40
  AND part = 0 AND NOT sensitive AND (session IS NULL OR position IS NULL) AND (expires_at IS NULL OR expires_at > :now)
  AND NOT EXISTS (SELECT 1 FROM likeness AS l WHERE l.namespace = m.namespace AND l.ord = m.ord)
ORDER BY row LIMIT :limit;

-- likeness_again --
-- Delete the likeness keys of some memories.
DELETE FROM likeness WHERE namespace = :namespace AND ord IN (SELECT value FROM json_each(:ords));

-- likeness_forget --
-- Delete the likeness keys of a removed memory, by its row.
DELETE FROM likeness WHERE (namespace, ord) IN (SELECT namespace, ord FROM memory WHERE row = :row);
