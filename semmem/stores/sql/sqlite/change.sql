-- sweep_change_due --
-- List the namespaces with changes to sweep; the first change of each is its oldest, so one index look-up each.
SELECT n.namespace FROM namespace AS n WHERE (
    SELECT c.at FROM change AS c WHERE c.namespace = n.namespace AND c.kind <> 'swept'
    ORDER BY c.number, c.id LIMIT 1) < :changes_before ORDER BY 1;

-- sweep_change --
-- Delete some of the oldest changes.
DELETE FROM change WHERE namespace = :namespace AND (number, id) IN (
    SELECT c.number, c.id FROM change AS c
    WHERE c.namespace = :namespace AND c.kind <> 'swept' AND c.at < :changes_before
    ORDER BY c.number, c.id LIMIT :limit) RETURNING number;

-- sweep_change_unmark --
-- Delete the earlier mark of a sweep; the newest one suffices.
DELETE FROM change WHERE namespace = :namespace AND kind = 'swept' AND number < :number;

-- sweep_change_mark --
-- Mark up to which change there may be gaps; readers behind it need a new export. Only marks of sweeps and drops have
-- an empty id.
INSERT INTO change (namespace, number, id, kind, at) VALUES (:namespace, :number, '', 'swept', :now) ON CONFLICT DO NOTHING;

-- change_list --
-- Return changes after a sequence number, or after an id within it.
SELECT number, id, kind, at, types FROM change
WHERE namespace = :namespace AND kind <> 'swept' AND (
    number > :number OR (number = :number AND id > :id))
ORDER BY number, id LIMIT :limit;

-- change_head --
-- Return the state of the change log; read after the list, so that changes swept in between are reported.
SELECT n.number, n.changes, coalesce((
    SELECT max(c.number) FROM change AS c WHERE c.namespace = n.namespace AND c.kind = 'swept'), 0)
FROM namespace AS n WHERE n.namespace = :namespace;

-- limits_get --
-- Return the limits of a namespace: days that it keeps memories, memories and bytes that it may hold.
SELECT keep / 86400e6, most_memories, most_bytes FROM namespace WHERE namespace = :namespace;

-- limits_set --
-- Change some limits of a namespace; every writer reads them with its row ids.
INSERT INTO namespace (namespace, changed_at, keep, most_memories, most_bytes)
VALUES (:namespace, :at, :keep, :most_memories, :most_bytes)
ON CONFLICT (namespace) DO UPDATE SET
    keep = CASE WHEN 'keep_days' IN (SELECT value FROM json_each(:given)) THEN excluded.keep ELSE keep END,
    most_memories = CASE WHEN 'most_memories' IN (SELECT value FROM json_each(:given)) THEN excluded.most_memories
                    ELSE most_memories END,
    most_bytes = CASE WHEN 'most_bytes' IN (SELECT value FROM json_each(:given)) THEN excluded.most_bytes ELSE most_bytes END
RETURNING keep / 86400e6, most_memories, most_bytes;

-- sweep_kept_due --
-- List the namespaces that keep memories for a limited time. Sensitive memories are not in their count.
SELECT namespace FROM namespace AS n WHERE keep IS NOT NULL
AND (memories > 0 OR EXISTS (SELECT 1 FROM memory AS m WHERE m.namespace = n.namespace)) ORDER BY namespace;

-- sweep_kept --
-- Select some memories not written, changed or remembered again for that long, except pinned ones. Of a time in the
-- future that was given, only the time of the writing counts.
SELECT m.id FROM memory AS m JOIN namespace AS n ON n.namespace = m.namespace
WHERE m.namespace = :namespace AND m.part = 0 AND NOT m.pinned
  AND coalesce(m.last_seen, m.updated_at) < :now - n.keep
  AND (m.updated_at < :now - n.keep OR m.updated_at > :now)
ORDER BY m.created_at, m.id LIMIT :limit;
