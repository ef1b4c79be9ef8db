-- upkeep_orphans --
-- What hangs on a memory that is neither there nor kept for its way back: links, likeness, vectors.
SELECT (SELECT count(*) FROM link l WHERE EXISTS (
            SELECT FROM unnest(ARRAY[l.from_id, l.to_id]) AS e(id) WHERE NOT EXISTS (
                SELECT FROM memory m WHERE m.namespace = l.namespace AND m.id = e.id)
            AND NOT EXISTS (SELECT FROM history h WHERE h.namespace = l.namespace AND h.id = e.id)))
     + (SELECT count(*) FROM likeness l WHERE NOT EXISTS (
            SELECT FROM memory m WHERE m.namespace = l.namespace AND m.ord = l.ord))
     + (SELECT count(*) FROM embedding v WHERE NOT EXISTS (
            SELECT FROM memory m WHERE m.namespace = v.namespace AND m.ord = v.ord));

-- upkeep_hubs --
-- Names that so many memories mention that they carry nothing in the graph.
SELECT count(*) FROM (SELECT FROM posting WHERE kind = 3 GROUP BY namespace, key HAVING sum(n) > %(cap)s) AS hubs;

-- upkeep_contradictions --
-- Links for somebody to look at.
SELECT count(*) FROM link WHERE type = 'contradicts';
