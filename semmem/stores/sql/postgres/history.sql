-- history_list --
-- The versions of one memory, oldest first, with who ended each and when; the one that is there now comes last.
SELECT namespace, id, 0 AS part, text, title, author, session, position, source, tags, metadata, importance, created_at,
       updated_at, version, sensitive, 0::bigint AS ord, changed_by, changed_at, forgotten_at
FROM history WHERE namespace = %(namespace)s AND id = %(id)s
UNION ALL
SELECT namespace, id, part, text, title, author, session, position, source, tags, metadata, importance, created_at,
       updated_at, version, sensitive, ord, NULL, NULL, NULL
FROM memory WHERE namespace = %(namespace)s AND id = %(id)s AND part = 0
ORDER BY version;

-- history_keep --
-- What is to be changed or forgotten softly, as it is now: with what the postings hold of each passage, and its vectors. A
-- version of that number is there only where a memory was forgotten and remembered anew at one time.
INSERT INTO history (namespace, id, version, text, title, author, session, position, source, tags, metadata, importance,
                     created_at, updated_at, sensitive, valid_from, valid_to, expires_at, pinned, seen_count, payload,
                     changed_by, changed_at, forgotten_at, length, entries, vectors)
SELECT m.namespace, m.id, m.version, m.text, m.title, m.author, m.session, m.position, m.source, m.tags, m.metadata,
       m.importance, m.created_at, m.updated_at, m.sensitive, m.valid_from, m.valid_to, m.expires_at, m.pinned,
       m.seen_count, m.payload, (%(by)s::jsonb) ->> m.id, now(),
       CASE WHEN %(forgotten)s::boolean THEN now() END, coalesce(f.length, 0), f.entries, v.vectors
FROM memory m
CROSS JOIN LATERAL (
    SELECT sum(h.length)::int AS length,
           string_agg(int4send(p.part) || int4send(h.length) || int4send(octet_length(h.entries)) || h.entries,
                      ''::bytea ORDER BY p.part) AS entries
    FROM memory p JOIN forward h ON h.namespace = p.namespace AND h.ord = p.ord
    WHERE p.namespace = %(namespace)s AND p.id = m.id) AS f
CROSS JOIN LATERAL (
    SELECT (SELECT int4send(octet_length(convert_to(value::text, 'UTF8'))) || convert_to(value::text, 'UTF8')
            FROM meta WHERE key = 'embedder')
           || string_agg(int4send(p.part) || int4send(octet_length(public.vector_send(e.vector)))
                         || public.vector_send(e.vector), ''::bytea ORDER BY p.part) AS vectors
    FROM memory p JOIN embedding e ON e.namespace = p.namespace AND e.ord = p.ord
    WHERE p.namespace = %(namespace)s AND p.id = m.id) AS v
WHERE m.namespace = %(namespace)s AND m.ord = ANY(%(ords)s) AND m.part = 0
ON CONFLICT (namespace, id, version) DO UPDATE SET
    (text, title, author, session, position, source, tags, metadata, importance, created_at, updated_at, sensitive,
     valid_from, valid_to, expires_at, pinned, seen_count, payload, changed_by, changed_at, forgotten_at, length, entries,
     vectors)
    = ROW(excluded.text, excluded.title, excluded.author, excluded.session, excluded.position, excluded.source,
          excluded.tags, excluded.metadata, excluded.importance, excluded.created_at, excluded.updated_at,
          excluded.sensitive, excluded.valid_from, excluded.valid_to, excluded.expires_at, excluded.pinned,
          excluded.seen_count, excluded.payload, excluded.changed_by, excluded.changed_at, excluded.forgotten_at,
          excluded.length, excluded.entries, excluded.vectors);

-- history_hide --
-- A memory becomes sensitive: so do its earlier versions, and what was found in them goes. The hash is drawn by chance.
UPDATE history SET sensitive = true, payload = %(payload)s, length = 0, entries = NULL, vectors = NULL
WHERE namespace = %(namespace)s AND id = ANY(%(ids)s) AND NOT sensitive;
