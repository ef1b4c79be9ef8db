-- saved_place --
-- Return the folder of the server's files and the file by which it can be told from others; no row in another database
-- than that of the embedded server, for which nothing is saved. For a superuser alone.
SELECT current_setting('data_directory'), pg_read_file('postmaster.pid') WHERE current_database() = 'semmem';

-- saved_here --
-- Return whether this is the database of an embedded server, which alone saves models: that one listens to no network.
SELECT current_database() = 'semmem' AND current_setting('listen_addresses') = '';

-- saved_names --
-- Return the names of the files of all saved models, and of those that are being written.
SELECT name #>> '{}' FROM meta, jsonb_path_query(value, '$[*]') AS name
WHERE starts_with(key, 'saved ') AND jsonb_typeof(name) = 'string';

-- saved_alone --
-- Lock out others who save until saved_done or the end of the session, if nobody saves now.
SELECT pg_try_advisory_lock(hashtextextended('semmem saved', 0));

-- saved_done --
-- Let others save again.
SELECT pg_advisory_unlock(hashtextextended('semmem saved', 0));

-- saved_own --
-- Lock the namespace's row as writers do, which erase under that lock; no row where the namespace is being dropped or
-- moved.
SELECT FROM namespace WHERE namespace = %(namespace)s AND dropping IS NULL AND state IS NULL FOR NO KEY UPDATE;

-- saved_end --
-- Put the name of the file that was being written in the place of the former one; no row where somebody has erased it.
UPDATE meta SET value = value -> 1 WHERE key = %(key)s AND value -> 1 = to_jsonb(%(name)s::text);

-- saved_left --
-- Forget the files that are being written, while nobody else saves, unless somebody is about to.
WITH coming AS (
    SELECT key FROM meta WHERE starts_with(key, 'saved ') AND jsonb_typeof(value) = 'array' FOR UPDATE SKIP LOCKED
), first AS (
    DELETE FROM meta WHERE key = ANY(ARRAY(SELECT key FROM coming)) AND value -> 0 = 'null'
)
UPDATE meta SET value = value -> 0 WHERE key = ANY(ARRAY(SELECT key FROM coming)) AND value -> 0 <> 'null';

-- saved_drop --
-- Forget the name of one file, unless somebody is about to.
DELETE FROM meta WHERE key = ANY(ARRAY(
    SELECT key FROM meta WHERE starts_with(key, 'saved ') AND value @> to_jsonb(%(name)s::text)
    FOR UPDATE SKIP LOCKED));

-- saved_clear --
-- Forget the names of all files.
DELETE FROM meta WHERE starts_with(key, 'saved ');
