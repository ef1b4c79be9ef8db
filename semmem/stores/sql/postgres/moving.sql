-- move_columns --
-- List every table with its columns and their place in the primary key, without generated columns. The audit stays where
-- it was written.
SELECT c.relname, a.attname, a.attcollation <> 0, array_position(k.conkey, a.attnum)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'semmem'
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype = 'p'
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname NOT IN ('migration', 'audit', 'rate_bucket')
  AND a.attgenerated = ''
ORDER BY c.relname, a.attnum;

-- move_snapshot --
-- Begin a snapshot that lasts as long as needed, without the server's limits for idle or long transactions.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL search_path TO semmem, public;
SET LOCAL statement_timeout TO 0; SET LOCAL idle_in_transaction_session_timeout TO 0; SET LOCAL transaction_timeout TO 0;

-- move_snapshot_old --
-- Do the same on a server older than PostgreSQL 17.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL search_path TO semmem, public;
SET LOCAL statement_timeout TO 0; SET LOCAL idle_in_transaction_session_timeout TO 0;

-- move_read --
-- Copy one range of a table out, in order, in PostgreSQL's binary format.
COPY (SELECT {columns} FROM {table} WHERE {range} ORDER BY {order}) TO STDOUT (FORMAT binary);

-- move_write --
-- Copy rows in; identity columns keep their numbers.
COPY {table} ({columns}) FROM STDIN (FORMAT binary);

-- move_end --
-- Return the last key of the next range.
SELECT {keys} FROM {table} WHERE {range} ORDER BY {order} OFFSET {skip} LIMIT 1;

-- move_holds --
-- Return whether a range has any row. It is read to its end: on a node, a scan that stops before keeps its page of the
-- index, on which VACUUM waits, until the next statement of the transaction comes to that node.
SELECT count(*) > 0 FROM {table} WHERE {range};

-- move_delete --
-- Delete a range whose rows differ from the source.
DELETE FROM {table} WHERE {range};

-- move_lock --
-- Let nobody else read or write the tables until the commit.
LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE;

-- move_clear --
-- Empty the tables of a store without memories.
TRUNCATE {tables};

-- move_alone --
-- Lock out other copies and restores into this store.
SELECT pg_try_advisory_lock(hashtextextended('semmem copy', 0));

-- move_done --
-- Release the lock explicitly, because the connection is pooled.
SELECT pg_advisory_unlock(hashtextextended('semmem copy', 0));

-- move_size --
-- Count the memories, to see whether the store is empty.
SELECT count(*) FROM semmem.memory WHERE part = 0;

-- move_kept --
-- Count softly forgotten memories: they can be restored, so a store that has some is not empty.
SELECT count(DISTINCT (namespace, id)) FROM semmem.history WHERE forgotten_at IS NOT NULL;

-- move_row_ids --
-- Return a hash of row id and namespace for each memory, to find what came and went since a snapshot.
SELECT coalesce(string_agg(int8send(hashtextextended(namespace, ord)), ''::bytea), ''::bytea) FROM semmem.memory
WHERE part = 0;

-- move_numbers --
-- Return the sequence number up to which an older cursor may continue after a restore.
SELECT namespace, changes FROM namespace;

-- move_numbered --
-- Return the sum of the sequence numbers of all namespaces, and a hash of them that does not depend on their order.
SELECT coalesce(sum(changes), 0)::bigint, coalesce(sum(hashtextextended(namespace, changes)), 0)::text
FROM semmem.namespace WHERE changes > 0;

-- move_unwritten --
-- Let nobody take a sequence number until the commit; readers go on.
LOCK TABLE semmem.namespace IN SHARE MODE;

-- move_analyze --
-- Update the planner's statistics, which still describe an empty store.
ANALYZE {tables};

-- move_drop --
-- Drop the schema of an empty store, for a backup of an older schema, which is then migrated.
DROP SCHEMA semmem CASCADE;

-- content_namespaces --
-- List the namespaces that hold memories.
SELECT DISTINCT namespace FROM memory m WHERE NOT EXISTS (SELECT 1 FROM namespace o WHERE o.namespace = m.namespace AND o.state <> 'moving')
ORDER BY namespace;

