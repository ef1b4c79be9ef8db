-- <memory_columns> --
-- What a memory is read from, in this order: its place, its fields, and what is counted.
namespace, id, part, updated_at, version, seen_count, last_seen, <fields>, ord

-- <memory_columns_m> --
-- The same of the table m.
m.namespace, m.id, m.part, m.updated_at, m.version, m.seen_count, m.last_seen, <m.fields>, m.ord

-- <version_columns> --
-- The same of a version in the history.
namespace, id, 0 AS part, updated_at, version, seen_count, NULL::timestamptz AS last_seen, <fields>, 0::bigint AS ord

-- <version_columns_v> --
-- The same of the table v.
v.namespace, v.id, 0 AS part, v.updated_at, v.version, v.seen_count, NULL::timestamptz AS last_seen, <v.fields>, 0::bigint AS ord

-- <memory_filters> --
-- What a call is narrowed to, of memories or their versions; filters that are NULL do not restrict.
<any_filters>
  AND (%(tags)s::text[] IS NULL OR tags @> %(tags)s)
  AND (%(metadata)s::jsonb IS NULL OR metadata @> %(metadata)s)
  AND (%(sensitive)s::boolean IS NULL OR sensitive = %(sensitive)s)
  AND (%(created_after)s::timestamptz IS NULL OR created_at >= %(created_after)s)
  AND (%(created_before)s::timestamptz IS NULL OR created_at < %(created_before)s)

-- memory_insert --
-- Store memories of one namespace, sorted by id, so that two writers of the same ids wait for each other in one order.
-- Without a row id before the first, the row ids are those that the transaction took last. Where an id was softly
-- forgotten, version numbers continue. A row that merges is not stored where its content is stored already, unless
-- another memory has contradicted that one since. The version tells which ids had an earlier life. Where another time
-- than now was given, last_seen says when it was written here: no sooner do the days begin that its namespace keeps it.
INSERT INTO memory (namespace, ord, id, part, parts, author_key, updated_at, version, <fields>, content, payload, text_at,
                    last_seen)
SELECT %(namespace)s, r.place + coalesce(%(before)s::bigint, (
           SELECT n.ords - %(count)s::bigint FROM namespace n WHERE n.namespace = %(namespace)s)),
       r.id, r.part, r.parts, r.author_key, r.updated_at,
       greatest(r.version, (SELECT max(h.version) + 1 FROM history h WHERE h.namespace = %(namespace)s AND h.id = r.id)),
       <inserted_fields>, r.content, r.payload, r.text_at,
       CASE WHEN abs(extract(epoch FROM r.updated_at - now())) > 60 THEN now() END
FROM unnest(%(place)s::bigint[], %(id)s::text[], %(part)s::int[], %(parts)s::int[], %(author_key)s::text[],
            %(updated_at)s::timestamptz[], %(version)s::int[], <given_fields>,
            %(content)s::bytea[], %(payload)s::bytea[], %(text_at)s::timestamptz[], %(merges)s::boolean[])
     AS r(place, id, part, parts, author_key, updated_at, version, <fields>, content, payload, text_at, merges)
WHERE NOT (r.merges AND EXISTS (
    SELECT FROM memory o
    WHERE o.namespace = %(namespace)s AND o.content = r.content AND o.payload = r.payload AND o.part = 0
      AND NOT o.sensitive AND o.expires_at IS NULL
      AND o.ord > coalesce((SELECT n.dropping FROM namespace n WHERE n.namespace = %(namespace)s), 0)
      AND NOT EXISTS (
          SELECT FROM link l JOIN memory n ON n.namespace = l.namespace AND n.id = l.from_id AND n.part = 0
          WHERE l.namespace = %(namespace)s AND l.to_id = o.id AND l.type IN ('contradicts', 'supersedes'))))
ON CONFLICT (namespace, id, part) DO NOTHING
RETURNING id, part, ord, version;

