-- history_list --
-- Return the versions of a memory, oldest first, with who ended each and when; the present one comes last.
SELECT <version_columns>, changed_by, changed_at, forgotten_at
FROM history h WHERE namespace = %(namespace)s AND id = %(id)s AND <open> AND <undropped>
UNION ALL
SELECT <memory_columns>, NULL, NULL, NULL
FROM memory WHERE namespace = %(namespace)s AND id = %(id)s AND part = 0 AND <open> AND <kept>
ORDER BY version LIMIT %(limit)s OFFSET %(offset)s;

-- history_keep --
-- Copy a memory into the history before it is changed or softly forgotten, with the entries and vectors of its
-- passages. A version of that number exists only where a memory was forgotten and remembered anew at the same time. The
-- namespace stands as a constant, else every shard is asked.
INSERT INTO history (namespace, id, version, updated_at, <fields>, seen_count, payload,
                     changed_by, changed_at, forgotten_at, length, entries, vectors, text_at)
SELECT %(namespace)s::text, m.id, m.version, m.updated_at, <m.fields>, m.seen_count, m.payload,
       (%(by)s::jsonb) ->> m.id, now(),
       CASE WHEN %(forgotten)s::boolean THEN now() END, coalesce(f.length, 0), f.entries, v.vectors, m.text_at
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
    (updated_at, <fields>, seen_count, payload, changed_by, changed_at, forgotten_at, length, entries,
     vectors, text_at)
    = ROW(excluded.updated_at, <excluded.fields>, excluded.seen_count, excluded.payload, excluded.changed_by, excluded.changed_at, excluded.forgotten_at,
          excluded.length, excluded.entries, excluded.vectors, excluded.text_at);

-- history_trim --
-- Delete some of the oldest versions of memories whose present version has just been kept, beyond those that are kept by
-- their numbers, which have gaps only where a memory was forgotten, stored anew and restored. Each memory by the primary key, so one row or none is read.
DELETE FROM history WHERE namespace = %(namespace)s AND (id, version) IN (
    SELECT v.id, v.version FROM memory m
    CROSS JOIN LATERAL (
        SELECT h.id, h.version FROM history h
        WHERE h.namespace = %(namespace)s AND h.id = m.id AND h.forgotten_at IS NULL
          AND h.version <= m.version - %(versions)s::int
        ORDER BY h.version LIMIT 20) AS v
    WHERE m.namespace = %(namespace)s AND m.ord = ANY(%(ords)s) AND m.part = 0);

-- history_entries --
-- Return the entries of the versions of some memories, for the names in them; none where no name was corrected.
SELECT entries FROM history WHERE namespace = %(namespace)s AND id = ANY(%(ids)s) AND entries IS NOT NULL
  AND EXISTS (SELECT FROM correction WHERE namespace = %(namespace)s);

-- history_hide --
-- Make the earlier versions of a memory that becomes sensitive sensitive too: without entries, with random hashes, and
-- without the hash of a note that was imported.
UPDATE history SET sensitive = true, payload = %(payload)s, length = 0, entries = NULL, vectors = NULL,
    metadata = metadata - 'note_hash'
WHERE namespace = %(namespace)s AND id = ANY(%(ids)s) AND NOT sensitive;

-- history_forget --
-- Mark the earlier versions of a memory as forgotten together with its last version, which has just been kept. The time is
-- that version's, since now() of two statements differs where a node works out one and the coordinator the other.
UPDATE history AS h SET forgotten_at = (
    SELECT max(l.forgotten_at) FROM history l WHERE l.namespace = %(namespace)s AND l.id = h.id)
WHERE h.namespace = %(namespace)s AND h.id = ANY(%(ids)s) AND h.forgotten_at IS NULL;

-- history_forgotten --
-- Return and lock the memory last softly forgotten under an id, with its vectors.
SELECT <version_columns>, payload, text_at, vectors
FROM history h
WHERE namespace = %(namespace)s AND id = %(id)s AND forgotten_at IS NOT NULL AND <open> AND <undropped>
ORDER BY version DESC LIMIT 1;

-- history_all_forgotten --
-- Return the softly forgotten memories, each as it was last, with who forgot it and when; the latest first. An id that
-- was remembered anew is left out.
SELECT <version_columns>, changed_by, forgotten_at FROM history AS h
WHERE namespace = %(namespace)s AND forgotten_at IS NOT NULL AND <open> AND <undropped>
  AND NOT EXISTS (SELECT 1 FROM history AS l WHERE l.namespace = h.namespace AND l.id = h.id AND l.version > h.version
                  AND l.forgotten_at IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM memory AS m WHERE m.namespace = h.namespace AND m.id = h.id)
ORDER BY forgotten_at DESC, id LIMIT %(limit)s;