-- content_hash --
-- Hash the content and vectors of a namespace, independent of row ids, order of writing and extraction.
SELECT count(*) FILTER (WHERE m.part = 0), count(*) FILTER (WHERE m.part > 0), count(e.ord),
    encode(sha256(coalesce(string_agg(sha256(
        int4send(octet_length(m.id)) || convert_to(m.id, 'UTF8') || int4send(m.part) || int4send(m.parts)
        || int4send(octet_length(m.text)) || convert_to(m.text, 'UTF8')
        || coalesce(int4send(octet_length(m.title)) || convert_to(m.title, 'UTF8'), int4send(-1))
        || coalesce(int4send(octet_length(m.author)) || convert_to(m.author, 'UTF8'), int4send(-1))
        || coalesce(int4send(octet_length(m.author_key)) || convert_to(m.author_key, 'UTF8'), int4send(-1))
        || coalesce(int4send(octet_length(m.session)) || convert_to(m.session, 'UTF8'), int4send(-1))
        || coalesce('\x01'::bytea || int8send(m.position), '\x00'::bytea)
        || coalesce(int4send(octet_length(m.source)) || convert_to(m.source, 'UTF8'), int4send(-1))
        || array_send(m.tags)
        || int4send(octet_length(m.metadata::text)) || convert_to(m.metadata::text, 'UTF8')
        || float8send(m.importance) || timestamptz_send(m.created_at) || timestamptz_send(m.updated_at)
        || int4send(m.version) || int4send(length(m.content)) || m.content || m.payload),
        ''::bytea ORDER BY m.id, m.part), ''::bytea)), 'hex'),
    encode(sha256(coalesce(string_agg(
        CASE WHEN e.ord IS NULL THEN ''::bytea
             ELSE sha256(int4send(octet_length(m.id)) || convert_to(m.id, 'UTF8') || int4send(m.part)
                         || public.vector_send(e.vector)) END,
        ''::bytea ORDER BY m.id, m.part), ''::bytea)), 'hex')
FROM memory m LEFT JOIN embedding e USING (namespace, ord) WHERE m.namespace = %(namespace)s AND <open>;

-- moved_beside --
-- Lock out rebuilds, which change what is copied, as long as the connection lives; other moves need not wait.
SELECT pg_try_advisory_lock_shared(hashtextextended('semmem rebuild', 0));

-- moved_alone --
-- Lock out other moves of a namespace as long as the connection lives, so that an interrupted one can be recognised.
SELECT pg_try_advisory_lock(hashtextextended('semmem move ' || %(namespace)s::text, 0));

-- moved_unfinished --
-- List the namespaces that are being filled, renamed or emptied, each with the other name.
SELECT namespace, state, other, changed_at FROM namespace WHERE state IS NOT NULL ORDER BY namespace COLLATE "C";

-- moved_unfinished_of --
-- Return the same of one namespace.
SELECT state, other FROM namespace WHERE namespace = %(namespace)s AND state IS NOT NULL;

-- moved_limits --
-- Return how many memories and bytes the namespace may hold.
SELECT most_memories, most_bytes FROM namespace WHERE namespace = %(namespace)s;

-- moved_own --
-- Lock the row of a namespace, so that its writers wait; one namespace at a time, as each may be on another node.
SELECT state, other, dropping FROM namespace WHERE namespace = %(namespace)s FOR UPDATE;

-- moved_begin --
-- Forbid changes of a namespace from now on.
UPDATE namespace SET state = %(state)s, other = %(other)s, still = ords + segments + changes + revision
WHERE namespace = %(namespace)s;

-- moved_end --
-- Let a namespace be changed again, whose state is still that one.
UPDATE namespace SET state = NULL, other = NULL, still = NULL WHERE namespace = %(namespace)s AND state = %(state)s;

-- moved_kept --
-- Return the row of the namespace, for the new name.
SELECT ords, segments, changes, revision, memories, length, language, keep, most_memories, most_bytes,
       makers::text AS makers
FROM namespace WHERE namespace = %(namespace)s;