-- memory_payloads --
-- Return the content hash of stored ids, to tell a repeat from a conflict, and whether a drop will remove them.
SELECT m.id, m.payload, m.ord <= coalesce((SELECT n.dropping FROM namespace n WHERE n.namespace = %(namespace)s), 0)
       OR coalesce(m.expires_at <= now(), false)
FROM memory m WHERE m.namespace = %(namespace)s AND m.id = ANY(%(ids)s) AND m.part = 0 AND <open>;

-- memory_written --
-- Return the memories and parts that a lost connection may have committed.
SELECT id, part, version, ord, payload FROM memory WHERE namespace = %(namespace)s AND id = ANY(%(ids)s);

-- memory_began --
-- Return when the texts of memories began that an update has brought.
SELECT id, text_at FROM memory WHERE namespace = %(namespace)s AND id = ANY(%(ids)s) AND part = 0 AND text_at IS NOT NULL;

-- memory_stored --
-- Return the stored memories that a batch is compared with, and whether a drop will remove them.
SELECT <memory_columns_m>, m.payload, m.text_at,
       m.ord <= coalesce((SELECT n.dropping FROM namespace n WHERE n.namespace = %(namespace)s), 0)
       OR coalesce(m.expires_at <= now(), false)
FROM memory m WHERE m.namespace = %(namespace)s AND m.id = ANY(%(ids)s) AND m.part = 0 AND <open>;

-- memory_vectors --
-- Return stored vectors, to compare them with given ones and to keep them where the embedded text is the same.
SELECT m.id, m.part, public.vector_send(e.vector)
FROM memory m JOIN embedding e USING (namespace, ord)
WHERE m.namespace = %(namespace)s AND m.id = ANY(%(ids)s);

-- replace_select --
-- Lock the memories to replace, with their parts, in the common order. What a drop takes is gone already.
SELECT id, part, ord, sensitive, version, payload, created_at FROM memory
WHERE namespace = %(namespace)s AND id = ANY(%(ids)s) AND <kept>
ORDER BY id, part FOR UPDATE;

-- memory_get --
-- By the caller's ids, whole memories.
SELECT <memory_columns>
FROM memory WHERE namespace = %(namespace)s AND id = ANY(%(ids)s) AND part = 0 AND <open> AND <kept>
  AND (expires_at IS NULL OR expires_at > now());

-- memory_prefixed --
-- The ids that begin so, of memories and of softly forgotten ones, by the primary keys; behind a prefix of hexadecimal
-- digits and hyphens stands nothing from "g" on.
SELECT p.prefix, m.id FROM unnest(%(prefixes)s::text[]) AS p(prefix) CROSS JOIN LATERAL (
    (SELECT id FROM memory WHERE namespace = %(namespace)s AND id >= p.prefix AND id < p.prefix || 'g' AND part = 0
     ORDER BY id LIMIT %(limit)s)
    UNION
    (SELECT id FROM history WHERE namespace = %(namespace)s AND id >= p.prefix AND id < p.prefix || 'g'
       AND forgotten_at IS NOT NULL ORDER BY id LIMIT %(limit)s)
    ORDER BY id LIMIT %(limit)s) AS m;

-- memory_last_position --
-- Return the last position of a session, by the index of its order; what has none stands behind.
SELECT position FROM memory
WHERE namespace = %(namespace)s AND session = %(session)s AND coalesce(position, 9223372036854775807) < 9223372036854775807
ORDER BY coalesce(position, 9223372036854775807) DESC LIMIT 1;

-- memory_wholes --
-- Return, for hits that are parts, the whole memory and the lengths of its parts, from which offsets are computed.
SELECT <memory_columns_m>,
       ARRAY(SELECT length(p.text) FROM memory p
             WHERE p.namespace = %(namespace)s AND p.id = m.id AND p.part > 0 ORDER BY p.part)
FROM memory m WHERE m.namespace = %(namespace)s AND m.id = ANY(%(ids)s) AND m.part = 0;

-- memory_by_row_ids --
-- What is indexed, for the hits.
SELECT <memory_columns>
FROM memory WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s) AND <open> AND <kept>;