-- history_take --
-- Remove the version that is restored as a memory; no row where another process was faster, also one that restored it,
-- changed it and forgot a later version since. What a drop takes is gone already.
DELETE FROM history h WHERE namespace = %(namespace)s AND id = %(id)s AND version = %(version)s AND forgotten_at IS NOT NULL
  AND <undropped>
  AND NOT EXISTS (SELECT FROM history l WHERE l.namespace = h.namespace AND l.id = h.id AND l.version > h.version
                  AND l.forgotten_at IS NOT NULL)
RETURNING forgotten_at;

-- history_seen --
-- Set the time of a restored memory to now, from which keep_days of its namespace counts, and how often it was seen.
UPDATE memory m SET last_seen = now(), seen_count = r.seen_count
FROM unnest(%(ids)s::text[], %(counts)s::int[]) AS r(id, seen_count)
WHERE m.namespace = %(namespace)s AND m.id = r.id AND m.part = 0;

-- history_return --
-- Make the earlier versions of a restored memory its versions again.
UPDATE history SET forgotten_at = NULL
WHERE namespace = %(namespace)s AND id = %(id)s AND version < %(version)s AND forgotten_at = %(forgotten_at)s;

-- purge_count --
-- Count what would be removed for good: memories, and softly forgotten ones; an id that is both counts once.
SELECT count(*) FROM (
SELECT id FROM memory WHERE namespace = %(namespace)s AND part = 0 AND <open> AND <kept>
  AND (%(ids)s::text[] IS NULL OR id = ANY(%(ids)s))
  AND <memory_filters>
UNION
SELECT id FROM history h WHERE namespace = %(namespace)s AND forgotten_at IS NOT NULL AND <open>
  AND NOT EXISTS (SELECT FROM history l WHERE l.namespace = %(namespace)s AND l.id = h.id
                  AND l.forgotten_at = h.forgotten_at AND l.version > h.version)
  AND (%(ids)s::text[] IS NULL OR id = ANY(%(ids)s))
  AND <memory_filters>) AS gone;

-- purge_select --
-- Select softly forgotten memories by their last version; a present memory may have the same id.
SELECT id, forgotten_at FROM history h
WHERE namespace = %(namespace)s AND forgotten_at IS NOT NULL
  AND NOT EXISTS (SELECT FROM history l WHERE l.namespace = %(namespace)s AND l.id = h.id
                  AND l.forgotten_at = h.forgotten_at AND l.version > h.version)
  AND (%(ids)s::text[] IS NULL OR id = ANY(%(ids)s))
  AND <memory_filters>
ORDER BY id;

-- purge_history --
-- Delete the versions of removed memories, but not softly forgotten ones of the same id, which can be restored.
DELETE FROM history h WHERE namespace = %(namespace)s AND id = ANY(%(gone)s) AND forgotten_at IS NULL AND NOT EXISTS (
    SELECT FROM memory m WHERE m.namespace = h.namespace AND m.id = h.id);

-- purge_earlier --
-- Delete softly forgotten memories, by id and time of forgetting.
DELETE FROM history WHERE namespace = %(namespace)s
  AND (id, forgotten_at) IN (SELECT * FROM unnest(%(earlier)s::text[], %(times)s::timestamptz[]))
RETURNING id, forgotten_at;

-- purge_link --
-- Delete the links of ids of which nothing is left; each end by its index.
DELETE FROM link WHERE namespace = %(namespace)s AND (from_id = ANY(ARRAY(
    SELECT k.id FROM unnest(%(ids)s::text[]) AS k(id)
    WHERE NOT EXISTS (SELECT FROM memory m WHERE m.namespace = %(namespace)s AND m.id = k.id)
      AND NOT EXISTS (SELECT FROM history h WHERE h.namespace = %(namespace)s AND h.id = k.id)))
  OR to_id = ANY(ARRAY(
    SELECT k.id FROM unnest(%(ids)s::text[]) AS k(id)
    WHERE NOT EXISTS (SELECT FROM memory m WHERE m.namespace = %(namespace)s AND m.id = k.id)
      AND NOT EXISTS (SELECT FROM history h WHERE h.namespace = %(namespace)s AND h.id = k.id))));

-- purge_recall_log --
-- Delete the logged recalls in which these ids stand, also their rows in other namespaces: each has the question, which
-- may quote a memory.
DELETE FROM recall_log WHERE recall_id IN (
    SELECT l.recall_id FROM recall_log l WHERE l.namespace = %(namespace)s
      AND jsonb_path_query_array(l.hits, '$.keyvalue().key') ?| %(ids)s::text[]);

