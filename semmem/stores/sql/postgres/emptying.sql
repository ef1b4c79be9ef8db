-- drop_begin --
-- Mark a namespace as being dropped up to its last row id; later writers have higher ones. A namespace that never had a
-- memory, because only its limits were set, has nothing to drop.
UPDATE namespace SET dropping = ords, revision = revision + 1 WHERE namespace = %(namespace)s AND ords > 0 RETURNING ords;

-- drop_count --
-- Count the memories that a drop removes.
SELECT count(*) FROM memory WHERE namespace = %(namespace)s AND part = 0 AND ord <= %(upto)s;

-- drop_said --
-- Record the drop for readers of changes, who must forget their copy of the namespace. The id is empty.
INSERT INTO change (namespace, number, id, kind)
SELECT namespace, changes, '', 'dropped' FROM namespace WHERE namespace = %(namespace)s;

-- drop_began --
-- The same at the begin of a drop, under the lock of the namespace: at a time that is not before any version that goes, also
-- where the clock was set back.
INSERT INTO change (namespace, number, id, kind, at)
SELECT namespace, changes, '', 'dropped', greatest(clock_timestamp(), (
    SELECT max(h.changed_at) FROM history h WHERE h.namespace = %(namespace)s))
FROM namespace WHERE namespace = %(namespace)s;

-- drop_select --
-- Select some thousands of memories to drop, locked in the common order.
SELECT ord FROM memory WHERE namespace = %(namespace)s AND ord <= %(upto)s ORDER BY id, part LIMIT %(limit)s FOR UPDATE;

-- drop_forward --
-- Delete the forward entries of dropped memories; returns their number and length, for the counts of the namespace.
WITH gone AS (DELETE FROM forward WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s) RETURNING length)
SELECT count(*)::bigint, coalesce(sum(length), 0)::bigint FROM gone;

-- drop_posting --
-- Delete segments that hold dropped memories only.
DELETE FROM posting WHERE namespace = %(namespace)s AND (key, segment) IN (
    SELECT key, segment FROM posting WHERE namespace = %(namespace)s AND high <= %(upto)s LIMIT %(limit)s);

-- drop_mixed --
-- List the segments that also hold other memories.
SELECT key, segment, entries FROM posting
WHERE namespace = %(namespace)s AND low <= %(upto)s AND high > %(upto)s ORDER BY key, segment LIMIT %(limit)s FOR UPDATE;

-- drop_singletons_left --
-- Return whether rows of lone_posting hold dropped memories.
SELECT EXISTS (SELECT FROM lone_posting WHERE namespace = %(namespace)s AND low <= %(upto)s);

-- drop_singletons --
-- Remove dropped memories from some rows of lone_posting.
WITH taken AS (
    DELETE FROM lone_posting WHERE namespace = %(namespace)s AND first IN (
        SELECT first FROM lone_posting WHERE namespace = %(namespace)s AND low <= %(upto)s LIMIT %(limit)s)
    RETURNING first, keys, kinds, entries, names
), held AS (
    SELECT t.first, u.key, u.name, u.at, get_byte(t.kinds, u.at::int - 1) AS kind,
           substr(t.entries, 12 * u.at::int - 11, 12) AS entry
    FROM taken t CROSS JOIN LATERAL unnest(t.keys, t.names) WITH ORDINALITY AS u(key, name, at)
), numbered AS (
    SELECT *, get_byte(entry, 0) | (get_byte(entry, 1) << 8) | (get_byte(entry, 2) << 16)
              | (get_byte(entry, 3)::bigint << 24) AS ord
    FROM held
)
INSERT INTO lone_posting (namespace, first, low, high, keys, kinds, entries, names)
SELECT %(namespace)s, first, min(ord), max(ord), array_agg(key ORDER BY at),
       string_agg(set_byte('\x00'::bytea, 0, kind), ''::bytea ORDER BY at),
       string_agg(entry, ''::bytea ORDER BY at), array_agg(name ORDER BY at)
FROM numbered WHERE ord > %(upto)s GROUP BY first;

-- drop_setting --
-- Delete the settings of the namespace; a new one of its name begins with the program's settings.
DELETE FROM namespace_setting WHERE namespace = %(namespace)s;

-- drop_change --
-- Delete the changes before the drop, which mean nothing after it.
DELETE FROM change WHERE namespace = %(namespace)s AND (number, id) IN (
    SELECT c.number, c.id FROM change c WHERE c.namespace = %(namespace)s AND c.number < (
        SELECT max(number) FROM change WHERE namespace = %(namespace)s AND kind = 'dropped') LIMIT %(limit)s);

-- drop_history --
-- Delete the versions from before the drop, also of an id that is used anew since, and those that no memory has. What was
-- stored after the drop began, and forgotten, can be restored.
DELETE FROM history WHERE namespace = %(namespace)s AND (id, version) IN (
    SELECT h.id, h.version FROM history h WHERE h.namespace = %(namespace)s
      AND (h.changed_at <= coalesce((
               SELECT max(c.at) FROM change c WHERE c.namespace = %(namespace)s AND c.kind = 'dropped'), 'infinity')
           OR h.forgotten_at IS NULL AND NOT EXISTS (
               SELECT FROM memory m WHERE m.namespace = %(namespace)s AND m.id = h.id)) LIMIT %(limit)s);