-- memory_at_state --
-- Return the row of memory_size, that of resident_state, and the columns of memory_bounds, and beside them what is
-- indexed of some row ids: a row each, or one without any. One statement takes less of the client than four that are
-- sent together, and sees one state.
SELECT size.*, state.*, bounds.*, m.*
FROM (SELECT %(namespace)s::text AS namespace) AS one
LEFT JOIN LATERAL (
    SELECT coalesce((SELECT memories FROM namespace WHERE namespace = %(namespace)s), 0)::bigint, <beside_the_size>
) AS size ON true
LEFT JOIN LATERAL (SELECT <state> FROM namespace n WHERE n.namespace = %(namespace)s) AS state ON true
LEFT JOIN LATERAL (SELECT array_agg(b.ord), array_agg(b.is_out) FROM (<bounds>) AS b) AS bounds ON true
LEFT JOIN LATERAL (
    SELECT <memory_columns> FROM memory WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s) AND <open>
) AS m ON true;

-- candidate_metadata --
-- Return the metadata of each candidate, without its text.
SELECT ord, namespace, id, part, importance, content, extract(epoch FROM created_at)::float8,
       extract(epoch FROM updated_at)::float8
FROM memory WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s) AND <open> AND <kept>;

-- memory_locate --
-- Return the indexed rows of one memory: itself, or its parts.
SELECT ord FROM memory WHERE namespace = %(namespace)s AND id = %(id)s AND parts = 0 AND <open> ORDER BY part;

-- memory_texts --
-- Return title and text, for checking quoted phrases.
SELECT ord, coalesce(title, '') || E'\n' || text FROM memory
WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s);

-- memory_titles --
-- Return titles, to tell names from descriptions.
SELECT ord, title FROM memory WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s);

-- <listed> --
-- The whole memories of a namespace that a list may hold. Filters that are NULL do not restrict.
namespace = %(namespace)s AND part = 0 AND <open> AND <kept> AND (expires_at IS NULL OR expires_at > now())
  AND <memory_filters>

-- <counted_memory> --
-- The memories of a list, each with how often recalls returned it and when one last did, so that a page is one round trip.
memory LEFT JOIN LATERAL (
    SELECT count, last_at FROM access WHERE namespace = %(namespace)s AND id = memory.id) AS a ON true

-- memory_list --
-- Newest first, keyset paging.
SELECT <memory_columns>, count, last_at, NULL::float8
FROM <counted_memory>
WHERE <listed>
  AND (%(cursor_at)s::timestamptz IS NULL OR (created_at, id) < (%(cursor_at)s, %(cursor_id)s COLLATE "C"))
ORDER BY created_at DESC, id DESC
LIMIT %(limit)s;

-- <beside_the_size> --
-- A namespace's settings and language, so that no recall asks for them separately, and whether memories are linked by
-- somebody (1) or may be superseded (2), by the first links only, so that many links of other types cost nothing.
(SELECT json_agg(json_build_array(namespace, name, value) ORDER BY namespace, name)::text
        FROM namespace_setting WHERE namespace = %(namespace)s),
       (SELECT language FROM namespace WHERE namespace = %(namespace)s AND memories > 0),
       (SELECT CASE WHEN count(*) = 0 THEN 0 WHEN count(*) = 200 OR bool_or(type = 'supersedes') THEN 2
                    ELSE bool_or(made_by IS DISTINCT FROM 'semmem')::int END
        FROM (SELECT type, made_by FROM link WHERE namespace = %(namespace)s LIMIT 200) AS l)

-- memory_scope --
-- Return the state of a namespace, and the indexed memories that filters match in it, packed: NULL where the caller
-- knows them from the same state, and only those that came since where nothing else has changed and they are few, which
-- the third column says. The state is NULL while the namespace is being dropped or filled. The columns of memory_size
-- follow. The memories come in no order: for the order of their numbers the server would read the whole table through
-- an index.
SELECT here.place, here.changes, here.grows,
       CASE WHEN here.place = %(place)s::text AND here.changes = %(since)s::bigint THEN NULL
            WHEN here.grows THEN (
                SELECT coalesce(string_agg(int8send(ord), ''::bytea), ''::bytea) FROM memory
                WHERE namespace = %(namespace)s AND parts = 0 AND <open> AND id = ANY (<changed_ids>)
                  AND <memory_filters>)
            ELSE (
                SELECT coalesce(string_agg(int8send(ord), ''::bytea), ''::bytea) FROM memory
                WHERE namespace = %(namespace)s AND parts = 0 AND <open>
                  AND <memory_filters>) END,
       <beside_the_size>
