-- resident_state --
-- Return the state of a namespace: writers count every change of what a recall may read. Its number is given once.
SELECT n.number, n.revision, n.changes, n.memories, n.length, (SELECT value FROM meta WHERE key = 'embedder')
FROM namespace AS n WHERE n.namespace = :namespace AND n.memories > 0;

-- <resident_columns> --
-- What memory holds of an indexed memory; of one that nobody has derived since schema 12, the tokens of its words.
m.namespace, m.ord, m.session, m.author, substr(rtrim(m.text, ' ' || char(9, 10, 13)), -1) = '?', m.created_at,
       m.id, m.part, m.importance, m.content, m.updated_at, m.title, coalesce(m.position, 9223372036854775807),
       m.length, f.entries, f.candidates,
       CASE WHEN f.row IS NULL THEN (SELECT l.tokens FROM lexical AS l WHERE l.rowid = m.row) END

-- resident_rows --
-- Return the indexed memories of a namespace, by row.
SELECT <resident_columns>
FROM memory AS m LEFT JOIN forward AS f ON f.row = m.row
WHERE m.row > :number << 40 AND m.row < (:number + 1) << 40 AND m.parts = 0 ORDER BY m.row;

-- resident_rows_since --
-- Return the memories that changed after a sequence number.
SELECT <resident_columns>
FROM memory AS m LEFT JOIN forward AS f ON f.row = m.row
WHERE m.namespace = :namespace AND m.parts = 0
  AND m.id IN (SELECT c.id FROM change AS c WHERE c.namespace = :namespace AND c.number > :since) ORDER BY m.row;

-- resident_vectors --
-- Return the vectors of a namespace, by row.
SELECT row & 1099511627775, vector FROM embedding
WHERE row > :number << 40 AND row < (:number + 1) << 40 ORDER BY row;

-- resident_vectors_since --
-- Return the vectors of the memories that changed after a sequence number.
SELECT e.row & 1099511627775, e.vector FROM memory AS m JOIN embedding AS e ON e.row = m.row
WHERE m.namespace = :namespace AND m.parts = 0
  AND m.id IN (SELECT c.id FROM change AS c WHERE c.namespace = :namespace AND c.number > :since) ORDER BY e.row;

-- resident_changes --
-- Return the ids that came, went or were replaced after a sequence number.
SELECT DISTINCT id, kind FROM change WHERE namespace = :namespace AND number > :since;

-- saved_place --
-- Return the path of the file in bytes, for it need not be UTF-8; empty for a database in memory.
SELECT CAST(file AS blob) FROM pragma_database_list WHERE name = 'main';

-- saved_name --
-- Return the name of the file of a saved model, by the number of its namespace.
SELECT value FROM meta WHERE key = 'saved ' || :number;

-- saved_names --
-- Return the names of the files of all saved models.
SELECT value FROM meta WHERE key LIKE 'saved %';

-- saved_set --
-- Record the name of the file of a saved model.
INSERT INTO meta (key, value) VALUES ('saved ' || :number, :name)
ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- saved_erase --
-- Forget the name of the file of a namespace's saved model, or of each where no namespace is given. With it goes each of
-- a namespace whose row is gone, of which the history may still hold memories.
DELETE FROM meta WHERE key LIKE 'saved %' AND (
    :namespace IS NULL OR key = 'saved ' || (SELECT number FROM namespace WHERE namespace = :namespace)
    OR key NOT IN (SELECT 'saved ' || number FROM namespace));

-- saved_drop --
-- Forget the name of one file.
DELETE FROM meta WHERE key LIKE 'saved %' AND value = :name;
