-- migration_lock --
-- Processes that start together migrate one after the other.
SELECT pg_advisory_lock(hashtextextended('semmem migrations', 0));

-- migration_unlock --
-- Given back explicitly: the connection may be pooled.
SELECT pg_advisory_unlock(hashtextextended('semmem migrations', 0));

-- migration_exists --
-- NULL in a database that semmem has not seen yet; beside it the version of pgvector, if it is there.
SELECT to_regclass('semmem.migration'), (SELECT extversion FROM pg_extension WHERE extname = 'vector');

-- vector_versions --
-- pgvector as it is in this database, and as the server would make it; NULL where it is not.
SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
       (SELECT default_version FROM pg_available_extensions WHERE name = 'vector');

-- vector_exists --
-- NULL when pgvector's type is not where our statements look for it.
SELECT to_regtype('public.vector');

-- migration_table --
-- What was applied and when.
CREATE TABLE IF NOT EXISTS semmem.migration (
    number     integer PRIMARY KEY,
    name       text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- migration_number --
-- The schema is as new as the last migration applied.
SELECT coalesce(max(number), 0) FROM semmem.migration;

-- migration_record --
-- In the same transaction as the migration itself.
INSERT INTO semmem.migration (number, name) VALUES (%(number)s, %(name)s);

-- meta_get --
-- Facts about the whole store, such as the embedder that filled it.
SELECT value FROM meta WHERE key = %(key)s;

-- meta_set --
-- What is known of the whole store changes, such as how far a rebuild has come.
INSERT INTO meta (key, value) VALUES (%(key)s, %(value)s) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- meta_drop --
-- What a finished rebuild leaves behind.
DELETE FROM meta WHERE key = %(key)s;

-- database_id --
-- What a moment of this database means nothing outside of.
SELECT d.oid::text || ' ' || s.system_identifier FROM pg_database d, pg_control_system() s
WHERE d.datname = current_database();

-- server_started --
-- Of two servers with the same files, one of which is a copy, this differs.
SELECT pg_postmaster_start_time();

-- meta_claim --
-- The first writer decides; everybody reads what was decided.
INSERT INTO meta (key, value) VALUES (%(key)s, %(value)s) ON CONFLICT (key) DO NOTHING;

-- meta_release --
-- Under the lock of the vectors, so that nobody is about to add one.
DELETE FROM meta WHERE key = 'embedder' AND NOT EXISTS (SELECT 1 FROM embedding);

-- session --
-- Every connection: our schema first, no compilation of small queries, no parallel workers for them, and no planning
-- anew for every long list of keys. Where Citus spreads the tables over nodes, it finds the node of a namespace as it plans.
SET search_path TO semmem, public; SET jit TO off; SET max_parallel_workers_per_gather TO 0; SET TimeZone TO 'UTC';
SELECT set_config('plan_cache_mode', CASE WHEN EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus')
                                          THEN 'force_custom_plan' ELSE 'force_generic_plan' END, false);
SET hnsw.ef_search TO 200; SET hnsw.iterative_scan TO relaxed_order; SET hnsw.max_scan_tuples TO 200000;

-- session_get --
-- What a setting is now, in a form that can be set again.
SELECT current_setting(%(name)s);

-- session_set --
-- Until it is set again: for statements that no transaction may hold.
SELECT set_config(%(name)s, %(value)s, false);
