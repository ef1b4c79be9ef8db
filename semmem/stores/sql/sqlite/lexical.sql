-- namespace_take --
-- Reserve row ids for memories and parts; the first call creates the namespace's row. Another derivation version than
-- before gets a mark at the first of the row ids; of too many marks all before it become one, of nobody known.
INSERT INTO namespace (namespace, ords, changed_at, language, makers)
VALUES (:namespace, :count, :at, :language, CASE WHEN :made_by <> '' THEN json_array(json_array(1, :made_by)) END)
ON CONFLICT (namespace) DO UPDATE SET ords = ords + excluded.ords, changed_at = excluded.changed_at,
    language = CASE WHEN memories = 0 THEN excluded.language ELSE language END,
    makers = CASE
        WHEN excluded.makers IS NULL OR makers ->> '$[#-1][1]' = excluded.makers ->> '$[0][1]' THEN makers
        WHEN json_array_length(makers) >= 32
            THEN json_array(json_array(1, ''), json_array(ords + 1, excluded.makers ->> '$[0][1]'))
        ELSE json_insert(coalesce(makers, '[]'), '$[#]', json_array(ords + 1, excluded.makers ->> '$[0][1]')) END
RETURNING number, ords, language, most_memories, most_bytes;

-- namespace_of --
-- Return number, memories and length of a namespace that holds memories.
SELECT number, memories, length FROM namespace WHERE namespace = :namespace AND memories > 0;

-- namespace_last --
-- Return the last row id given to a memory of the namespace.
SELECT (number << 40) + ords FROM namespace WHERE namespace = :namespace;

-- namespace_count --
-- Number a change, and add what came or (negative) went to the counts.
UPDATE namespace SET memories = memories + :memories, length = length + :length, changes = changes + 1,
    revision = revision + 1, changed_at = :at
WHERE namespace = :namespace;

-- namespace_revise --
-- Advance the sequence number where no memory came or went but recalls read other data.
UPDATE namespace SET length = length + :length, revision = revision + 1 WHERE namespace = :namespace;

-- namespace_prune --
-- Delete the row of a namespace empty for a day and longer than changes are kept, when no writer can still hold its
-- row ids. A namespace with limits stays. Sensitive memories are not in its count, so they are looked for.
DELETE FROM namespace WHERE namespace = :namespace AND memories = 0 AND changed_at < min(:day_before, :changes_before)
AND keep IS NULL AND most_memories IS NULL AND most_bytes IS NULL
AND NOT EXISTS (SELECT 1 FROM memory AS m WHERE m.namespace = namespace.namespace);

-- change_prune --
-- Delete the last changes of such a namespace.
DELETE FROM change WHERE namespace = :namespace;

-- namespace_forgotten --
-- List the namespaces that have been empty that long.
SELECT namespace FROM namespace WHERE memories = 0 AND changed_at < min(:day_before, :changes_before)
AND keep IS NULL AND most_memories IS NULL AND most_bytes IS NULL
AND NOT EXISTS (SELECT 1 FROM memory AS m WHERE m.namespace = namespace.namespace) ORDER BY namespace;

-- change_add --
-- Record the changes of memories under the sequence number just taken.
INSERT INTO change (namespace, number, id, kind, at, types)
SELECT n.namespace, n.changes, k.value, :kind, :at, :types FROM namespace AS n CROSS JOIN json_each(:ids) AS k
WHERE n.namespace = :namespace;

-- language_list --
-- Return the language in which each namespace was extracted.
SELECT namespace, language FROM namespace WHERE memories > 0 ORDER BY namespace;

-- language_of --
-- Return the language of a namespace, for re-extraction with the write lock.
SELECT language FROM namespace WHERE namespace = :namespace;

-- language_begin --
-- Record that a namespace is being extracted in another language, during which nobody writes to it or recalls from it.
UPDATE namespace SET language = :unfinished WHERE namespace = :namespace AND language <> :language;

-- language_end --
-- Record that every memory of a namespace was extracted in a language.
UPDATE namespace SET language = :language, revision = revision + 1
WHERE namespace = :namespace AND language <> :language;

-- namespace_holds --
-- Return how much a namespace with limits holds after all writes. The bytes are those of texts and titles.
SELECT count(*), coalesce(sum(length(CAST(text AS BLOB)) + coalesce(length(CAST(title AS BLOB)), 0)), 0)
FROM memory WHERE namespace = :namespace AND part = 0;

-- namespaces --
-- List the namespaces that hold memories, including those with sensitive ones only.
SELECT namespace FROM namespace AS n
WHERE memories > 0 OR EXISTS (SELECT 1 FROM memory AS m WHERE m.namespace = n.namespace) ORDER BY namespace;

-- namespace_large --
-- List the namespaces with so many indexed memories or more, the largest first.
SELECT namespace FROM namespace WHERE memories >= :least ORDER BY memories DESC, namespace;

-- lexical_insert --
-- Index the tokens of a memory.
INSERT INTO lexical (rowid, tokens) VALUES (:row, :tokens);

-- lexical_replace --
-- Replace the tokens of a memory that was extracted again.
UPDATE lexical SET tokens = :tokens WHERE rowid = :row;

-- lexical_forget --
-- Delete the tokens of removed memories.
DELETE FROM lexical WHERE rowid = :row;

-- lexical_matches --
-- Return FTS5's inverted list of one token: each memory repeated by term frequency, with its length. Two long values,
-- because single rows would take three times as long to read. The cross join makes SQLite read FTS5 first.
SELECT group_concat(t.doc & 1099511627775), group_concat(m.length)
FROM lexical_term AS t CROSS JOIN memory AS m ON m.row = t.doc WHERE t.term = :token;

-- lexical_segments --
-- Count the segments of the inverted index.
SELECT count(DISTINCT segid) FROM lexical_idx;

-- lexical_optimize --
-- Merge all segments of the inverted index, which removes forgotten tokens for good.
INSERT INTO lexical (lexical) VALUES ('optimize');
