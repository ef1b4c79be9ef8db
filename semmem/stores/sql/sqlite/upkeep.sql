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

-- derivations_list --
-- Return the last row id and the marks of derivation versions of one namespace, or of each, that has some.
SELECT namespace, ords, makers FROM namespace
WHERE makers IS NOT NULL AND memories > 0 AND (:namespace IS NULL OR namespace = :namespace) ORDER BY namespace;

-- derivations_own --
-- Return the last row id and the marks of derivation versions of a namespace.
SELECT ords, makers FROM namespace WHERE namespace = :namespace;

-- derivations_set --
-- Store the marks of derivation versions of a namespace.
UPDATE namespace SET makers = :makers WHERE namespace = :namespace;

-- made_between --
-- Return whole memories that are indexed, by their row ids, with the row ids and the lengths of their parts.
SELECT <memory_columns_m>, m.payload, m.text_at,
       (SELECT json_group_array(n) FROM (
           SELECT length(p.text) AS n FROM memory AS p
           WHERE p.namespace = m.namespace AND p.id = m.id AND p.part > 0 ORDER BY p.part)),
       (SELECT json_group_array(n) FROM (
           SELECT p.ord AS n FROM memory AS p
           WHERE p.namespace = m.namespace AND p.id = m.id AND p.parts = 0 ORDER BY p.part))
FROM memory AS m
WHERE m.row > (SELECT number FROM namespace WHERE namespace = :namespace) << 40 | :after
  AND m.row <= (SELECT number FROM namespace WHERE namespace = :namespace) << 40 | :upto AND m.part = 0 AND m.parts >= 0
ORDER BY m.row LIMIT :limit;

-- count_made --
-- Count whole memories that are indexed, by their row ids.
SELECT count(*) FROM memory
WHERE row > (SELECT number FROM namespace WHERE namespace = :namespace) << 40 | :after
  AND row <= (SELECT number FROM namespace WHERE namespace = :namespace) << 40 | :upto AND part = 0 AND parts >= 0;

-- made_seen --
-- Return how often a memory was seen, and when last, before it is written again and says the same.
SELECT seen_count, last_seen FROM memory WHERE namespace = :namespace AND id = :id AND part = 0;

-- made_seen_set --
-- Give it back what it had.
UPDATE memory SET seen_count = :seen_count, last_seen = :last_seen WHERE namespace = :namespace AND id = :id AND part = 0;
