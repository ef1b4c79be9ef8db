-- drop_begin --
-- From here on the namespace is being dropped, up to its last number; who writes on has higher ones. One that has had no
-- memory yet, for somebody has only said what it may hold, has nothing to drop.
UPDATE namespace SET dropping = ords WHERE namespace = %(namespace)s AND ords > 0 RETURNING ords;

-- drop_count --
-- How many memories go.
SELECT count(*) FROM memory WHERE namespace = %(namespace)s AND part = 0 AND ord <= %(upto)s;

-- drop_said --
-- For those who keep a copy: what they have of the namespace is forgotten. No id is empty but this one.
INSERT INTO change (namespace, number, id, kind)
SELECT namespace, changes, '', 'dropped' FROM namespace WHERE namespace = %(namespace)s;

-- drop_select --
-- Some thousands at a time, locked in the order in which others lock.
SELECT ord FROM memory WHERE namespace = %(namespace)s AND ord <= %(upto)s ORDER BY id, part LIMIT %(limit)s FOR UPDATE;

-- drop_forward --
-- What was indexed goes, and its length with it.
WITH gone AS (DELETE FROM forward WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s) RETURNING length)
SELECT count(*)::bigint, coalesce(sum(length), 0)::bigint FROM gone;

-- drop_note --
-- What others remembered meanwhile is to be read again, for all names go that the forgotten memories were about.
INSERT INTO alias_change (namespace, number, keys, waiting)
SELECT n.namespace, n.changes, about.keys, about.keys
FROM namespace n CROSS JOIN (
    SELECT array_agg(DISTINCT key) AS keys FROM (
        SELECT key FROM posting WHERE namespace = %(namespace)s AND subjects > 0 AND low <= %(upto)s
        UNION ALL
        SELECT u.key FROM lone_posting l CROSS JOIN LATERAL unnest(l.keys) WITH ORDINALITY AS u(key, at)
        WHERE l.namespace = %(namespace)s AND l.low <= %(upto)s AND get_byte(l.entries, 12 * u.at::int - 3) > 0
        ) AS held) AS about
WHERE n.namespace = %(namespace)s AND about.keys IS NOT NULL;

-- drop_posting --
-- Segments of forgotten memories alone, which nobody reads for a hit any more.
DELETE FROM posting WHERE namespace = %(namespace)s AND (key, segment) IN (
    SELECT key, segment FROM posting WHERE namespace = %(namespace)s AND high <= %(upto)s LIMIT %(limit)s);

-- drop_mixed --
-- Segments that others have been joined to meanwhile.
SELECT key, segment, entries FROM posting
WHERE namespace = %(namespace)s AND low <= %(upto)s AND high > %(upto)s ORDER BY key, segment LIMIT %(limit)s FOR UPDATE;

-- drop_lone --
-- What was forgotten goes out of the rows of keys of one memory; returns how many rows held some of it.
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
), stays AS (
    INSERT INTO lone_posting (namespace, first, low, high, keys, kinds, entries, names)
    SELECT %(namespace)s, first, min(ord), max(ord), array_agg(key ORDER BY at),
           string_agg(set_byte('\x00'::bytea, 0, kind), ''::bytea ORDER BY at),
           string_agg(entry, ''::bytea ORDER BY at), array_agg(name ORDER BY at)
    FROM numbered WHERE ord > %(upto)s GROUP BY first
)
SELECT count(*) FROM taken;

-- drop_setting --
-- A namespace that comes again begins with the settings of the program.
DELETE FROM namespace_setting WHERE namespace = %(namespace)s;

-- drop_change --
-- What led to this end means nothing behind it.
DELETE FROM change WHERE namespace = %(namespace)s AND (number, id) IN (
    SELECT c.number, c.id FROM change c WHERE c.namespace = %(namespace)s AND c.number < (
        SELECT max(number) FROM change WHERE namespace = %(namespace)s AND kind = 'dropped') LIMIT %(limit)s);

