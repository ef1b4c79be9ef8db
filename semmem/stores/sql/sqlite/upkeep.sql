-- upkeep_orphans --
-- Count links and likeness keys of memories that neither exist nor can be restored.
SELECT (SELECT count(*) FROM link AS l WHERE EXISTS (
            SELECT 1 FROM json_each(json_array(l.from_id, l.to_id)) AS e WHERE NOT EXISTS (
                SELECT 1 FROM memory AS m WHERE m.namespace = l.namespace AND m.id = e.value)
            AND NOT EXISTS (SELECT 1 FROM history AS h WHERE h.namespace = l.namespace AND h.id = e.value)))
     + (SELECT count(*) FROM likeness AS l WHERE NOT EXISTS (
            SELECT 1 FROM namespace AS n JOIN memory AS m ON m.row = (n.number << 40) + l.ord
            WHERE n.namespace = l.namespace));

-- upkeep_contradictions --
-- Count the contradictions that a person should look at.
SELECT count(*) FROM link WHERE type = 'contradicts';
