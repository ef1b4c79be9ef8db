-- <memory_columns> --
-- What a memory is read from, in this order: its place, its fields, and what is counted.
namespace, id, part, updated_at, version, seen_count, last_seen, <fields>, ord

-- <memory_columns_m> --
-- The same of the table m.
m.namespace, m.id, m.part, m.updated_at, m.version, m.seen_count, m.last_seen, <m.fields>, m.ord

-- <version_columns> --
-- The same of a version in the history.
namespace, id, 0 AS part, updated_at, version, seen_count, NULL AS last_seen, <fields>, 0 AS ord

-- <version_columns_v> --
-- The same of the table v.
v.namespace, v.id, 0 AS part, v.updated_at, v.version, v.seen_count, NULL AS last_seen, <v.fields>, 0 AS ord

-- <memory_filters> --
-- What a call is narrowed to, of memories or their versions; filters that are NULL do not restrict.
<any_filters>
  AND (:tags IS NULL OR NOT EXISTS (
      SELECT 1 FROM json_each(:tags) AS w WHERE w.value NOT IN (SELECT value FROM json_each(tags))))
  AND (:metadata IS NULL OR contains(metadata, :metadata))
  AND (:sensitive IS NULL OR sensitive = :sensitive)
  AND (:created_after IS NULL OR created_at >= :created_after)
  AND (:created_before IS NULL OR created_at < :created_before)

-- memory_insert --
-- Store a memory; an existing id changes no row. Where the id was softly forgotten, version numbers continue: they tell
-- that it had an earlier life. Where another time than now was given, last_seen says when it was written here: no sooner
-- do the days begin that its namespace keeps it.
INSERT INTO memory (row, namespace, id, part, parts, author_key, updated_at, version, <fields>, content, payload, length,
                    text_at, last_seen)
VALUES (:row, :namespace, :id, :part, :parts, :author_key, :updated_at,
        max(:version, coalesce((SELECT max(version) + 1 FROM history WHERE namespace = :namespace AND id = :id), 1)),
        <given_fields>, :content, :payload, :length, :text_at,
        CASE WHEN abs(:updated_at - :now) > 60e6 THEN :now END)
ON CONFLICT (namespace, id, part) DO NOTHING
RETURNING version;

-- memory_payloads --
-- Return the content hashes of stored ids of a batch, and whether they have expired.
SELECT m.namespace, m.id, m.payload, coalesce(m.expires_at <= :now, 0) FROM json_each(:names) AS k
JOIN memory m ON m.namespace = k.value ->> 0 AND m.id = k.value ->> 1 AND m.part = 0;

-- memory_payload --
-- Return the content hash of stored ids, to tell a repeat from a conflict.
SELECT payload FROM memory WHERE namespace = :namespace AND id = :id AND part = 0;

-- memory_began --
-- Return when the texts of memories began that an update has brought.
SELECT id, text_at FROM memory
WHERE namespace = :namespace AND id IN (SELECT value FROM json_each(:ids)) AND part = 0 AND text_at IS NOT NULL;

-- memory_stored --
-- Return the stored memories that a batch is compared with, and whether they have expired.
SELECT <memory_columns_m>, m.payload, m.text_at,
       coalesce(m.expires_at <= :now, 0)
FROM json_each(:names) AS k JOIN memory m ON m.namespace = k.value ->> 0 AND m.id = k.value ->> 1 AND m.part = 0;

-- replace_select --
-- Return the memory to replace, with its parts.
SELECT version, payload, created_at, part, parts, row, length, sensitive FROM memory
WHERE namespace = :namespace AND id = :id ORDER BY part;

-- memory_get --
-- By the caller's ids, whole memories.
SELECT <memory_columns>
FROM memory WHERE namespace = :namespace AND id IN (SELECT value FROM json_each(:ids)) AND part = 0
  AND (expires_at IS NULL OR expires_at > :now);

-- memory_prefixed --
-- The ids that begin so, of memories and of softly forgotten ones, by the primary keys; behind a prefix of hexadecimal
-- digits and hyphens stands nothing from "g" on.
SELECT :prefix, id FROM (
    SELECT id FROM memory WHERE namespace = :namespace AND id >= :prefix AND id < :prefix || 'g' AND part = 0
    UNION
    SELECT id FROM history WHERE namespace = :namespace AND id >= :prefix AND id < :prefix || 'g'
      AND forgotten_at IS NOT NULL
) ORDER BY id LIMIT :limit;

-- memory_last_position --
-- Return the last position of a session, by the index of its order; what has none stands behind.
SELECT position FROM memory
WHERE namespace = :namespace AND session = :session AND coalesce(position, 9223372036854775807) < 9223372036854775807
ORDER BY coalesce(position, 9223372036854775807) DESC LIMIT 1;

