-- migration_lock --
-- Take the lock of migrations, so that processes migrate one after the other.
SELECT pg_advisory_lock(hashtextextended('semmem migrations', 0));

-- migration_unlock --
-- Release the lock explicitly, because the connection may be pooled.
SELECT pg_advisory_unlock(hashtextextended('semmem migrations', 0));

-- migration_exists --
-- Return the table of migrations, NULL in a database without semmem, the version of pgvector, and the server's process.
SELECT to_regclass('semmem.migration'), (SELECT extversion FROM pg_extension WHERE extname = 'vector'), pg_backend_pid();

-- vector_versions --
-- Return the version of pgvector in this database and the one that the server offers; NULL where it is missing.
SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
       (SELECT default_version FROM pg_available_extensions WHERE name = 'vector');

-- vector_exists --
-- Return pgvector's type in the schema public; NULL when it is in another schema.
SELECT to_regtype('public.vector');

-- migration_table --
-- Create the record of migrations.
CREATE TABLE IF NOT EXISTS semmem.migration (
    number     integer PRIMARY KEY,
    name       text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- migration_number --
-- Return the number of the last migration applied, which is the schema's number.
SELECT coalesce(max(number), 0) FROM semmem.migration;

-- migration_record --
-- Record a migration, in the transaction of the migration itself.
INSERT INTO semmem.migration (number, name) VALUES (%(number)s, %(name)s);

-- meta_get --
-- Return a fact about the whole store, such as the embedder that filled it.
SELECT value FROM meta WHERE key = %(key)s;

-- meta_set --
-- Store a fact about the whole store, such as how far a rebuild is.
INSERT INTO meta (key, value) VALUES (%(key)s, %(value)s) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- meta_drop --
-- Delete a fact, such as the progress of a finished rebuild.
DELETE FROM meta WHERE key = %(key)s;

-- database_id --
-- Return the id of this database, outside of which its sequence numbers mean nothing.
SELECT d.oid::text || ' ' || s.system_identifier FROM pg_database d, pg_control_system() s
WHERE d.datname = current_database();

-- server_started --
-- Return the start time of the server, which differs between two servers with the same files, one being a copy.
SELECT pg_postmaster_start_time();

-- meta_claim --
-- Store a fact unless it exists; the first writer decides.
INSERT INTO meta (key, value) VALUES (%(key)s, %(value)s) ON CONFLICT (key) DO NOTHING;

-- meta_backup --
-- Note that a backup was written now.
INSERT INTO meta (key, value) VALUES ('backup', jsonb_build_object('at', now()))
ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- meta_release --
-- Forget the embedder of a store without vectors, under the lock of the vectors.
DELETE FROM meta WHERE key = 'embedder' AND NOT EXISTS (SELECT 1 FROM embedding);

-- session --
-- Set up a connection: semmem's schema first, no compilation of small queries, no parallel workers, and no new plan for
-- every long list of keys. Where Citus distributes the tables, it finds the node of a namespace when it plans. Where
-- policies bind this user, the session begins with all namespaces. Returns the way of planning, and whether they do.
SELECT set_config('plan_cache_mode', CASE WHEN EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus')
                                          THEN 'force_custom_plan' ELSE 'force_generic_plan' END, false),
       set_config('semmem.namespaces', 'all', false),
       coalesce((SELECT row_security_active(c.oid) FROM pg_class c
                 WHERE c.relnamespace = to_regnamespace('semmem') AND c.relname = 'memory'), false);
SET search_path TO semmem, public; SET jit TO off; SET max_parallel_workers_per_gather TO 0; SET TimeZone TO 'UTC';
SET hnsw.ef_search TO 200; SET hnsw.iterative_scan TO relaxed_order; SET hnsw.max_scan_tuples TO 200000;

-- by_index --
-- Plan to read by an index in the rest of this transaction. A plan serves a connection until the server has counted the
-- table anew: one that was made while the table was empty reads all of it, for each key, when it has grown. A plan that the
-- connection has made before stays, so what a writer also asks outside its transaction it asks by plan_for_these.
SET LOCAL enable_seqscan TO off;

-- <timeline> --
-- The timeline of the server: another one after it was restored, or a standby has taken its place.
('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int

-- transaction_id --
-- Return the number of this transaction, by which its end can be asked for later, and the timeline.
SELECT pg_current_xact_id()::text, <timeline>;

-- transaction_status --
-- Return how a transaction of that timeline ended: committed, aborted or in progress; NULL where the server no longer
-- knows it; and the present timeline.
SELECT CASE WHEN <timeline> = %(timeline)s::int THEN pg_xact_status(%(id)s::xid8) END, <timeline>;

-- log_end --
-- Return where the write-ahead log ends: behind all that is committed, also what is not on disk yet. At the beginning of a
-- segment or a page it is behind the header, of 40 or 24 bytes, which no standby has replayed before the next record.
SELECT (l.lsn - CASE WHEN l.place % pg_size_bytes(current_setting('wal_segment_size')) = 40 THEN 40
                     WHEN l.place % current_setting('wal_block_size')::bigint = 24 THEN 24 ELSE 0 END)::text,
       ('x' || left(pg_walfile_name(l.lsn), 8))::bit(32)::int AS timeline
FROM (SELECT w.lsn, w.lsn - '0/0'::pg_lsn AS place FROM pg_current_wal_insert_lsn() AS w(lsn)) l;

-- standby_has --
-- Return whether this server is a standby that has replayed the log up to a position, in its timeline: a standby of a
-- server that was promoted is behind that position too, and has another log. After a change it says so with some delay.
SELECT coalesce(pg_is_in_recovery() AND pg_last_wal_replay_lsn() >= %(position)s::pg_lsn
                AND greatest(c.timeline_id, r.min_recovery_end_timeline) = %(timeline)s, false)
FROM pg_control_checkpoint() c, pg_control_recovery() r;

-- standby_of --
-- Return whether this server is a standby, and which server's and database's: a standby has the identifier of its primary.
SELECT pg_is_in_recovery(), system_identifier, current_database()::text FROM pg_control_system();

-- standby_reads --
-- Return whether this user may read the tables of semmem, and its name; tables that a standby has not yet are no obstacle.
SELECT coalesce(has_schema_privilege(to_regnamespace('semmem'), 'USAGE'), true)
       AND coalesce(bool_and(has_table_privilege(c.oid, 'SELECT')), true), current_user::text
FROM pg_class c WHERE c.relnamespace = to_regnamespace('semmem') AND c.relkind IN ('r', 'p');

-- session_get --
-- Return the value of a session setting, in a form that can be set again.
SELECT current_setting(%(name)s);

-- session_mark --
-- Return the mark of a session; NULL for one that has none.
SELECT current_setting('semmem.mark', true);

-- session_set --
-- Change a session setting, for statements that cannot run in a transaction.
SELECT set_config(%(name)s, %(value)s, false);