FROM (SELECT %(namespace)s::text AS namespace) AS one LEFT JOIN LATERAL (
    SELECT n.changes, ROW(<place_of_state>)::text AS place,
           %(place)s::text IS NOT NULL AND ROW(<place_of_state>)::text = %(place)s::text AND (
               SELECT count(*) <= 1000 AND bool_and(kind = 'written')
                      AND count(DISTINCT number) = n.changes - %(since)s::bigint
               FROM (SELECT c.number, c.kind FROM change c
                     WHERE c.namespace = %(namespace)s AND c.number > %(since)s::bigint LIMIT 1001) AS these) AS grows
    FROM namespace n
    WHERE n.namespace = %(namespace)s AND n.dropping IS NULL AND n.state IS NULL) AS here ON true;

-- memory_excluded --
-- Return the row ids of ids to leave out; the id of a memory covers its parts.
SELECT ord FROM memory
WHERE namespace = %(namespace)s AND parts = 0 AND id = ANY(%(ids)s)
ORDER BY ord;

-- <bounds> --
-- The memories with bounds in time: those out of scope (true), because they have expired, and where no time is
-- requested, those not valid now. Of a namespace that is being filled or emptied all are out of scope.
SELECT ord, true AS is_out FROM memory
WHERE namespace = %(namespace)s AND parts = 0 AND expires_at IS NOT NULL AND expires_at <= now()
UNION ALL
SELECT ord, false FROM memory
WHERE %(at)s::timestamptz IS NULL AND namespace = %(namespace)s AND parts = 0
  AND (valid_from IS NOT NULL OR valid_to IS NOT NULL) AND (valid_to <= now() OR valid_from > now())
UNION ALL
SELECT ord, true FROM memory WHERE NOT <open> AND namespace = %(namespace)s AND parts = 0

-- memory_bounds --
-- Return memories with bounds in time.
<bounds>;

-- memory_not_then --
-- Return, packed, the memories that were not valid at a time: written or begun later, or ended before. The index of last
-- changes has them, that of parts, and that of memories with bounds, so the others are not read.
SELECT coalesce(string_agg(int8send(ord), ''::bytea), ''::bytea) FROM (
    SELECT ord FROM memory
    WHERE namespace = %(namespace)s AND part = 0 AND parts = 0 AND updated_at > %(at)s::timestamptz AND valid_from IS NULL
    UNION ALL
    SELECT ord FROM memory
    WHERE namespace = %(namespace)s AND part > 0 AND updated_at > %(at)s::timestamptz AND valid_from IS NULL
    UNION ALL
    SELECT ord FROM memory
    WHERE namespace = %(namespace)s AND parts = 0 AND (valid_from IS NOT NULL OR valid_to IS NOT NULL)
      AND (valid_from > %(at)s::timestamptz OR valid_to <= %(at)s::timestamptz)) AS outside;

-- memory_size --
-- Return the number of indexed memories, as counted by writers, and what is asked beside it.
SELECT coalesce((SELECT memories FROM namespace WHERE namespace = %(namespace)s), 0)::bigint,
       <beside_the_size>;

