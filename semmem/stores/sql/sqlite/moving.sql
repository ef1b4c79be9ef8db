-- moved_columns --
-- List every table with its columns, without generated ones. The audit stays under the name that a namespace had.
SELECT m.name, c.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c
WHERE m.type = 'table' AND m.name <> 'audit' AND m.sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY m.name, c.cid;

-- moved_holds --
-- Return whether the new name holds anything already.
SELECT EXISTS (SELECT 1 FROM {table} WHERE namespace = :namespace);

-- moved_free --
-- Delete the row of an empty namespace that has the new name; return the last row id that it has given.
DELETE FROM namespace WHERE namespace = :namespace RETURNING ords;

-- moved_ords --
-- Give no row id again that the former namespace of the new name has given.
UPDATE namespace SET ords = max(ords, :ords) WHERE namespace = :namespace;

-- moved_away --
-- Create a row for the old name, whose row got the new one: it holds nothing, and gives no row id again that somebody
-- may still hold. Its number is a new one, because the other begins the rows that were renamed.
INSERT INTO namespace (namespace, ords, changes, revision, changed_at, makers)
SELECT :old, ords, changes, revision, :at, makers FROM namespace WHERE namespace = :new RETURNING number;

-- moved_name --
-- Rename a namespace in a table.
UPDATE {table} SET namespace = :new WHERE namespace = :old;

-- moved_row --
-- Create the row of a copied namespace, with a number of its own and the same counts.
INSERT INTO namespace (namespace, ords, changes, revision, memories, length, language, changed_at, keep, most_memories,
                       most_bytes, makers)
SELECT :new, ords, changes + 1, revision + 1, memories, length, language, :at, keep, most_memories, most_bytes, makers
FROM namespace WHERE namespace = :old;

-- moved_number --
-- Return the number of the copied namespace, also where none of its memories is indexed.
SELECT number FROM namespace WHERE namespace = :new;

-- moved_copy --
-- Copy all rows of a table under the new name.
INSERT INTO {table} (namespace, {columns}) SELECT :new, {columns} FROM {table} WHERE namespace = :old;

-- moved_memory --
-- Copy rows with the same row ids under the new number.
INSERT INTO memory (row, namespace, {columns})
SELECT (SELECT number << 40 FROM namespace WHERE namespace = :new) + ord, :new, {columns}
FROM memory WHERE namespace = :old;

-- moved_tokens --
-- Copy the index with tokens that begin with the new number.
INSERT INTO lexical (rowid, tokens)
SELECT (n.number << 40) + m.ord, ltrim(replace(' ' || l.tokens, ' ' || o.number || 'n', ' ' || n.number || 'n'))
FROM namespace AS o JOIN namespace AS n ON n.namespace = :new JOIN memory AS m ON m.namespace = o.namespace
JOIN lexical AS l ON l.rowid = m.row WHERE o.namespace = :old;

-- <both_namespaces> --
-- The namespace that is copied, and the copy, which has a number of its own.
namespace AS o JOIN namespace AS n ON n.namespace = :new

-- moved_forward --
-- Copy the entries under the new number.
INSERT INTO forward (row, entries, candidates, names)
SELECT (n.number << 40) + (f.row & 1099511627775), f.entries, f.candidates, f.names
FROM <both_namespaces> JOIN forward AS f ON f.row > o.number << 40 AND f.row < (o.number + 1) << 40
WHERE o.namespace = :old;

-- moved_embedding --
-- Copy the vectors under the new number.
INSERT INTO embedding (row, vector) SELECT (n.number << 40) + (e.row & 1099511627775), e.vector
FROM <both_namespaces> JOIN embedding AS e ON e.row > o.number << 40 AND e.row < (o.number + 1) << 40
WHERE o.namespace = :old;

-- moved_relationship --
-- Copy the relationships under the new number.
INSERT INTO relationship (row, subject, predicate, object)
SELECT (n.number << 40) + (r.row & 1099511627775), r.subject, r.predicate, r.object
FROM <both_namespaces> JOIN relationship AS r ON r.row > o.number << 40 AND r.row < (o.number + 1) << 40
WHERE o.namespace = :old;

-- moved_written --
-- Record the new memories for readers of changes.
INSERT INTO change (namespace, number, id, kind, at)
SELECT n.namespace, n.changes, m.id, 'written', :at
FROM namespace AS n JOIN memory AS m ON m.namespace = n.namespace AND m.part = 0 WHERE n.namespace = :new;
