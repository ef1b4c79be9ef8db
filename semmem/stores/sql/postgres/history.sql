-- history_list --
-- The versions of one memory, oldest first, with who ended each and when; the one that is there now comes last.
SELECT namespace, id, 0 AS part, text, title, author, session, position, source, tags, metadata, importance, created_at,
       updated_at, version, sensitive, valid_from, valid_to, expires_at, pinned, seen_count, NULL::timestamptz,
       0::bigint AS ord, changed_by, changed_at, forgotten_at
FROM history WHERE namespace = %(namespace)s AND id = %(id)s
UNION ALL
SELECT <memory_columns>, NULL, NULL, NULL
FROM memory WHERE namespace = %(namespace)s AND id = %(id)s AND part = 0
ORDER BY version LIMIT %(limit)s OFFSET %(offset)s;

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

-- history_forget --
-- The versions before the one that is forgotten softly, which has just been kept, go with it.
UPDATE history SET forgotten_at = now()
WHERE namespace = %(namespace)s AND id = ANY(%(ids)s) AND forgotten_at IS NULL;

-- history_forgotten --
-- What was forgotten softly last under an id, with its vectors; locked for who takes it back.
SELECT namespace, id, 0 AS part, text, title, author, session, position, source, tags, metadata, importance, created_at,
       updated_at, version, sensitive, valid_from, valid_to, expires_at, pinned, seen_count, NULL::timestamptz,
       0::bigint AS ord, payload, vectors
FROM history WHERE namespace = %(namespace)s AND id = %(id)s AND forgotten_at IS NOT NULL
ORDER BY version DESC LIMIT 1;

-- history_take --
-- It becomes a memory again; no row where somebody was faster.
DELETE FROM history WHERE namespace = %(namespace)s AND id = %(id)s AND version = %(version)s AND forgotten_at IS NOT NULL
RETURNING forgotten_at;

-- history_seen --
-- What came back was remembered again just now: it stays for as long as its namespace keeps a memory.
UPDATE memory SET last_seen = now() WHERE namespace = %(namespace)s AND id = ANY(%(ids)s) AND part = 0;

-- history_return --
-- And the versions before it are its versions again.
UPDATE history SET forgotten_at = NULL
WHERE namespace = %(namespace)s AND id = %(id)s AND version < %(version)s AND forgotten_at = %(forgotten_at)s;

-- purge_count --
-- How many would go for good: memories, and what was forgotten softly; an id that is both counts once.
SELECT count(*) FROM (
SELECT id FROM memory WHERE namespace = %(namespace)s AND part = 0
  AND (%(ids)s::text[] IS NULL OR id = ANY(%(ids)s))
  AND <memory_filters>
UNION
SELECT id FROM history h WHERE namespace = %(namespace)s AND forgotten_at IS NOT NULL
  AND NOT EXISTS (SELECT FROM history l WHERE l.namespace = %(namespace)s AND l.id = h.id
                  AND l.forgotten_at = h.forgotten_at AND l.version > h.version)
  AND (%(ids)s::text[] IS NULL OR id = ANY(%(ids)s))
  AND <memory_filters>) AS gone;

-- purge_select --
-- The lives that were forgotten softly, by what they were at their ends; a memory may have one of the ids now.
SELECT id, forgotten_at FROM history h
WHERE namespace = %(namespace)s AND forgotten_at IS NOT NULL
  AND NOT EXISTS (SELECT FROM history l WHERE l.namespace = %(namespace)s AND l.id = h.id
                  AND l.forgotten_at = h.forgotten_at AND l.version > h.version)
  AND (%(ids)s::text[] IS NULL OR id = ANY(%(ids)s))
  AND <memory_filters>
ORDER BY id;

-- purge_history --
-- The versions of memories that are gone; an earlier life that was forgotten softly may still be taken back.
DELETE FROM history h WHERE namespace = %(namespace)s AND id = ANY(%(gone)s) AND forgotten_at IS NULL AND NOT EXISTS (
    SELECT FROM memory m WHERE m.namespace = h.namespace AND m.id = h.id);

-- purge_earlier --
-- Earlier lives, by their ids and when they were forgotten.
DELETE FROM history WHERE namespace = %(namespace)s
  AND (id, forgotten_at) IN (SELECT * FROM unnest(%(earlier)s::text[], %(times)s::timestamptz[]));

-- purge_link --
-- Ties of what is gone, with every earlier life; each end by its index.
DELETE FROM link WHERE namespace = %(namespace)s AND (from_id = ANY(ARRAY(
    SELECT k.id FROM unnest(%(ids)s::text[]) AS k(id)
    WHERE NOT EXISTS (SELECT FROM memory m WHERE m.namespace = %(namespace)s AND m.id = k.id)
      AND NOT EXISTS (SELECT FROM history h WHERE h.namespace = %(namespace)s AND h.id = k.id)))
  OR to_id = ANY(ARRAY(
    SELECT k.id FROM unnest(%(ids)s::text[]) AS k(id)
    WHERE NOT EXISTS (SELECT FROM memory m WHERE m.namespace = %(namespace)s AND m.id = k.id)
      AND NOT EXISTS (SELECT FROM history h WHERE h.namespace = %(namespace)s AND h.id = k.id))));

-- purge_judgement --
-- What was said of it.
DELETE FROM judgement j WHERE namespace = %(namespace)s AND id = ANY(%(ids)s)
  AND NOT EXISTS (SELECT FROM memory m WHERE m.namespace = j.namespace AND m.id = j.id)
  AND NOT EXISTS (SELECT FROM history h WHERE h.namespace = j.namespace AND h.id = j.id);

