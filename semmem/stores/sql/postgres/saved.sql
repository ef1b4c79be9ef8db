-- saved_place --
-- Return the folder of the server's files and the file by which it can be told from others; no row in another database
-- than that of the embedded server, for which nothing is saved. For a superuser alone.
SELECT current_setting('data_directory'), pg_read_file('postmaster.pid') WHERE current_database() = 'semmem';

-- saved_here --
-- Return whether this is the database of an embedded server, which alone saves models: that one listens to no network.
SELECT current_database() = 'semmem' AND current_setting('listen_addresses') = '';

-- saved_names --
-- Return the names of the files of all saved models.
SELECT value #>> '{}' FROM meta WHERE starts_with(key, 'saved ');

-- saved_alone --
-- Lock out others who save until the commit, if nobody saves now.
SELECT pg_try_advisory_xact_lock(hashtextextended('semmem saved', 0));

-- saved_own --
-- Lock the namespace's row as writers do, which erase under that lock; no row where somebody has it, or the namespace is
-- being dropped or moved.
SELECT FROM namespace WHERE namespace = %(namespace)s AND dropping IS NULL AND state IS NULL
FOR NO KEY UPDATE SKIP LOCKED;

-- saved_drop --
-- Forget the name of one file, unless somebody is about to.
DELETE FROM meta WHERE key = ANY(ARRAY(
    SELECT key FROM meta WHERE starts_with(key, 'saved ') AND value #>> '{}' = %(name)s FOR UPDATE SKIP LOCKED));

-- saved_clear --
-- Forget the names of all files.
DELETE FROM meta WHERE starts_with(key, 'saved ');
