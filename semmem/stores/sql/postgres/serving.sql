-- key_list --
-- Return every key, by name.
SELECT key FROM access_key ORDER BY key->>'name', id;

-- key_lock --
-- Let nobody else change the keys until the commit; readers go on.
LOCK TABLE access_key IN SHARE ROW EXCLUSIVE MODE;

-- key_clear --
-- Delete every key, before the changed ones are stored in the same transaction.
DELETE FROM access_key;

-- key_add --
-- Store a key.
INSERT INTO access_key (id, key) VALUES (%(id)s, %(key)s);

-- answered_lock --
-- Claim an Idempotency-Key until the end of this transaction, also that of a process that is killed; false where
-- another one has it.
SELECT pg_try_advisory_xact_lock(hashtextextended('semmem answered ' || encode(%(key)s, 'hex'), 0));

-- answered_hold --
-- Claim an Idempotency-Key as answered_lock does, against that too, until the end of this session, which may be idle for
-- as long as the work lasts.
SELECT pg_try_advisory_lock(hashtextextended('semmem answered ' || encode(%(key)s, 'hex'), 0)),
       set_config('idle_session_timeout', '0', false);

-- answered_patience --
-- A verb may compute for minutes between two statements.
SET LOCAL idle_in_transaction_session_timeout TO 0;

-- answered_get --
-- Return the answer that is kept for an Idempotency-Key.
SELECT request, answer, unscrubbed FROM answered
WHERE key = %(key)s AND at > now() - make_interval(secs => 86400 * %(answers_days)s::float8);

-- answered_set --
-- Keep an answer; for some verbs in the transaction of what it answers.
INSERT INTO answered (key, request, answer, unscrubbed) VALUES (%(key)s, %(request)s, %(answer)s, %(unscrubbed)s)
ON CONFLICT (key) DO UPDATE SET request = excluded.request, answer = excluded.answer,
    unscrubbed = excluded.unscrubbed, at = excluded.at;

-- answered_few --
-- Delete two answers whose time is over for each that is kept, so that the table stays small without maintain.
-- ARRAY is computed once. As IN or USING a join may run the list again for each row, and FOR UPDATE then passes over the
-- rows that this statement has just deleted, so it picks others.
DELETE FROM answered WHERE key = ANY(ARRAY(
    SELECT key FROM answered WHERE at < now() - make_interval(secs => 86400 * %(answers_days)s::float8) AND NOT unscrubbed
    ORDER BY at, key LIMIT 2 FOR UPDATE SKIP LOCKED));

-- answered_scrubbed --
-- Note that the files were rewritten for a hard forget.
UPDATE answered SET unscrubbed = false WHERE key = %(key)s;

-- sweep_answered_due --
-- Return a row where answers are to go; they are of no namespace.
SELECT '' WHERE EXISTS (
    SELECT 1 FROM answered WHERE at < now() - make_interval(secs => 86400 * %(answers_days)s::float8));

-- sweep_answered --
-- Delete some answers whose time is over.
DELETE FROM answered WHERE key = ANY(ARRAY(
    SELECT key FROM answered WHERE at < now() - make_interval(secs => 86400 * %(answers_days)s::float8)
    ORDER BY at, key LIMIT %(limit)s FOR UPDATE SKIP LOCKED));

-- <rate_there> --
least(%(burst)s::float8, tokens + greatest(extract(epoch FROM now() - at)::float8, 0) * %(rate)s::float8)

-- <rate_at> --
-- The later one, but now where the time of the bucket is more than ten seconds ahead. Without CASE, in which Citus takes
-- no now().
greatest(now(), nullif(at, greatest(at, now() + interval '10 seconds')))

-- rate_take --
-- Take whole tokens from the bucket of a client, as many as are there and no more than asked for; return how many, and
-- how many are left. A time before that of the bucket is of a transaction that began earlier, or of a clock that was put
-- back: then the bucket is refilled from now on.
UPDATE rate_bucket SET granted = least(%(count)s::float8, floor(<rate_there>)),
    tokens = <rate_there> - least(%(count)s::float8, floor(<rate_there>)), at = <rate_at>
WHERE client = %(client)s RETURNING granted, tokens;

-- rate_begin --
-- Make the full bucket of a new client.
INSERT INTO rate_bucket (client, tokens, at) VALUES (%(client)s, %(burst)s, now()) ON CONFLICT (client) DO NOTHING;

-- rate_few --
-- Delete two buckets that nobody has used for a day for each new one, so that the table stays small without maintain.
DELETE FROM rate_bucket WHERE client = ANY(ARRAY(
    SELECT client FROM rate_bucket WHERE at < now() - interval '1 day'
    ORDER BY at, client LIMIT 2 FOR UPDATE SKIP LOCKED));
