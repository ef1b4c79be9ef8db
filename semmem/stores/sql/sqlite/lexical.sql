-- tally_claim --
-- The number of a namespace is given with its first memory.
INSERT INTO tally (namespace) VALUES (:namespace) ON CONFLICT (namespace) DO NOTHING;

-- tally_of --
-- Number, memories and length of some namespaces.
SELECT namespace, number, memories, length FROM tally WHERE namespace IN (SELECT value FROM json_each(:namespaces));

-- tally_add --
-- What came, or (negative) went.
UPDATE tally SET memories = memories + :memories, length = length + :length WHERE namespace = :namespace;

-- tally_empty --
-- Of an empty namespace no name is left either.
DELETE FROM tally WHERE namespace = :namespace AND memories = 0;

-- namespaces --
-- Those that hold memories.
SELECT namespace FROM tally ORDER BY namespace;

-- lexical_insert --
-- FTS5 inverts it.
INSERT INTO lexical (rowid, tokens) VALUES (:ord, :tokens);

-- lexical_replace --
-- A memory that was read anew.
UPDATE lexical SET tokens = :tokens WHERE rowid = :ord;

-- lexical_forget --
-- No posting outlives its text.
DELETE FROM lexical WHERE rowid = :ord;

-- lexical_matches --
-- FTS5's inverted list of one token: a memory as often as it has the token, and each time its length. As two long values,
-- for a row each would take three times as long to read. The cross join keeps FTS5 first.
SELECT group_concat(t.doc), group_concat(m.length)
FROM lexical_term AS t CROSS JOIN memory AS m ON m.ord = t.doc WHERE t.term = :token;

-- lexical_segments --
-- How many pieces the inverted index lies in.
SELECT count(DISTINCT segid) FROM lexical_idx;

-- lexical_optimize --
-- All pieces become one, and what was forgotten leaves the index for good.
INSERT INTO lexical (lexical) VALUES ('optimize');