-- memory_neighbours --
-- Return the previous and next memory of the session: by position, memories without one last, then by time. Two index
-- probes for each memory.
SELECT m.ord, q.ord, coalesce(q.author = m.author, false) FROM memory m
CROSS JOIN LATERAL (
    (SELECT ord, author FROM memory p
     WHERE p.namespace = %(namespace)s AND p.session = m.session AND p.parts = 0
       AND (coalesce(p.position, 9223372036854775807), p.created_at, p.id, p.part)
         < (coalesce(m.position, 9223372036854775807), m.created_at, m.id, m.part)
     ORDER BY coalesce(p.position, 9223372036854775807) DESC, p.created_at DESC, p.id DESC, p.part DESC LIMIT 1)
    UNION ALL
    (SELECT ord, author FROM memory n
     WHERE n.namespace = %(namespace)s AND n.session = m.session AND n.parts = 0
       AND (coalesce(n.position, 9223372036854775807), n.created_at, n.id, n.part)
         > (coalesce(m.position, 9223372036854775807), m.created_at, m.id, m.part)
     ORDER BY coalesce(n.position, 9223372036854775807), n.created_at, n.id, n.part LIMIT 1)) AS q
WHERE m.namespace = %(namespace)s AND m.ord = ANY(%(ords)s) AND m.session IS NOT NULL;

-- memory_kinds --
-- Return whether there are sessions and authors, the authors that the question names, and who wrote the memories before
-- each of their last ones, nearest first. A bounded number of index look-ups, whatever the size.
SELECT 'session' AS what, NULL AS author, NULL::text[] AS behind
WHERE EXISTS (SELECT FROM memory m WHERE m.namespace = %(namespace)s AND m.session IS NOT NULL AND m.parts = 0)
UNION ALL
SELECT 'author', NULL, NULL
WHERE EXISTS (SELECT FROM memory m WHERE m.namespace = %(namespace)s AND m.author_key IS NOT NULL)
UNION ALL
SELECT 'named', found.author, found.behind FROM unnest(%(keys)s::text[]) AS k(key)
CROSS JOIN LATERAL (
    SELECT m.author, ARRAY(
        SELECT p.author FROM memory p
        WHERE p.namespace = %(namespace)s AND p.session = m.session AND p.parts = 0
          AND (coalesce(p.position, 9223372036854775807), p.created_at, p.id, p.part)
            < (coalesce(m.position, 9223372036854775807), m.created_at, m.id, m.part)
        ORDER BY coalesce(p.position, 9223372036854775807) DESC, p.created_at DESC, p.id DESC, p.part DESC
        LIMIT %(behind)s) AS behind
    FROM memory m WHERE m.namespace = %(namespace)s AND m.author_key = k.key
    ORDER BY m.created_at DESC, m.id DESC, m.part DESC LIMIT %(last)s) AS found;

-- memory_written_by --
-- Return which of a few hundred memories an author wrote.
SELECT ord FROM memory
WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s) AND author = %(author)s ORDER BY ord;

-- memory_turns --
-- Return the sessions around some memories, in order, with the columns of memory_heads; a memory without one is alone.
SELECT m.namespace, m.ord, m.session, m.author, right(rtrim(m.text, E' \t\r\n'), 1) = '?',
       (extract(year FROM m.created_at) * 12 + extract(month FROM m.created_at) - 1)::int,
       m.id, m.part, m.importance, m.content, extract(epoch FROM m.created_at)::float8,
       extract(epoch FROM m.updated_at)::float8
FROM memory m
WHERE m.namespace = %(namespace)s AND m.parts = 0 AND (
    m.session IN (SELECT s.session FROM memory s
        WHERE s.namespace = %(namespace)s AND s.ord = ANY(%(ords)s) AND s.session IS NOT NULL)
    OR (m.session IS NULL AND m.ord = ANY(%(ords)s)))
ORDER BY m.namespace, m.session, coalesce(m.position, 9223372036854775807), m.created_at, m.id, m.part LIMIT %(limit)s;