-- drop_link --
-- Delete the links of memories of which nothing is kept.
DELETE FROM link WHERE namespace = %(namespace)s AND (from_id, type, to_id) IN (
    SELECT l.from_id, l.type, l.to_id FROM link l WHERE l.namespace = %(namespace)s AND (
        NOT EXISTS (SELECT FROM memory m WHERE m.namespace = %(namespace)s AND m.id = l.from_id)
        AND NOT EXISTS (SELECT FROM history h WHERE h.namespace = %(namespace)s AND h.id = l.from_id)
        OR NOT EXISTS (SELECT FROM memory m WHERE m.namespace = %(namespace)s AND m.id = l.to_id)
        AND NOT EXISTS (SELECT FROM history h WHERE h.namespace = %(namespace)s AND h.id = l.to_id)) LIMIT %(limit)s);

-- drop_likeness --
-- List dropped memories with likeness keys.
SELECT l.ord FROM likeness l WHERE l.namespace = %(namespace)s AND NOT EXISTS (
    SELECT FROM memory m WHERE m.namespace = %(namespace)s AND m.ord = l.ord) LIMIT %(limit)s;

-- drop_uncompared --
-- Delete the notes of what was to be compared.
DELETE FROM uncompared WHERE namespace = %(namespace)s AND ord IN (
    SELECT u.ord FROM uncompared u WHERE u.namespace = %(namespace)s AND NOT EXISTS (
        SELECT FROM memory m WHERE m.namespace = %(namespace)s AND m.ord = u.ord) LIMIT %(limit)s);

-- drop_recall_found --
-- Return the logged recalls that found memories of a namespace.
SELECT recall_id FROM recall_log WHERE namespace = %(namespace)s AND hits <> '{}'::jsonb;

-- drop_recalls --
-- Delete logged recalls in every namespace: each row has the question, which may quote a memory.
DELETE FROM recall_log WHERE recall_id = ANY(%(recall_ids)s::text[]);

-- drop_recall_log --
-- Delete the other logged recalls of a namespace that is dropped.
DELETE FROM recall_log WHERE namespace = %(namespace)s;

-- drop_end --
-- Record that the drop of a namespace is complete.
UPDATE namespace SET dropping = NULL WHERE namespace = %(namespace)s AND dropping <= %(upto)s;

-- drop_unfinished --
-- List interrupted drops, which maintain continues.
SELECT namespace, dropping FROM namespace WHERE dropping IS NOT NULL ORDER BY namespace;

-- scrub_lock --
-- Lock out others who would rewrite the tables, for as long as the connection lives.
SELECT pg_try_advisory_lock(hashtextextended('semmem scrub', 0));

-- scrub_unlock --
-- Release the lock explicitly, because the connection is pooled.
SELECT pg_advisory_unlock(hashtextextended('semmem scrub', 0));

-- scrub_mark --
-- Return the number of a transaction that begins after all that was committed, as age() compares it.
SELECT pg_current_xact_id()::xid::text;

-- scrub_snapshots --
-- Return whether somebody else may still see a state of the database that is earlier than that transaction: a transaction
-- that was open then, of any user and any database, for the snapshot of a rewriting waits for it; a reader here; a standby.
-- A vacuum, which may go on for long, keeps no rows from a rewriting.
SELECT age(pg_snapshot_xmin(pg_current_snapshot())::xid) > age(%(mark)s::text::xid)
OR EXISTS (
    SELECT FROM pg_stat_activity WHERE (datname = current_database() OR datname IS NULL) AND pid <> pg_backend_pid()
    AND age(backend_xmin) > age(%(mark)s::text::xid) AND pid NOT IN (SELECT v.pid FROM pg_stat_progress_vacuum v))
OR EXISTS (SELECT FROM pg_replication_slots WHERE age(xmin) > age(%(mark)s::text::xid));

-- scrub_kept --
-- Return whether a table that was just rewritten may still have rows that were deleted before that transaction: it is frozen
-- up to the earliest state that somebody might see, whoever that was.
SELECT age(relfrozenxid) > age(%(mark)s::text::xid) FROM pg_class WHERE oid = format('semmem.%%I', %(table)s::text)::regclass;

-- scrub_tables --
-- List every table of semmem with its file, so that a table of a later schema is rewritten too; large ones first, so that two
-- connections end at about the same time.
SELECT c.relname::text, c.relfilenode::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'semmem' AND c.relkind = 'r' ORDER BY pg_total_relation_size(c.oid) DESC, 1;

-- scrub_file --
-- Return the file of a table, which changes when the table is rewritten.
SELECT pg_relation_filenode(format('semmem.%%I', %(table)s::text)::regclass);

-- scrub_statistics --
-- Delete the planner's samples of forgotten values, which an empty table would keep.
SELECT pg_clear_attribute_stats(schemaname::text, tablename::text, attname::text, inherited)
FROM pg_stats WHERE schemaname = 'semmem';

-- scrub_statistics_old --
-- Do the same on a server older than PostgreSQL 18.
DELETE FROM pg_statistic s USING pg_class c, pg_namespace n
WHERE c.oid = s.starelid AND n.oid = c.relnamespace AND n.nspname = 'semmem';

-- scrub_samples --
-- Rewrite the table of the planner's samples.
VACUUM (FULL) pg_catalog.pg_statistic;

-- scrub_log --
-- Begin a new segment of the log (WAL); earlier segments are not needed after the next checkpoint.
SELECT pg_switch_wal();

-- scrub_checkpoint --
-- Write the tables to their files, and remove earlier segments of the log.
CHECKPOINT;