-- drop_history --
-- Earlier versions of what is not there any more.
DELETE FROM history WHERE namespace = %(namespace)s AND (id, version) IN (
    SELECT h.id, h.version FROM history h WHERE h.namespace = %(namespace)s AND NOT EXISTS (
        SELECT FROM memory m WHERE m.namespace = %(namespace)s AND m.id = h.id) LIMIT %(limit)s);

-- drop_link --
-- Ties of what is not there any more.
DELETE FROM link WHERE namespace = %(namespace)s AND (from_id, type, to_id) IN (
    SELECT l.from_id, l.type, l.to_id FROM link l WHERE l.namespace = %(namespace)s AND (
        NOT EXISTS (SELECT FROM memory m WHERE m.namespace = %(namespace)s AND m.id = l.from_id)
        OR NOT EXISTS (SELECT FROM memory m WHERE m.namespace = %(namespace)s AND m.id = l.to_id)) LIMIT %(limit)s);

-- drop_likeness --
-- What was alike in memories that are not there any more.
WITH gone AS (
    DELETE FROM likeness WHERE namespace = %(namespace)s AND ord IN (
        SELECT l.ord FROM likeness l WHERE l.namespace = %(namespace)s AND NOT EXISTS (
            SELECT FROM memory m WHERE m.namespace = %(namespace)s AND m.ord = l.ord) LIMIT %(limit)s)
    RETURNING ord, keys
), <likeness_gone>
SELECT FROM gone;

-- drop_judgement --
-- What was said of memories that are not there any more.
DELETE FROM judgement WHERE namespace = %(namespace)s AND (recall_id, id) IN (
    SELECT j.recall_id, j.id FROM judgement j WHERE j.namespace = %(namespace)s AND NOT EXISTS (
        SELECT FROM memory m WHERE m.namespace = %(namespace)s AND m.id = j.id) LIMIT %(limit)s);

-- drop_recall_log --
-- Questions asked before the namespace went.
DELETE FROM recall_log WHERE namespace = %(namespace)s AND recall_id IN (
    SELECT recall_id FROM recall_log WHERE namespace = %(namespace)s AND at < (
        SELECT max(at) FROM change WHERE namespace = %(namespace)s AND kind = 'dropped') LIMIT %(limit)s);

-- drop_end --
-- Nothing of it is left.
UPDATE namespace SET dropping = NULL WHERE namespace = %(namespace)s AND dropping <= %(upto)s;

-- drop_unfinished --
-- What a crash has interrupted is gone on with.
SELECT namespace, dropping FROM namespace WHERE dropping IS NOT NULL ORDER BY namespace;

-- scrub_tables --
-- Every table of ours, so that one that a later schema adds is rewritten too; the small ones first.
SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'semmem' AND c.relkind = 'r' ORDER BY pg_relation_size(c.oid), 1;

-- scrub_file --
-- Another one after the table was rewritten.
SELECT pg_relation_filenode(format('semmem.%%I', %(table)s::text)::regclass);

-- scrub_statistics --
-- Samples of what was forgotten, which the planner has no more use for: an empty table would keep its own.
SELECT pg_clear_attribute_stats(schemaname::text, tablename::text, attname::text, inherited)
FROM pg_stats WHERE schemaname = 'semmem';

-- scrub_statistics_old --
-- The same on a server older than PostgreSQL 18.
DELETE FROM pg_statistic s USING pg_class c, pg_namespace n
WHERE c.oid = s.starelid AND n.oid = c.relnamespace AND n.nspname = 'semmem';

-- scrub_samples --
-- The samples themselves stood in this table.
VACUUM (FULL) pg_catalog.pg_statistic;

-- scrub_log --
-- What was written before stands in segments of the log (WAL) that are not needed behind the next checkpoint.
SELECT pg_switch_wal();

-- scrub_checkpoint --
-- The tables are in their files, and the segments before are removed.
CHECKPOINT;