-- moved_dropping --
-- Return whether the namespace is being dropped.
SELECT dropping IS NOT NULL FROM namespace WHERE namespace = %(namespace)s;

-- moved_holds --
-- Return whether the new name holds anything already.
SELECT EXISTS (SELECT FROM {table} WHERE namespace = %(namespace)s);

-- moved_there --
-- Return whether the namespace has a memory.
SELECT EXISTS (SELECT FROM memory WHERE namespace = %(namespace)s AND part = 0);

-- moved_count --
-- Count the memories, and the bytes of their texts and titles.
SELECT count(*), coalesce(sum(octet_length(text) + coalesce(octet_length(title), 0)), 0)::bigint
FROM memory WHERE namespace = %(namespace)s AND part = 0;

-- moved_ids --
-- Return the ids of some memories, in order.
SELECT id FROM memory WHERE namespace = %(namespace)s AND part = 0 AND id > %(after)s ORDER BY id LIMIT %(limit)s;

-- moved_written --
-- Record the new memories for readers of changes, under the number that the new name is going to have.
INSERT INTO change (namespace, number, id, kind)
SELECT %(namespace)s, %(number)s, k.id, 'written' FROM unnest(%(ids)s::text[]) AS k(id);

-- moved_settings --
-- Return the settings of the namespace.
SELECT name, value, changed_at FROM namespace_setting WHERE namespace = %(namespace)s ORDER BY name;

-- moved_set --
-- Return whether the namespace has settings.
SELECT EXISTS (SELECT 1 FROM namespace_setting WHERE namespace = %(namespace)s);

-- moved_setting --
-- Store a setting of the new name.
INSERT INTO namespace_setting (namespace, name, value, changed_at)
VALUES (%(namespace)s, %(name)s, %(value)s, %(changed_at)s) ON CONFLICT (namespace, name) DO NOTHING;

-- moved_log --
-- Return the logged recalls of a namespace.
SELECT recall_id FROM recall_log WHERE namespace = %(namespace)s;

-- moved_unlogged --
-- Delete logged recalls of a namespace that is filled.
DELETE FROM recall_log WHERE namespace = %(namespace)s AND recall_id = ANY(%(recall_ids)s);

-- moved_counts --
-- Open the new name: no row id or sequence number is used twice under either name, readers of the new name read it
-- again, its limits stay, and maintain joins its postings, whatever it has joined under that name before.
UPDATE namespace SET ords = greatest(ords, %(ords)s), segments = greatest(segments, %(segments)s), settled = 0,
    changes = %(number)s, revision = greatest(revision, %(revision)s) + 1,
    memories = %(memories)s, length = %(length)s, language = %(language)s, makers = %(makers)s::jsonb,
    keep = coalesce(keep, %(keep)s),
    most_memories = coalesce(most_memories, %(most_memories)s), most_bytes = coalesce(most_bytes, %(most_bytes)s),
    changed_at = now(), state = NULL, other = NULL, still = NULL
WHERE namespace = %(namespace)s;

-- moved_away --
-- Close the old name, which holds nothing any more for those who ask.
UPDATE namespace SET changes = changes + 1, revision = revision + 1, memories = 0, length = 0, changed_at = now(),
    keep = NULL, most_memories = NULL, most_bytes = NULL, state = 'emptying',
    still = ords + segments + changes + 1 + revision + 1
WHERE namespace = %(namespace)s;

-- moved_some --
-- Delete some rows of a table.
DELETE FROM {table} WHERE namespace = %(namespace)s AND ({columns}) IN (
    SELECT {columns} FROM {table} WHERE namespace = %(namespace)s LIMIT %(limit)s);

-- moved_change --
-- Delete some changes: of an old name those before its end, of a name that was not filled those after its number.
DELETE FROM change WHERE namespace = %(namespace)s AND (number, id) IN (
    SELECT c.number, c.id FROM change c JOIN namespace n ON n.namespace = c.namespace
    WHERE c.namespace = %(namespace)s
      AND CASE n.state WHEN 'filling' THEN c.number > n.changes WHEN 'emptying' THEN c.number < n.changes END
    LIMIT %(limit)s);
