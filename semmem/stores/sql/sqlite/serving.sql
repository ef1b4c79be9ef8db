-- key_list --
-- Return every key, by name.
SELECT key FROM access_key ORDER BY json_extract(key, '$.name'), id;

-- key_clear --
-- Delete every key, before the changed ones are stored in the same transaction.
DELETE FROM access_key;

-- key_add --
-- Store a key.
INSERT INTO access_key (id, key) VALUES (:id, :key);

-- answered_get --
-- Return the answer that is kept for an Idempotency-Key.
SELECT request, answer, unscrubbed FROM answered WHERE key = :key AND at > :answers_before;

-- answered_set --
-- Keep an answer, in the transaction of what it answers.
INSERT INTO answered (key, request, answer, unscrubbed, at) VALUES (:key, :request, :answer, :unscrubbed, :now)
ON CONFLICT (key) DO UPDATE SET request = excluded.request, answer = excluded.answer,
    unscrubbed = excluded.unscrubbed, at = excluded.at;

-- answered_few --
-- Delete two answers whose time is over for each that is kept, so that the table stays small without maintain.
DELETE FROM answered WHERE key IN (
    SELECT key FROM answered WHERE at < :answers_before AND NOT unscrubbed ORDER BY at LIMIT 2);

-- answered_scrubbed --
-- Note that the file was rewritten for a hard forget.
UPDATE answered SET unscrubbed = 0 WHERE key = :key;

-- sweep_answered_due --
-- Return a row where answers are to go; they are of no namespace.
SELECT '' WHERE EXISTS (SELECT 1 FROM answered WHERE at < :answers_before);

-- sweep_answered --
-- Delete some answers whose time is over.
DELETE FROM answered WHERE key IN (SELECT key FROM answered WHERE at < :answers_before ORDER BY at LIMIT :limit);
