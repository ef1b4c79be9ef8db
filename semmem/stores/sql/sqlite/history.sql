-- history_list --
-- The versions of one memory, oldest first, with who ended each and when; the one that is there now comes last.
SELECT namespace, id, 0, text, title, author, session, position, source, tags, metadata, importance, created_at,
       updated_at, version, sensitive, valid_from, valid_to, expires_at, pinned, seen_count, NULL, 0, changed_by, changed_at, forgotten_at
FROM history WHERE namespace = :namespace AND id = :id
UNION ALL
SELECT <memory_columns>, NULL, NULL, NULL
FROM memory WHERE namespace = :namespace AND id = :id AND part = 0
ORDER BY version LIMIT :limit OFFSET :offset;

-- history_keep --
-- What is to be changed or forgotten softly, as it is now: with the tokens of each passage. A version of that number is there
-- only where a memory was forgotten and its id used anew.
INSERT OR REPLACE INTO history (namespace, id, version, text, title, author, session, position, source, tags, metadata,
                                importance, created_at, updated_at, sensitive, valid_from, valid_to, expires_at, pinned,
                                seen_count, payload, changed_by, changed_at, forgotten_at, length, entries)
SELECT m.namespace, m.id, m.version, m.text, m.title, m.author, m.session, m.position, m.source, m.tags, m.metadata,
       m.importance, m.created_at, m.updated_at, m.sensitive, m.valid_from, m.valid_to, m.expires_at, m.pinned,
       m.seen_count, m.payload, :by, :at, CASE WHEN :forgotten THEN :at END,
       (SELECT coalesce(sum(p.length), 0) FROM memory AS p WHERE p.namespace = m.namespace AND p.id = m.id),
       (SELECT json_group_array(json_array(p.part, p.length, l.tokens)) FROM (
            SELECT part, length, row FROM memory WHERE namespace = m.namespace AND id = m.id AND parts = 0 ORDER BY part) AS p
        JOIN lexical AS l ON l.rowid = p.row)
FROM memory AS m WHERE m.namespace = :namespace AND m.id = :id AND m.part = 0;

-- history_hide --
-- A memory becomes sensitive: so do its earlier versions, and what was found in them goes. The hash is drawn by chance.
UPDATE history SET sensitive = true, payload = :payload, length = 0, entries = NULL, vectors = NULL
WHERE namespace = :namespace AND id = :id AND NOT sensitive;

-- history_forget --
-- The versions before the one that is forgotten softly, which has just been kept, go with it.
UPDATE history SET forgotten_at = :at WHERE namespace = :namespace AND id = :id AND forgotten_at IS NULL;

-- history_forgotten --
-- What was forgotten softly last under an id.
SELECT namespace, id, 0, text, title, author, session, position, source, tags, metadata, importance, created_at,
       updated_at, version, sensitive, valid_from, valid_to, expires_at, pinned, seen_count, NULL, 0, payload
FROM history WHERE namespace = :namespace AND id = :id AND forgotten_at IS NOT NULL ORDER BY version DESC LIMIT 1;

-- history_take --
-- It becomes a memory again; no row where somebody was faster.
DELETE FROM history WHERE namespace = :namespace AND id = :id AND version = :version AND forgotten_at IS NOT NULL
RETURNING forgotten_at;

-- history_seen --
-- What came back was remembered again just now: it stays for as long as its namespace keeps a memory.
UPDATE memory SET last_seen = :at WHERE namespace = :namespace AND id = :id AND part = 0;

-- history_return --
-- And the versions before it are its versions again.
UPDATE history SET forgotten_at = NULL
WHERE namespace = :namespace AND id = :id AND version < :version AND forgotten_at = :forgotten_at;

-- purge_select --
-- The lives that were forgotten softly and are to go for good, by what they were at their ends.
SELECT id, forgotten_at FROM history AS h WHERE namespace = :namespace AND forgotten_at IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM history AS l WHERE l.namespace = h.namespace AND l.id = h.id
                  AND l.forgotten_at = h.forgotten_at AND l.version > h.version)
  AND (:ids IS NULL OR id IN (SELECT value FROM json_each(:ids)))
  AND <memory_filters>
ORDER BY id;

-- purge_history --
-- The versions of memories that are gone; an earlier life that was forgotten softly may still be taken back.
DELETE FROM history WHERE namespace = :namespace AND id IN (SELECT value FROM json_each(:gone)) AND forgotten_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM memory AS m WHERE m.namespace = :namespace AND m.id = history.id);

-- purge_earlier --
-- Earlier lives, by their ids and when they were forgotten.
DELETE FROM history WHERE namespace = :namespace
  AND (id, forgotten_at) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:earlier));

-- purge_link --
-- Ties of what is gone, with every earlier life; each end by its index.
DELETE FROM link WHERE namespace = :namespace AND (namespace, from_id, type, to_id) IN (
    WITH gone(id) AS (
        SELECT value FROM json_each(:ids)
        WHERE NOT EXISTS (SELECT 1 FROM memory AS m WHERE m.namespace = :namespace AND m.id = value)
          AND NOT EXISTS (SELECT 1 FROM history AS h WHERE h.namespace = :namespace AND h.id = value))
    SELECT l.namespace, l.from_id, l.type, l.to_id
    FROM gone AS g CROSS JOIN link AS l ON l.namespace = :namespace AND l.from_id = g.id
    UNION ALL
    SELECT l.namespace, l.from_id, l.type, l.to_id
    FROM gone AS g CROSS JOIN link AS l ON l.namespace = :namespace AND l.to_id = g.id);

