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
