-- sweep_change_due --
-- The first change of a namespace is its oldest: one look at the index each.
SELECT n.namespace FROM namespace AS n WHERE (
    SELECT c.at FROM change AS c WHERE c.namespace = n.namespace AND c.kind <> 'swept'
    ORDER BY c.number, c.id LIMIT 1) < :changes_before ORDER BY 1;

-- sweep_change --
-- Some of the oldest.
DELETE FROM change WHERE namespace = :namespace AND (number, id) IN (
    SELECT c.number, c.id FROM change AS c
    WHERE c.namespace = :namespace AND c.kind <> 'swept' AND c.at < :changes_before
    ORDER BY c.number, c.id LIMIT :limit) RETURNING number;

-- sweep_change_unmark --
-- One mark is enough.
DELETE FROM change WHERE namespace = :namespace AND kind = 'swept' AND number < :number;

-- sweep_change_mark --
-- Up to here there may be gaps: who has not read so far must export anew. No id is empty but this one and of a drop.
INSERT INTO change (namespace, number, id, kind, at) VALUES (:namespace, :number, '', 'swept', :now) ON CONFLICT DO NOTHING;

-- change_list --
-- Behind a number, or behind an id of that number.
SELECT number, id, kind, at FROM change
WHERE namespace = :namespace AND kind <> 'swept' AND (
    number > :number OR (number = :number AND id > :id))
ORDER BY number, id LIMIT :limit;

-- change_head --
-- Read behind the list: what is swept in between is told, and not passed over.
SELECT n.number, n.changes, coalesce((
    SELECT max(c.number) FROM change AS c WHERE c.namespace = n.namespace AND c.kind = 'swept'), 0)
FROM namespace AS n WHERE n.namespace = :namespace;

-- limits_get --
-- What a namespace keeps, in days, and how much it may hold.
SELECT keep / 86400e6, most_memories, most_bytes FROM namespace WHERE namespace = :namespace;

-- limits_set --
-- Every writer reads it when it takes its numbers. What is not given stays.
INSERT INTO namespace (namespace, changed_at, keep, most_memories, most_bytes)
VALUES (:namespace, :at, :keep, :most_memories, :most_bytes)
ON CONFLICT (namespace) DO UPDATE SET
    keep = CASE WHEN 'keep_days' IN (SELECT value FROM json_each(:given)) THEN excluded.keep ELSE keep END,
    most_memories = CASE WHEN 'most_memories' IN (SELECT value FROM json_each(:given)) THEN excluded.most_memories
                    ELSE most_memories END,
    most_bytes = CASE WHEN 'most_bytes' IN (SELECT value FROM json_each(:given)) THEN excluded.most_bytes ELSE most_bytes END
RETURNING keep / 86400e6, most_memories, most_bytes;

-- sweep_kept_due --
-- Namespaces that keep memories for a time.
SELECT namespace FROM namespace WHERE keep IS NOT NULL AND memories > 0 ORDER BY namespace;

-- sweep_kept --
-- Some that nobody has changed or remembered again for so long; what is pinned stays.
SELECT m.id FROM memory AS m JOIN namespace AS n ON n.namespace = m.namespace
WHERE m.namespace = :namespace AND m.part = 0 AND NOT m.pinned
  AND max(m.created_at, m.updated_at, coalesce(m.last_seen, m.created_at)) < :now - n.keep
ORDER BY m.created_at, m.id LIMIT :limit;