-- purge_judgement --
-- What was said of it.
DELETE FROM judgement WHERE namespace = :namespace AND id IN (SELECT value FROM json_each(:ids))
  AND NOT EXISTS (SELECT 1 FROM memory AS m WHERE m.namespace = :namespace AND m.id = judgement.id)
  AND NOT EXISTS (SELECT 1 FROM history AS h WHERE h.namespace = :namespace AND h.id = judgement.id);

-- purge_judged --
-- Questions that found it may quote it: their lines go, and before them what was said of the other hits.
DELETE FROM judgement WHERE namespace = :namespace AND recall_id IN (
    SELECT l.recall_id FROM recall_log AS l WHERE l.namespace = :namespace AND EXISTS (
        SELECT 1 FROM json_each(l.hits) AS t WHERE t.value IN (SELECT value FROM json_each(:ids))));

-- purge_recall_log --
-- The lines themselves.
DELETE FROM recall_log WHERE namespace = :namespace AND EXISTS (
    SELECT 1 FROM json_each(recall_log.hits) AS t WHERE t.value IN (SELECT value FROM json_each(:ids)));

-- purge_change --
-- What became of it before; that it was forgotten stays for those who keep a copy, and goes with the changes.
DELETE FROM change WHERE namespace = :namespace AND id IN (SELECT value FROM json_each(:ids)) AND kind <> 'forgotten'
  AND NOT EXISTS (SELECT 1 FROM memory AS m WHERE m.namespace = :namespace AND m.id = change.id);

-- sweep_forgotten_due --
-- Where something was forgotten softly so long ago that nobody takes it back.
SELECT DISTINCT namespace FROM history WHERE forgotten_at < :forgotten_before ORDER BY 1;

-- sweep_forgotten --
-- Some of it.
DELETE FROM history WHERE (namespace, id, version) IN (
    SELECT namespace, id, version FROM history
    WHERE namespace = :namespace AND forgotten_at < :forgotten_before LIMIT :limit)
RETURNING id;

-- sweep_forgotten_left --
-- Of which nothing is kept any more: one that was remembered anew and forgotten again later may still be taken back.
SELECT value FROM json_each(:ids) WHERE NOT EXISTS (
    SELECT 1 FROM history AS h WHERE h.namespace = :namespace AND h.id = value);

-- sweep_versions_due --
-- Where a memory has more earlier versions than are kept.
SELECT DISTINCT namespace FROM (
    SELECT namespace FROM history WHERE forgotten_at IS NULL
    GROUP BY namespace, id HAVING count(*) > :versions) ORDER BY 1;

-- sweep_versions --
-- The oldest of them, some at a time. Those of what was forgotten go with it.
DELETE FROM history WHERE namespace = :namespace AND (id, version) IN (
    SELECT id, version FROM (
        SELECT id, version, row_number() OVER (PARTITION BY id ORDER BY version DESC) AS place
        FROM history WHERE namespace = :namespace AND forgotten_at IS NULL)
    WHERE place > :versions LIMIT :limit);

-- sweep_expired_due --
-- Where something has vanished.
SELECT DISTINCT namespace FROM memory WHERE expires_at <= :now ORDER BY 1;

-- sweep_expired --
-- Some of it, or of the memories that are asked for.
SELECT DISTINCT id FROM memory WHERE namespace = :namespace AND expires_at <= :now
  AND (:ids IS NULL OR id IN (SELECT value FROM json_each(:ids))) ORDER BY id LIMIT :limit;

-- history_at --
-- The version of a memory that was valid at a time: of those that had begun the last, if it had not ended.
SELECT * FROM (
    SELECT namespace, id, 0, text, title, author, session, position, source, tags, metadata, importance, created_at,
           updated_at, version, sensitive, valid_from, valid_to, expires_at, pinned, seen_count, NULL, 0
    FROM history WHERE namespace = :namespace AND id = :id AND forgotten_at IS NULL
    UNION ALL
    SELECT namespace, id, part, text, title, author, session, position, source, tags, metadata, importance, created_at,
           updated_at, version, sensitive, valid_from, valid_to, expires_at, pinned, seen_count,
           last_seen, ord
    FROM memory WHERE namespace = :namespace AND id = :id AND part = 0) AS v
WHERE coalesce(valid_from, updated_at) <= :at
  AND EXISTS (SELECT 1 FROM memory AS m WHERE m.namespace = v.namespace AND m.id = v.id AND m.part = 0
              AND (m.expires_at IS NULL OR m.expires_at > :now))
ORDER BY version DESC LIMIT 1;

-- history_earlier --
-- The versions that were valid at a time, of memories that have been changed since: as history_at has them, with what was
-- indexed of them.
SELECT v.namespace, v.id, 0, v.text, v.title, v.author, v.session, v.position, v.source, v.tags, v.metadata,
       v.importance, v.created_at, v.updated_at, v.version, v.sensitive, v.valid_from, v.valid_to, v.expires_at, v.pinned,
       v.seen_count, NULL, 0, v.length, v.entries
FROM (SELECT id, max(version) AS version FROM history
      WHERE namespace = :namespace AND forgotten_at IS NULL AND coalesce(valid_from, updated_at) <= :at
      GROUP BY id) AS k
JOIN history AS v ON v.namespace = :namespace AND v.id = k.id AND v.version = k.version
JOIN memory AS m ON m.namespace = :namespace AND m.id = k.id AND m.part = 0
WHERE NOT v.sensitive AND v.entries IS NOT NULL AND (v.valid_to IS NULL OR v.valid_to > :at)
  AND coalesce(m.valid_from, m.updated_at) > :at AND (m.expires_at IS NULL OR m.expires_at > :now)
ORDER BY v.id LIMIT :limit;
