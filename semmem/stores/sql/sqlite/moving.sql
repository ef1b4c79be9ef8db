-- moved_columns --
-- Every table with its columns; a generated one makes itself.
SELECT m.name, c.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c
WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY m.name, c.cid;

-- moved_holds --
-- A name that is taken is not taken over.
SELECT EXISTS (SELECT 1 FROM {table} WHERE namespace = :namespace);

-- moved_free --
-- The row of an empty namespace makes room.
DELETE FROM namespace WHERE namespace = :namespace;

-- moved_name --
-- All of it has the other name.
UPDATE {table} SET namespace = :new WHERE namespace = :old;

-- moved_row --
-- A number of its own, the same counts.
INSERT INTO namespace (namespace, ords, changes, revision, memories, length, language, changed_at, keep, most_memories,
                       most_bytes)
SELECT :new, ords, changes + 1, revision + 1, memories, length, language, :at, keep, most_memories, most_bytes
FROM namespace WHERE namespace = :old;

-- moved_number --
-- That number, also where none of the memories is in the index.
SELECT number FROM namespace WHERE namespace = :new;

-- moved_copy --
-- All columns, with the other name.
INSERT INTO {table} (namespace, {columns}) SELECT :new, {columns} FROM {table} WHERE namespace = :old;

-- moved_memory --
-- The same ords behind the other number.
INSERT INTO memory (row, namespace, {columns})
SELECT (SELECT number << 40 FROM namespace WHERE namespace = :new) + ord, :new, {columns}
FROM memory WHERE namespace = :old;

-- moved_tokens --
-- Each token begins with the number.
INSERT INTO lexical (rowid, tokens)
SELECT (n.number << 40) + m.ord, ltrim(replace(' ' || l.tokens, ' ' || o.number || 'n', ' ' || n.number || 'n'))
FROM namespace AS o JOIN namespace AS n ON n.namespace = :new JOIN memory AS m ON m.namespace = o.namespace
JOIN lexical AS l ON l.rowid = m.row WHERE o.namespace = :old;

-- moved_written --
-- For those who keep a copy of the new one.
INSERT INTO change (namespace, number, id, kind, at)
SELECT n.namespace, n.changes, m.id, 'written', :at
FROM namespace AS n JOIN memory AS m ON m.namespace = n.namespace AND m.part = 0 WHERE n.namespace = :new;
