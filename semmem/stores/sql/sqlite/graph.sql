-- forward_put --
-- Store the entries of a memory, over those that an older extractor made.
INSERT INTO forward (row, entries, candidates, names) VALUES (:row, :entries, :candidates, :names)
ON CONFLICT (row) DO UPDATE SET entries = excluded.entries, candidates = excluded.candidates, names = excluded.names;

-- forward_forget --
-- Delete the entries of a removed memory.
DELETE FROM forward WHERE row = :row;

-- forward_of --
-- Return the entries of one memory, to tell whether another extraction changes them.
SELECT entries, candidates, names FROM forward WHERE row = :row;

-- forward_names --
-- Return entries and their spellings of some memories, by row.
SELECT row & 1099511627775, entries, names FROM forward WHERE row IN (
    SELECT (SELECT number FROM namespace WHERE namespace = :namespace) << 40 | value FROM json_each(:ords)) ORDER BY row;

-- forward_all --
-- Return entries and their spellings of a namespace.
SELECT f.entries, f.names FROM namespace AS n
JOIN forward AS f ON f.row > n.number << 40 AND f.row < (n.number + 1) << 40
WHERE :namespace IS NULL OR n.namespace = :namespace;

-- forward_of_ids --
-- Return the entries of some memories and their parts.
SELECT f.entries FROM memory AS m JOIN forward AS f ON f.row = m.row
WHERE m.namespace = :namespace AND m.id IN (SELECT value FROM json_each(:ids));

-- forward_with_key --
-- Return entries of a namespace in whose bytes a key stands, which may also begin amid an entry.
SELECT f.entries FROM namespace AS n
JOIN forward AS f ON f.row > n.number << 40 AND f.row < (n.number + 1) << 40
WHERE n.namespace = :namespace AND instr(f.entries, :key) > 0;

-- relationship_put --
-- Store a relationship that a memory states.
INSERT OR IGNORE INTO relationship (row, subject, predicate, object) VALUES (:row, :subject, :predicate, :object);

-- relationship_forget --
-- Delete the relationships of a memory.
DELETE FROM relationship WHERE row = :row;

-- relationship_of --
-- Return the relationships of one memory.
SELECT subject, predicate, object FROM relationship WHERE row = :row ORDER BY subject, object, predicate;

-- relationships_of --
-- Return the concepts related to some, in both directions, each pair once.
SELECT DISTINCT one, other FROM (
    SELECT r.subject AS one, r.object AS other, r.row FROM json_each(:keys) AS k JOIN relationship AS r ON r.subject = k.value
    UNION ALL
    SELECT r.object, r.subject, r.row FROM json_each(:keys) AS k JOIN relationship AS r ON r.object = k.value)
WHERE row > (SELECT number FROM namespace WHERE namespace = :namespace) << 40
  AND row < ((SELECT number FROM namespace WHERE namespace = :namespace) + 1) << 40
ORDER BY one, other LIMIT :limit;

-- corrections --
-- Return the corrections of names.
SELECT key, name, into_key, into_name FROM correction WHERE namespace = :namespace;

-- correct_moved --
-- Let the names that are merged into a name move along with it.
UPDATE correction SET into_key = :into_key, into_name = :into_name WHERE namespace = :namespace AND into_key = :key;

-- correct --
-- Record a correction; a later one replaces an earlier one of the same name.
INSERT INTO correction (namespace, key, name, into_key, into_name)
VALUES (:namespace, :key, :name, :into_key, :into_name)
ON CONFLICT (namespace, key) DO UPDATE SET name = excluded.name, into_key = excluded.into_key,
    into_name = excluded.into_name;

-- correct_not --
-- Undo the merges into a name, and the correction of the name itself.
DELETE FROM correction WHERE namespace = :namespace AND (key = :key OR into_key = :key);

-- correction_empty --
-- Delete the corrections of an empty namespace.
DELETE FROM correction WHERE namespace = :namespace
AND NOT EXISTS (SELECT 1 FROM memory WHERE namespace = :namespace);

-- correction_drop --
-- Delete the corrections of names that no memory mentions any more, and those into such a name.
DELETE FROM correction WHERE namespace = :namespace
AND (key IN (SELECT value FROM json_each(:keys)) OR into_key IN (SELECT value FROM json_each(:keys)));

-- graph_hash_memories --
-- Return what the hash of a graph is made of: of each memory its id, part, length, entries and candidates.
SELECT m.row, m.id, m.part, m.length, f.entries, f.candidates FROM memory AS m JOIN forward AS f ON f.row = m.row
WHERE m.namespace = :namespace AND m.parts = 0 ORDER BY m.id, m.part;

-- graph_hash_links --
-- Return the links that people made between memories that exist.
SELECT l.from_id, l.type, l.to_id FROM link AS l
JOIN memory AS f ON f.namespace = :namespace AND f.id = l.from_id AND f.part = 0
JOIN memory AS t ON t.namespace = :namespace AND t.id = l.to_id AND t.part = 0
WHERE l.namespace = :namespace AND l.made_by IS NOT 'semmem' ORDER BY l.from_id, l.type, l.to_id;