-- memory_turns_vectors --
-- Like memory_turns, with vectors if the sessions are not too long; one index probe for each memory.
WITH turns AS MATERIALIZED (
    SELECT m.namespace, m.ord, m.session, m.author, right(rtrim(m.text, E' \t\r\n'), 1) = '?' AS asks,
           (extract(year FROM m.created_at) * 12 + extract(month FROM m.created_at) - 1)::int AS month,
           m.id, m.part, m.importance, m.content, extract(epoch FROM m.created_at)::float8 AS created,
           extract(epoch FROM m.updated_at)::float8 AS updated,
           row_number() OVER (ORDER BY m.namespace, m.session, coalesce(m.position, 9223372036854775807), m.created_at, m.id,
                                       m.part) AS place
    FROM memory m
    WHERE m.namespace = %(namespace)s AND m.parts = 0 AND (
        m.session IN (SELECT s.session FROM memory s
            WHERE s.namespace = %(namespace)s AND s.ord = ANY(%(ords)s) AND s.session IS NOT NULL)
        OR (m.session IS NULL AND m.ord = ANY(%(ords)s)))
    ORDER BY place LIMIT %(limit)s
)
SELECT t.namespace, t.ord, t.session, t.author, t.asks, t.month, t.id, t.part, t.importance, t.content, t.created, t.updated,
       CASE WHEN (SELECT count(*) FROM turns) < %(limit)s THEN (
           SELECT public.vector_send(e.vector) FROM embedding e WHERE e.namespace = %(namespace)s AND e.ord = t.ord
             AND (%(embedder)s::jsonb IS NULL OR (SELECT value FROM meta WHERE key = 'embedder') = %(embedder)s::jsonb)) END
FROM turns t ORDER BY t.place;

-- nearest_turns --
-- Return the rows of the statement nearest, without a namespace, and then the turns around these memories.
WITH nearest AS MATERIALIZED (
    SELECT ord, -(vector <#> %(vector)s::public.vector) AS cosine FROM embedding
    WHERE namespace = %(namespace)s
      AND (%(embedder)s::jsonb IS NULL OR (SELECT value FROM meta WHERE key = 'embedder') = %(embedder)s::jsonb)
    ORDER BY vector <#> %(vector)s::public.vector, ord LIMIT %(depth)s
), turns AS MATERIALIZED (
    SELECT m.namespace, m.ord, m.session, m.author, right(rtrim(m.text, E' \t\r\n'), 1) = '?' AS asks,
           (extract(year FROM m.created_at) * 12 + extract(month FROM m.created_at) - 1)::int AS month,
           m.id, m.part, m.importance, m.content, extract(epoch FROM m.created_at)::float8 AS created,
           extract(epoch FROM m.updated_at)::float8 AS updated,
           row_number() OVER (ORDER BY m.namespace, m.session, coalesce(m.position, 9223372036854775807), m.created_at, m.id,
                                       m.part) AS place
    FROM memory m
    WHERE m.namespace = %(namespace)s AND m.parts = 0 AND (
        m.session IN (SELECT s.session FROM memory s
            WHERE s.namespace = %(namespace)s AND s.ord IN (SELECT ord FROM nearest) AND s.session IS NOT NULL)
        OR (m.session IS NULL AND m.ord IN (SELECT ord FROM nearest)))
    ORDER BY place LIMIT %(limit)s
)
SELECT NULL AS namespace, ord, NULL AS session, NULL AS author, false AS asks, 0 AS month, NULL AS id, 0 AS part, cosine,
       NULL::bytea AS content, 0.0::float8 AS created, 0.0::float8 AS updated, NULL::bytea AS vector,
       row_number() OVER (ORDER BY cosine DESC, ord) AS place
FROM nearest
UNION ALL
SELECT t.namespace, t.ord, t.session, t.author, t.asks, t.month, t.id, t.part, t.importance, t.content, t.created, t.updated,
       CASE WHEN (SELECT count(*) FROM turns) < %(limit)s THEN (
           SELECT public.vector_send(e.vector) FROM embedding e WHERE e.namespace = %(namespace)s AND e.ord = t.ord
             AND (%(embedder)s::jsonb IS NULL OR (SELECT value FROM meta WHERE key = 'embedder') = %(embedder)s::jsonb)) END,
       t.place
FROM turns t
ORDER BY namespace NULLS FIRST, place;

-- forget_count --
-- Count the memories that a forget would remove, whole and with parts; nothing is locked.
SELECT count(*) FILTER (WHERE part = 0), count(*) FROM memory
WHERE namespace = %(namespace)s AND <open> AND <kept>
  AND (%(ids)s::text[] IS NULL OR id = ANY(%(ids)s))
  AND <memory_filters>;

-- forget_select --
-- Lock the memories to forget, in the common order, so that two forgets do not deadlock. One that is not locked was
-- replaced or removed while the lock was waited for: this statement does not see the new row of a replaced one. What a
-- drop takes is forgotten already. IN is looked up by a hash, whatever number of rows the planner expects.
WITH existing AS MATERIALIZED (
    SELECT id, part, ord FROM memory
    WHERE namespace = %(namespace)s AND (%(ids)s::text[] IS NULL OR id = ANY(%(ids)s)) AND <kept> AND <memory_filters>
), locked AS MATERIALIZED (
    SELECT ord FROM memory
    WHERE namespace = %(namespace)s AND (%(ids)s::text[] IS NULL OR id = ANY(%(ids)s)) AND <kept> AND <memory_filters>
    ORDER BY id, part FOR UPDATE
)
SELECT id, part, ord, ord IN (SELECT ord FROM locked) FROM existing ORDER BY id, part;

-- forget_memory --
-- Delete memories.
DELETE FROM memory WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s);