-- purge_change --
-- Delete earlier changes of these ids; the last one, that they were forgotten, stays for readers of changes.
DELETE FROM change c WHERE namespace = %(namespace)s AND id = ANY(%(ids)s) AND kind <> 'forgotten' AND NOT EXISTS (
    SELECT FROM memory m WHERE m.namespace = c.namespace AND m.id = c.id);

-- sweep_forgotten_due --
-- List the namespaces with softly forgotten memories whose time for restoring is over.
SELECT DISTINCT namespace FROM history
WHERE forgotten_at < now() - make_interval(secs => 86400 * %(forgotten_days)s::float8) ORDER BY 1;

-- sweep_forgotten --
-- Delete some softly forgotten memories whose time for restoring is over; not the versions of one that was restored while
-- their locks were waited for.
WITH old AS (
    SELECT h.id, h.version FROM history h WHERE h.namespace = %(namespace)s
      AND h.forgotten_at < now() - make_interval(secs => 86400 * %(forgotten_days)s::float8) LIMIT %(limit)s
)
DELETE FROM history h USING old
WHERE h.namespace = %(namespace)s AND h.id = old.id AND h.version = old.version
  AND h.forgotten_at < now() - make_interval(secs => 86400 * %(forgotten_days)s::float8) RETURNING h.id;

-- sweep_forgotten_left --
-- Return the ids of which nothing is kept any more; one that was forgotten again later can still be restored.
SELECT k.id FROM unnest(%(ids)s::text[]) AS k(id) WHERE NOT EXISTS (
    SELECT FROM history h WHERE h.namespace = %(namespace)s AND h.id = k.id);

-- sweep_versions_due --
-- List the namespaces where a memory has more earlier versions than are kept.
SELECT DISTINCT namespace FROM (
    SELECT namespace FROM history WHERE forgotten_at IS NULL
    GROUP BY namespace, id HAVING count(*) > %(versions)s) AS many ORDER BY 1;

-- sweep_versions --
-- Delete some of the oldest surplus versions; the versions of forgotten memories are removed with those instead.
DELETE FROM history WHERE namespace = %(namespace)s AND (id, version) IN (
    SELECT v.id, v.version FROM (
        SELECT h.id, h.version, row_number() OVER (PARTITION BY h.id ORDER BY h.version DESC) AS place
        FROM history h WHERE h.namespace = %(namespace)s AND h.forgotten_at IS NULL) AS v
    WHERE v.place > %(versions)s LIMIT %(limit)s);

-- sweep_expired_due --
-- List the namespaces with expired memories.
SELECT DISTINCT namespace FROM memory WHERE expires_at <= now() ORDER BY 1;

-- sweep_expired --
-- Select some expired memories, or those among the given ids; locked, so that one remembered anew meanwhile stays.
SELECT id FROM memory WHERE namespace = %(namespace)s AND expires_at <= now()
  AND (%(ids)s::text[] IS NULL OR id = ANY(%(ids)s))
ORDER BY id, part LIMIT %(limit)s FOR UPDATE;

-- history_at --
-- Return the version of a memory that was valid at a time: the last that had begun, if it had not ended.
SELECT * FROM (
    SELECT <version_columns>
    FROM history h WHERE namespace = %(namespace)s AND id = %(id)s AND forgotten_at IS NULL AND <open> AND <undropped>
    UNION ALL
    SELECT <memory_columns>
    FROM memory WHERE namespace = %(namespace)s AND id = %(id)s AND part = 0 AND <open> AND <kept>) AS v
WHERE coalesce(valid_from, updated_at) <= %(at)s::timestamptz
  AND EXISTS (SELECT FROM memory m WHERE m.namespace = %(namespace)s AND m.id = v.id AND m.part = 0
              AND (m.expires_at IS NULL OR m.expires_at > now()))
ORDER BY version DESC LIMIT 1;

-- history_earlier --
-- Return the versions that were valid at a time, of memories changed since, like history_at, with their index entries.
SELECT <version_columns_v>, v.length, v.entries, v.vectors
FROM (SELECT DISTINCT ON (h.id) h.* FROM history h
      WHERE h.namespace = %(namespace)s AND h.forgotten_at IS NULL AND <undropped>
        AND coalesce(h.valid_from, h.updated_at) <= %(at)s::timestamptz
      ORDER BY h.id, h.version DESC) AS v
JOIN memory m ON m.namespace = %(namespace)s AND m.id = v.id AND m.part = 0
WHERE <open> AND <kept> AND NOT v.sensitive AND v.entries IS NOT NULL AND (v.valid_to IS NULL OR v.valid_to > %(at)s::timestamptz)
  AND coalesce(m.valid_from, m.updated_at) > %(at)s::timestamptz AND (m.expires_at IS NULL OR m.expires_at > now())
ORDER BY v.id LIMIT %(limit)s;
