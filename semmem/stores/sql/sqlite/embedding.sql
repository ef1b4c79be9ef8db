-- meta_get --
-- Return a fact about the whole store.
SELECT value FROM meta WHERE key = :key;

-- meta_set --
-- Record a fact about the whole store.
INSERT INTO meta (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- meta_claim --
-- Record a fact unless one is recorded.
INSERT INTO meta (key, value) VALUES (:key, :value) ON CONFLICT (key) DO NOTHING;

-- meta_drop --
-- Remove a fact.
DELETE FROM meta WHERE key = :key;

-- meta_release --
-- Forget which embedder fills the store, if no vector is left.
DELETE FROM meta WHERE key = 'embedder' AND NOT EXISTS (SELECT 1 FROM embedding);

-- embedding_put --
-- Store the vector of a new memory.
INSERT INTO embedding (row, vector) VALUES (:row, :vector);

-- embedding_add --
-- Store the vector of a memory that has none; a memory forgotten meanwhile is left out.
INSERT OR IGNORE INTO embedding (row, vector) SELECT m.row, :vector FROM memory AS m
WHERE m.row = (SELECT number FROM namespace WHERE namespace = :namespace) << 40 | :ord AND m.parts = 0;

-- embedding_forget --
-- Delete the vector of a removed memory.
DELETE FROM embedding WHERE row = :row;

-- embedding_some --
-- Return the vectors of some memories, by row.
SELECT row & 1099511627775, vector FROM embedding WHERE row IN (
    SELECT (SELECT number FROM namespace WHERE namespace = :namespace) << 40 | value FROM json_each(:ords)) ORDER BY row;

-- embedding_named --
-- Return the vectors of some memories by their ids.
SELECT m.namespace, m.id, m.part, e.vector FROM json_each(:names) AS k
JOIN memory AS m ON m.namespace = k.value ->> 0 AND m.id = k.value ->> 1 JOIN embedding AS e ON e.row = m.row;

-- embedding_missing --
-- List the indexed memories without a vector, in order, for rebuild.
SELECT <memory_columns>
FROM memory AS m WHERE m.parts = 0 AND (m.namespace, m.ord) > (:namespace, :ord)
  AND NOT EXISTS (SELECT 1 FROM embedding AS e WHERE e.row = m.row)
ORDER BY m.namespace, m.ord LIMIT :limit;

-- embedding_missing_count --
-- Count the indexed memories without a vector.
SELECT count(*) FROM memory AS m WHERE m.parts = 0 AND NOT EXISTS (SELECT 1 FROM embedding AS e WHERE e.row = m.row);

-- embedding_count --
-- Count the vectors of one namespace, or of all.
SELECT CASE WHEN :namespace IS NULL THEN (SELECT count(*) FROM embedding) ELSE (
    SELECT count(*) FROM namespace AS n JOIN embedding AS e ON e.row > n.number << 40 AND e.row < (n.number + 1) << 40
    WHERE n.namespace = :namespace) END;

-- staging_missing --
-- List the same of the vectors of the next embedder.
SELECT <memory_columns>
FROM memory AS m WHERE m.parts = 0 AND (m.namespace, m.ord) > (:namespace, :ord)
  AND NOT EXISTS (SELECT 1 FROM embedding_next AS e WHERE e.row = m.row)
ORDER BY m.namespace, m.ord LIMIT :limit;

-- staging_add --
-- Store a vector of the next embedder; a memory forgotten meanwhile is left out.
INSERT OR IGNORE INTO embedding_next (row, vector) SELECT m.row, :vector FROM memory AS m
WHERE m.row = (SELECT number FROM namespace WHERE namespace = :namespace) << 40 | :ord AND m.parts = 0;

-- staging_forget --
-- Delete the next embedder's vector of a removed memory.
DELETE FROM embedding_next WHERE row = :row;

-- staging_count --
-- Count the vectors of the next embedder.
SELECT count(*) FROM embedding_next;

-- staging_clear --
-- Delete the vectors of the next embedder.
DELETE FROM embedding_next;

-- staging_empty_place --
-- Delete the vectors that those of the next embedder replace.
DELETE FROM embedding;

-- staging_move --
-- Put the vectors of the next embedder in their place.
INSERT INTO embedding (row, vector) SELECT row, vector FROM embedding_next ORDER BY row;

-- staging_counted --
-- Advance the sequence number in every namespace: recalls read other vectors.
UPDATE namespace SET revision = revision + 1;
