-- move_columns --
-- Every table with the columns that can be carried over, and their place in the primary key. A generated column makes
-- itself.
SELECT c.relname, a.attname, a.attcollation <> 0, array_position(k.conkey, a.attnum)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'semmem'
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype = 'p'
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname <> 'migration'
  AND a.attgenerated = ''
ORDER BY c.relname, a.attnum;

-- move_snapshot --
-- One moment of the store for as long as it takes, whatever limits the server has for those who forget to end.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL search_path TO semmem, public;
SET LOCAL statement_timeout TO 0; SET LOCAL idle_in_transaction_session_timeout TO 0; SET LOCAL transaction_timeout TO 0;

-- move_snapshot_old --
-- The same on a server older than PostgreSQL 17.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL search_path TO semmem, public;
SET LOCAL statement_timeout TO 0; SET LOCAL idle_in_transaction_session_timeout TO 0;

-- move_read --
-- One range of a table, in order, as PostgreSQL itself writes its values: bit for bit.
COPY (SELECT {columns} FROM {table} WHERE {range} ORDER BY {order}) TO STDOUT (FORMAT binary);

-- move_write --
-- The same back; identities keep the numbers they had.
COPY {table} ({columns}) FROM STDIN (FORMAT binary);

-- move_end --
-- The last key of the next range.
SELECT {keys} FROM {table} WHERE {range} ORDER BY {order} OFFSET {skip} LIMIT 1;

-- move_holds --
-- Whether something is in a range already.
SELECT EXISTS (SELECT 1 FROM {table} WHERE {range});

-- move_delete --
-- What is there differs.
DELETE FROM {table} WHERE {range};

-- move_clear --
-- Of an empty store: what is left of memories that were forgotten.
TRUNCATE {tables};

-- move_alone --
-- One copy or restore writes to a store at a time.
SELECT pg_try_advisory_lock(hashtextextended('semmem copy', 0));

-- move_done --
-- Given back explicitly: the connection is pooled.
SELECT pg_advisory_unlock(hashtextextended('semmem copy', 0));

-- move_size --
-- Whether the store is empty, and what is told.
SELECT count(*) FROM semmem.memory WHERE part = 0;

-- move_kept --
-- Memories that were forgotten and may be taken back: they are no memories, and yet nobody's to overwrite.
SELECT count(DISTINCT (namespace, id)) FROM semmem.history WHERE forgotten_at IS NOT NULL;

-- move_ords --
-- To tell what came and went since a snapshot: of each memory its number and namespace, hashed.
SELECT coalesce(string_agg(int8send(hashtextextended(namespace, ord)), ''::bytea), ''::bytea) FROM semmem.memory
WHERE part = 0;

-- move_numbers --
-- Up to where a cursor of changes that was given before may go on behind a restore.
SELECT namespace, changes FROM namespace;

-- move_analyze --
-- Else the planner takes a full store for an empty one.
ANALYZE {tables};

-- move_drop --
-- An empty store makes room for an older schema, which is then migrated.
DROP SCHEMA semmem CASCADE;

-- content_namespaces --
-- All that hold memories.
SELECT DISTINCT namespace FROM memory ORDER BY namespace;

-- content_hash --
-- What the memories of a namespace say and the vectors they have: no ord, no order of writing, nothing derived by rules.
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
FROM memory m LEFT JOIN embedding e USING (namespace, ord) WHERE m.namespace = %(namespace)s;

-- moved_lock --
-- Every memory of a namespace that gets another name, in the order in which others lock.
SELECT count(*) FROM (SELECT FROM memory WHERE namespace = %(old)s ORDER BY id, part FOR UPDATE) AS locked;

-- moved_own --
-- Its writers wait here: one of both at a time, as each may lie on a node of its own.
SELECT dropping FROM namespace WHERE namespace = %(namespace)s FOR UPDATE;

-- moved_kept --
-- What the other name gets of its row.
SELECT ords, segments, changes, revision, memories, length, language, keep, most_memories, most_bytes
FROM namespace WHERE namespace = %(namespace)s;

-- moved_holds --
-- A name that is taken is not taken over.
SELECT EXISTS (SELECT FROM {table} WHERE namespace = %(namespace)s);

-- moved_count --
-- What is told.
SELECT count(*) FROM memory WHERE namespace = %(namespace)s AND part = 0;

-- moved_copy --
-- All columns, with the other name.
INSERT INTO {table} (namespace, {columns}) SELECT %(new)s, {values} FROM {table} WHERE namespace = %(old)s;

-- moved_delete --
-- Under the old name nothing stays.
DELETE FROM {table} WHERE namespace = %(namespace)s;

-- moved_change --
-- Nor does what led to this.
DELETE FROM change WHERE namespace = %(namespace)s;

-- moved_counts --
-- No number is given out twice under either name, and whoever has read something of the new one reads it again. Limits
-- that the new one has stay.
UPDATE namespace SET ords = greatest(ords, %(ords)s), segments = greatest(segments, %(segments)s),
    changes = greatest(changes, %(changes)s) + 1, revision = greatest(revision, %(revision)s) + 1,
    memories = %(memories)s, length = %(length)s, language = %(language)s, keep = coalesce(keep, %(keep)s),
    most_memories = coalesce(most_memories, %(most_memories)s), most_bytes = coalesce(most_bytes, %(most_bytes)s),
    changed_at = now()
WHERE namespace = %(namespace)s;

-- moved_written --
-- For those who keep a copy of the new one.
INSERT INTO change (namespace, number, id, kind)
SELECT n.namespace, n.changes, m.id, 'written'
FROM namespace n JOIN memory m ON m.namespace = n.namespace AND m.part = 0 WHERE n.namespace = %(new)s;

-- moved_away --
-- The old one is empty from here on.
UPDATE namespace SET changes = changes + 1, revision = revision + 1, memories = 0, length = 0, changed_at = now(),
    keep = NULL, most_memories = NULL, most_bytes = NULL WHERE namespace = %(namespace)s;
