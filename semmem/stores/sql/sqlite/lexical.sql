-- namespace_take --
-- Numbers for some memories and parts; the first of them makes the row.
INSERT INTO namespace (namespace, ords, changed_at, language) VALUES (:namespace, :count, :at, :language)
ON CONFLICT (namespace) DO UPDATE SET ords = ords + excluded.ords, changed_at = excluded.changed_at,
    language = CASE WHEN memories = 0 THEN excluded.language ELSE language END
RETURNING number, ords, language, most_memories, most_bytes;

-- namespace_of --
-- Number, memories and length of one that holds something.
SELECT number, memories, length FROM namespace WHERE namespace = :namespace AND memories > 0;

-- namespace_last --
-- The row of its last memory, whether or not that is still there.
SELECT (number << 40) + ords FROM namespace WHERE namespace = :namespace;

-- namespace_count --
-- What came, or (negative) went, has a number.
UPDATE namespace SET memories = memories + :memories, length = length + :length, changes = changes + 1,
    revision = revision + 1, changed_at = :at
WHERE namespace = :namespace;

-- namespace_revise --
-- Nothing came or went, and recalls read something else.
UPDATE namespace SET length = length + :length, revision = revision + 1 WHERE namespace = :namespace;

-- namespace_prune --
-- Nobody still holds a number of a namespace that has been empty for a day, and longer than changes are kept; one that has
-- a limit waits for its next memory. A sensitive memory is not counted.
DELETE FROM namespace WHERE namespace = :namespace AND memories = 0 AND changed_at < min(:day_before, :changes_before)
AND keep IS NULL AND most_memories IS NULL AND most_bytes IS NULL
AND NOT EXISTS (SELECT 1 FROM memory AS m WHERE m.namespace = namespace.namespace);

-- change_prune --
-- Nor is there anybody to be told of it.
DELETE FROM change WHERE namespace = :namespace;

-- namespace_forgotten --
-- The namespaces that have been empty for so long.
SELECT namespace FROM namespace WHERE memories = 0 AND changed_at < min(:day_before, :changes_before)
AND keep IS NULL AND most_memories IS NULL AND most_bytes IS NULL
AND NOT EXISTS (SELECT 1 FROM memory AS m WHERE m.namespace = namespace.namespace) ORDER BY namespace;

-- change_add --
-- What became of which memories, under the number that was just taken.
INSERT INTO change (namespace, number, id, kind, at)
SELECT n.namespace, n.changes, k.value, :kind, :at FROM namespace AS n CROSS JOIN json_each(:ids) AS k
WHERE n.namespace = :namespace;

-- language_list --
-- Whose stems the memories of each namespace were read with.
SELECT namespace, language FROM namespace WHERE memories > 0 ORDER BY namespace;

-- language_of --
-- For who reads memories anew, with the write lock.
SELECT language FROM namespace WHERE namespace = :namespace;

-- language_begin --
-- From here on nobody writes or recalls until every memory has been read anew; where that changes nothing, all go on.
UPDATE namespace SET language = :unfinished WHERE namespace = :namespace AND language <> :language;

-- language_end --
-- Every memory has been read anew.
UPDATE namespace SET language = :language, revision = revision + 1
WHERE namespace = :namespace AND language <> :language;

-- namespace_holds --
-- When all is written, and only where there is a limit: how much it holds. The bytes are those of texts and titles.
SELECT count(*), coalesce(sum(length(CAST(text AS BLOB)) + coalesce(length(CAST(title AS BLOB)), 0)), 0)
FROM memory WHERE namespace = :namespace AND part = 0;

-- namespaces --
-- Those that hold memories, if they are sensitive ones alone.
SELECT namespace FROM namespace AS n
WHERE memories > 0 OR EXISTS (SELECT 1 FROM memory AS m WHERE m.namespace = n.namespace) ORDER BY namespace;

-- lexical_insert --
-- FTS5 inverts it.
INSERT INTO lexical (rowid, tokens) VALUES (:row, :tokens);

-- lexical_replace --
-- A memory that was read anew.
UPDATE lexical SET tokens = :tokens WHERE rowid = :row;

-- lexical_forget --
-- No posting outlives its text.
DELETE FROM lexical WHERE rowid = :row;

-- lexical_matches --
-- FTS5's inverted list of one token: a memory as often as it has the token, and each time its length. As two long values,
-- for a row each would take three times as long to read. The cross join keeps FTS5 first.
SELECT group_concat(t.doc & 1099511627775), group_concat(m.length)
FROM lexical_term AS t CROSS JOIN memory AS m ON m.row = t.doc WHERE t.term = :token;

-- lexical_segments --
-- How many pieces the inverted index lies in.
SELECT count(DISTINCT segid) FROM lexical_idx;

-- lexical_optimize --
-- All pieces become one, and what was forgotten leaves the index for good.
INSERT INTO lexical (lexical) VALUES ('optimize');