-- forget_pending --
-- Delete the pending marks of memories; it waits for a flush that holds a row, whose memory is then in the postings.
DELETE FROM pending WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s) RETURNING ord;

-- forget_forward --
-- Delete forward entries; returns them, so that the postings can be cleared.
DELETE FROM forward WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s) RETURNING ord, length, entries;

-- forget_embedding --
-- Delete the vectors of removed memories.
DELETE FROM embedding WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s);

-- forget_staging --
-- Delete their staging vectors too; after the other table, in the order in which a rebuild locks.
DELETE FROM embedding_next WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s);

-- store_backlog --
-- Count what waits for maintain, with the age of the oldest, and what has no vector; return the age of the last backup.
SELECT (SELECT count(*) FROM pending) + (SELECT count(*) FROM uncompared),
       extract(epoch FROM now() - least((SELECT min(m.updated_at) FROM pending p JOIN memory m USING (namespace, ord)),
                                        (SELECT min(at) FROM uncompared)))::float8,
       (SELECT count(*) FROM memory m WHERE parts = 0 AND EXISTS (SELECT FROM meta WHERE key = 'embedder')
        AND NOT EXISTS (SELECT 1 FROM embedding e WHERE e.namespace = m.namespace AND e.ord = m.ord)),
       (SELECT extract(epoch FROM now() - (value ->> 'at')::timestamptz)::float8 FROM meta WHERE key = 'backup');

-- stats --
-- Count memories, parts, namespaces, vectors and pending memories of one namespace, or of all, with the bytes of the store.
-- Writers count what is indexed; an index has the memories that are not one indexed row: split ones, parts, sensitive ones.
SELECT (SELECT coalesce(sum(memories), 0)::bigint FROM namespace n
        WHERE (%(namespace)s::text IS NULL OR namespace = %(namespace)s) AND coalesce(state, 'moving') = 'moving'),
       (SELECT count(*) FROM memory m
        WHERE part = 0 AND parts <> 0 AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
          AND NOT EXISTS (SELECT 1 FROM namespace o WHERE o.namespace = m.namespace AND o.state <> 'moving')),
       (SELECT count(*) FROM memory m WHERE part > 0 AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
          AND NOT EXISTS (SELECT 1 FROM namespace o WHERE o.namespace = m.namespace AND o.state <> 'moving')),
       (SELECT count(*) FROM namespace n
        WHERE (%(namespace)s::text IS NULL OR namespace = %(namespace)s) AND coalesce(state, 'moving') = 'moving'
          AND EXISTS (SELECT FROM memory m WHERE m.namespace = n.namespace)),
       (SELECT count(*) FROM embedding WHERE %(namespace)s::text IS NULL OR namespace = %(namespace)s),
       (SELECT count(*) FROM pending WHERE %(namespace)s::text IS NULL OR namespace = %(namespace)s),
       (SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace
        WHERE s.nspname = 'semmem' AND c.relkind = 'r');