-- memory_wholes --
-- Return, for hits that are parts, the whole memory and the lengths of its parts, from which offsets are computed.
SELECT <memory_columns_m>,
       (SELECT json_group_array(characters) FROM (
           SELECT length(p.text) AS characters FROM memory AS p
           WHERE p.namespace = m.namespace AND p.id = m.id AND p.part > 0 ORDER BY p.part))
FROM json_each(:names) AS k JOIN memory AS m ON m.namespace = k.value ->> 0 AND m.id = k.value ->> 1 AND m.part = 0;

-- memory_by_row_ids --
-- What is indexed, for the hits: a row is the number of its namespace and its row id.
SELECT <memory_columns>
FROM memory WHERE row IN (
    SELECT (SELECT number FROM namespace WHERE namespace = :namespace) << 40 | value FROM json_each(:ords));

-- candidate_metadata --
-- Return the metadata of each candidate, without its text.
SELECT ord, namespace, id, part, importance, content, created_at, updated_at
FROM memory WHERE row IN (
    SELECT (SELECT number FROM namespace WHERE namespace = :namespace) << 40 | value FROM json_each(:ords));

-- memory_locate --
-- Return the indexed rows of one memory: itself, or its parts.
SELECT ord FROM memory WHERE namespace = :namespace AND id = :id AND parts = 0 ORDER BY part;

-- memory_texts --
-- Return title and text, for checking quoted phrases.
SELECT ord, coalesce(title, '') || char(10) || text FROM memory
WHERE row IN (
    SELECT (SELECT number FROM namespace WHERE namespace = :namespace) << 40 | value FROM json_each(:ords));

-- <last_time> --
-- A time that none is behind, so that a first page is read like the others: an index is entered at the cursor only by a
-- condition that holds without one too.
9223372036854775807

-- <listed> --
-- The whole memories of a namespace that a list may hold. Filters that are NULL do not restrict.
namespace = :namespace AND part = 0 AND (expires_at IS NULL OR expires_at > :now)
  AND <memory_filters>

-- <counted_m> --
-- The memories m of a list, each with how often recalls returned it and when one last did.
memory AS m LEFT JOIN (SELECT id AS returned_id, count, last_at FROM access WHERE namespace = :namespace) AS a
    ON a.returned_id = m.id

-- memory_list --
-- Newest first, keyset paging.
SELECT <memory_columns>, count, last_at, NULL
FROM <counted_m>
WHERE <listed>
  AND created_at <= coalesce(:cursor_at, <last_time>)
  AND (:cursor_at IS NULL OR (created_at, id) < (:cursor_at, :cursor_id))
ORDER BY created_at DESC, id DESC
LIMIT :limit;

-- memory_scope --
-- Return the indexed memories that filters match.
SELECT ord FROM memory AS m
WHERE namespace = :namespace AND parts = 0
  AND <memory_filters>
ORDER BY ord;

-- memory_excluded --
-- Return the row ids of ids to leave out; the id of a memory covers its parts.
SELECT ord FROM memory
WHERE namespace = :namespace AND id IN (SELECT value FROM json_each(:ids)) AND parts = 0 ORDER BY ord;

-- memory_size --
-- Return the number of indexed memories, as counted by writers, and the language of each namespace. Of the memories
-- with bounds in time, also return those out of scope (1), because they have expired or were not valid at the requested
-- time (written or begun later, or ended before), and where none is requested, those not valid now.
SELECT coalesce(sum(memories), 0), json_group_object(namespace, language) FILTER (WHERE memories > 0), (
    SELECT json_group_array(json_array(namespace, ord, gone)) FROM (
        SELECT m.namespace, m.ord, 1 AS gone FROM json_each(:namespaces) AS k JOIN memory AS m ON m.namespace = k.value
        WHERE m.parts = 0 AND m.expires_at IS NOT NULL AND m.expires_at <= :now
        UNION ALL
        SELECT m.namespace, m.ord, 0 FROM json_each(:namespaces) AS k JOIN memory AS m ON m.namespace = k.value
        WHERE :at IS NULL AND m.parts = 0
          AND (m.valid_from IS NOT NULL OR m.valid_to IS NOT NULL) AND (m.valid_to <= :now OR m.valid_from > :now)
        UNION ALL
        SELECT m.namespace, m.ord, 1 FROM json_each(:namespaces) AS k JOIN memory AS m ON m.namespace = k.value
        WHERE :at IS NOT NULL AND m.parts = 0
          AND (coalesce(m.valid_from, m.updated_at) > :at OR m.valid_to <= :at)))
