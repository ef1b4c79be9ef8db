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