-- <waiting_keys> --
-- The keys of the concepts of pending memories, from packed entries, with whether a memory mentions each.
SELECT get_byte(e, o)::bigint | (get_byte(e, o + 1)::bigint << 8) | (get_byte(e, o + 2)::bigint << 16)
       | (get_byte(e, o + 3)::bigint << 24) | (get_byte(e, o + 4)::bigint << 32) | (get_byte(e, o + 5)::bigint << 40)
       | (get_byte(e, o + 6)::bigint << 48) | (get_byte(e, o + 7)::bigint << 56) AS key,
       (get_byte(e, o + 8) > 0 OR get_byte(e, o + 9) > 0 OR get_byte(e, o + 10) > 0)::int AS n
FROM (SELECT f.entries AS e, o FROM pending p JOIN forward f USING (namespace, ord)
      CROSS JOIN LATERAL generate_series(0, length(f.entries) - 16, 16) AS o
      WHERE %(namespace)s::text IS NULL OR namespace = %(namespace)s) AS packed
WHERE get_byte(e, o + 12) > 0

-- stats_exact --
-- Count concepts and mentions of one namespace, or of all, from every key.
WITH waiting AS (
    <waiting_keys>
), folded AS MATERIALIZED (
    SELECT key, n FROM posting WHERE kind > 0 AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
    UNION ALL
    SELECT u.key, (get_byte(l.entries, 12 * u.at::int - 8) + get_byte(l.entries, 12 * u.at::int - 7)
                   + get_byte(l.entries, 12 * u.at::int - 4) > 0)::int
    FROM lone_posting l CROSS JOIN LATERAL unnest(l.keys) WITH ORDINALITY AS u(key, at)
    WHERE (%(namespace)s::text IS NULL OR l.namespace = %(namespace)s) AND get_byte(l.kinds, u.at::int - 1) > 0
      AND NOT EXISTS (SELECT FROM posting p WHERE p.namespace = l.namespace AND p.key = u.key)
)
SELECT (SELECT count(DISTINCT key) FROM (
            SELECT key FROM folded UNION ALL SELECT key FROM waiting) AS held),
       (SELECT coalesce(sum(n), 0)::bigint FROM (
            SELECT n FROM folded UNION ALL SELECT n FROM waiting) AS held);

-- stats_concepts --
-- Count the concepts whose keys are among the lowest, up to one; the highest byte of these is below a number. Keys are
-- hashes, so there are as many in every range of that width.
SELECT count(DISTINCT key) FROM (
    SELECT key FROM posting
    WHERE kind > 0 AND key <= %(upto)s::bigint AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
    UNION ALL
    SELECT u.key FROM lone_posting l CROSS JOIN LATERAL unnest(l.keys) WITH ORDINALITY AS u(key, at)
    WHERE l.first <= %(upto)s::bigint AND (%(namespace)s::text IS NULL OR l.namespace = %(namespace)s)
      AND u.key <= %(upto)s::bigint AND get_byte(l.kinds, u.at::int - 1) > 0
    UNION ALL
    SELECT key FROM (<waiting_keys> AND (get_byte(e, o + 7) + 128) %% 256 < %(bytes)s) AS waiting) AS held;

-- stats_forwards --
-- Return how many forward entries are in a sample of one namespace, or of all, and these: of each so many row ids, one.
SELECT count(*), coalesce(string_agg(f.entries, ''::bytea), ''::bytea)
FROM namespace n CROSS JOIN LATERAL generate_series(1, (n.ords + %(step)s::bigint - 1) / %(step)s::bigint) AS o(piece)
JOIN forward f ON f.namespace = n.namespace
    AND f.ord = o.piece * %(step)s::bigint - abs(hashtextextended(n.namespace, o.piece) %% %(step)s::bigint)
WHERE %(namespace)s::text IS NULL OR n.namespace = %(namespace)s;