FROM namespace WHERE namespace IN (SELECT value FROM json_each(:namespaces));

-- memory_kinds --
-- Return for each namespace whether there are sessions and authors, the authors that the question names, and who wrote
-- the memories before each of their last ones, nearest first. A bounded number of index look-ups, whatever the size.
SELECT n.value, 'session', NULL, NULL FROM json_each(:namespaces) AS n
WHERE EXISTS (SELECT 1 FROM memory AS m WHERE m.namespace = n.value AND m.session IS NOT NULL AND m.parts = 0)
UNION ALL
SELECT n.value, 'author', NULL, NULL FROM json_each(:namespaces) AS n
WHERE EXISTS (SELECT 1 FROM memory AS m WHERE m.namespace = n.value AND m.author_key IS NOT NULL)
UNION ALL
SELECT n.value, 'named', m.author, (
    SELECT json_group_array(before.author) FROM (
        SELECT p.author FROM memory AS p
        WHERE p.namespace = m.namespace AND p.session = m.session AND p.parts = 0
          AND (coalesce(p.position, 9223372036854775807), p.created_at, p.id, p.part)
            < (coalesce(m.position, 9223372036854775807), m.created_at, m.id, m.part)
        ORDER BY coalesce(p.position, 9223372036854775807) DESC, p.created_at DESC, p.id DESC, p.part DESC
        LIMIT :behind) AS before)
FROM json_each(:namespaces) AS n CROSS JOIN json_each(:keys) AS k JOIN memory AS m ON m.row IN (
    SELECT o.row FROM memory AS o WHERE o.namespace = n.value AND o.author_key = k.value
    ORDER BY o.created_at DESC, o.id DESC, o.part DESC LIMIT :last)
ORDER BY 1, 2;

-- memory_turns --
-- Return the sessions around some memories, in order, with the columns of memory_heads; a memory without one is alone.
SELECT namespace, ord, session, author, substr(rtrim(text, ' ' || char(9, 10, 13)), -1) = '?', created_at, id, part,
       importance, content, updated_at
FROM memory
WHERE namespace = :namespace AND parts = 0 AND (
    session IN (SELECT s.session FROM memory AS s WHERE s.session IS NOT NULL AND s.row IN (
        SELECT (SELECT number FROM namespace WHERE namespace = :namespace) << 40 | value FROM json_each(:ords)))
    OR (session IS NULL AND row IN (
        SELECT (SELECT number FROM namespace WHERE namespace = :namespace) << 40 | value FROM json_each(:ords))))
ORDER BY session, coalesce(position, 9223372036854775807), created_at, id, part LIMIT :limit;

-- forget_select --
-- Return the memories to forget.
SELECT id, part, parts, row, length FROM memory AS m
WHERE namespace = :namespace
  AND (:ids IS NULL OR id IN (SELECT value FROM json_each(:ids)))
  AND <memory_filters>;

-- forget_memory --
-- Delete memories.
DELETE FROM memory WHERE row = :row;

-- memory_length --
-- Return one indexed memory with its tokens; no row for a forgotten one.
SELECT m.length, l.tokens FROM memory AS m JOIN lexical AS l ON l.rowid = m.row WHERE m.row = :row;

-- memory_lengthen --
-- Store the length of a memory after re-extraction.
UPDATE memory SET length = :length WHERE row = :row;

-- indexed_after --
-- Everything that is indexed, a batch at a time.
SELECT <memory_columns>
FROM memory WHERE parts = 0 AND row > (SELECT number FROM namespace WHERE namespace = :namespace) << 40 | :ord
  AND row < ((SELECT number FROM namespace WHERE namespace = :namespace) + 1) << 40
ORDER BY row LIMIT :limit;

-- stats --
-- Count memories of one namespace, or of all, by the index of ids alone.
WITH asked AS MATERIALIZED (SELECT namespace FROM namespace WHERE :namespace IS NULL OR namespace = :namespace)
SELECT (SELECT count(*) FROM asked AS a JOIN memory AS m ON m.namespace = a.namespace WHERE m.part = 0),
       (SELECT count(*) FROM asked AS a JOIN memory AS m ON m.namespace = a.namespace WHERE m.part > 0),
       (SELECT count(*) FROM asked AS a WHERE EXISTS (SELECT 1 FROM memory AS m WHERE m.namespace = a.namespace)),
       (SELECT page_count * page_size FROM pragma_page_count, pragma_page_size);

-- namespace_list --
-- Return each namespace with its number of whole memories and its last change, for people.
SELECT namespace, count(*), max(updated_at) FROM memory INDEXED BY memory_by_change
WHERE part = 0 GROUP BY namespace ORDER BY namespace;