-- purge_recall_log --
-- Questions that found it may quote it: their lines go, and with them what was said of the other hits.
WITH gone AS (DELETE FROM recall_log WHERE namespace = %(namespace)s AND hits ?| %(ids)s::text[] RETURNING recall_id)
DELETE FROM judgement WHERE namespace = %(namespace)s AND recall_id IN (SELECT recall_id FROM gone);

-- purge_change --
-- What became of it before; that it was forgotten stays for those who keep a copy, and goes with the changes.
DELETE FROM change c WHERE namespace = %(namespace)s AND id = ANY(%(ids)s) AND kind <> 'forgotten' AND NOT EXISTS (
    SELECT FROM memory m WHERE m.namespace = c.namespace AND m.id = c.id);

-- sweep_forgotten_due --
-- Where something was forgotten softly so long ago that nobody takes it back.
SELECT DISTINCT namespace FROM history
WHERE forgotten_at < now() - make_interval(secs => 86400 * %(forgotten_days)s::float8) ORDER BY 1;

-- sweep_forgotten --
-- Some of it.
DELETE FROM history WHERE namespace = %(namespace)s AND (id, version) IN (
    SELECT h.id, h.version FROM history h WHERE h.namespace = %(namespace)s
      AND h.forgotten_at < now() - make_interval(secs => 86400 * %(forgotten_days)s::float8) LIMIT %(limit)s)
RETURNING id;

-- sweep_forgotten_left --
-- Of which nothing is kept any more: one that was remembered anew and forgotten again later may still be taken back.
SELECT k.id FROM unnest(%(ids)s::text[]) AS k(id) WHERE NOT EXISTS (
    SELECT FROM history h WHERE h.namespace = %(namespace)s AND h.id = k.id);

-- sweep_versions_due --
-- Where a memory has more earlier versions than are kept.
SELECT DISTINCT namespace FROM (
    SELECT namespace FROM history WHERE forgotten_at IS NULL
    GROUP BY namespace, id HAVING count(*) > %(versions)s) AS many ORDER BY 1;

-- sweep_versions --
-- The oldest of them, some at a time. Those of what was forgotten go with it.
DELETE FROM history WHERE namespace = %(namespace)s AND (id, version) IN (
    SELECT v.id, v.version FROM (
        SELECT h.id, h.version, row_number() OVER (PARTITION BY h.id ORDER BY h.version DESC) AS place
        FROM history h WHERE h.namespace = %(namespace)s AND h.forgotten_at IS NULL) AS v
    WHERE v.place > %(versions)s LIMIT %(limit)s);

-- sweep_expired_due --
-- Where something has vanished.
SELECT DISTINCT namespace FROM memory WHERE expires_at <= now() ORDER BY 1;

-- sweep_expired --
-- Some of it, or of the memories that are asked for. Locked, so that one that is remembered anew meanwhile stays.
SELECT id FROM memory WHERE namespace = %(namespace)s AND expires_at <= now()
  AND (%(ids)s::text[] IS NULL OR id = ANY(%(ids)s))
ORDER BY id, part LIMIT %(limit)s FOR UPDATE;

-- history_at --
-- The version of a memory that was valid at a time: of those that had begun the last, if it had not ended.
SELECT * FROM (
    SELECT namespace, id, 0 AS part, text, title, author, session, position, source, tags, metadata, importance, created_at,
           updated_at, version, sensitive, valid_from, valid_to, expires_at, pinned, seen_count,
           NULL::timestamptz AS last_seen, 0::bigint AS ord
    FROM history WHERE namespace = %(namespace)s AND id = %(id)s AND forgotten_at IS NULL
    UNION ALL
    SELECT namespace, id, part, text, title, author, session, position, source, tags, metadata, importance, created_at,
           updated_at, version, sensitive, valid_from, valid_to, expires_at, pinned, seen_count,
           last_seen, ord
    FROM memory WHERE namespace = %(namespace)s AND id = %(id)s AND part = 0) AS v
WHERE coalesce(valid_from, updated_at) <= %(at)s::timestamptz
  AND EXISTS (SELECT FROM memory m WHERE m.namespace = v.namespace AND m.id = v.id AND m.part = 0
              AND (m.expires_at IS NULL OR m.expires_at > now()))
ORDER BY version DESC LIMIT 1;

-- history_earlier --
-- The versions that were valid at a time, of memories that have been changed since: as history_at has them, with what was
-- indexed of them.
SELECT v.namespace, v.id, 0 AS part, v.text, v.title, v.author, v.session, v.position, v.source, v.tags, v.metadata,
       v.importance, v.created_at, v.updated_at, v.version, v.sensitive, v.valid_from, v.valid_to, v.expires_at, v.pinned,
       v.seen_count, NULL::timestamptz AS last_seen, 0::bigint AS ord, v.length, v.entries, v.vectors
FROM (SELECT DISTINCT ON (h.id) h.* FROM history h
      WHERE h.namespace = %(namespace)s AND h.forgotten_at IS NULL
        AND coalesce(h.valid_from, h.updated_at) <= %(at)s::timestamptz
      ORDER BY h.id, h.version DESC) AS v
JOIN memory m ON m.namespace = v.namespace AND m.id = v.id AND m.part = 0
WHERE NOT v.sensitive AND v.entries IS NOT NULL AND (v.valid_to IS NULL OR v.valid_to > %(at)s::timestamptz)
  AND coalesce(m.valid_from, m.updated_at) > %(at)s::timestamptz AND (m.expires_at IS NULL OR m.expires_at > now())
ORDER BY v.id LIMIT %(limit)s;
