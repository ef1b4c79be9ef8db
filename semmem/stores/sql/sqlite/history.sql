-- history_list --
-- Return the versions of a memory, oldest first, with who ended each and when; the present one comes last.
SELECT <version_columns>, changed_by, changed_at, forgotten_at
FROM history WHERE namespace = :namespace AND id = :id
UNION ALL
SELECT <memory_columns>, NULL, NULL, NULL
FROM memory WHERE namespace = :namespace AND id = :id AND part = 0
ORDER BY version LIMIT :limit OFFSET :offset;

-- history_keep --
-- Copy a memory into the history before it is changed or softly forgotten, with the tokens, entries and vectors of its
-- passages. A version
-- of that number exists only where a memory was forgotten and its id used anew.
INSERT OR REPLACE INTO history (namespace, id, version, updated_at, <fields>, seen_count, payload, changed_by, changed_at, forgotten_at, text_at, length, entries, vectors)
SELECT m.namespace, m.id, m.version, m.updated_at, <m.fields>, m.seen_count, m.payload, :by, :at, CASE WHEN :forgotten THEN :at END, m.text_at,
       (SELECT coalesce(sum(p.length), 0) FROM memory AS p WHERE p.namespace = m.namespace AND p.id = m.id),
       (SELECT json_group_array(json_array(p.part, p.length, l.tokens, hex(f.entries))) FROM (
            SELECT part, length, row FROM memory WHERE namespace = m.namespace AND id = m.id AND parts = 0 ORDER BY part) AS p
        JOIN lexical AS l ON l.rowid = p.row LEFT JOIN forward AS f ON f.row = p.row),
       (SELECT json_object('embedder', json((SELECT value FROM meta WHERE key = 'embedder')),
                           'vectors', json_group_array(json_array(p.part, hex(e.vector))))
        FROM memory AS p JOIN embedding AS e ON e.row = p.row WHERE p.namespace = m.namespace AND p.id = m.id
        HAVING count(*) > 0)
FROM memory AS m WHERE m.namespace = :namespace AND m.id = :id AND m.part = 0;

-- history_trim --
-- Delete some of the oldest versions of a memory whose present version has just been kept, beyond those that are kept: the
-- versions that are not forgotten have numbers without a gap.
DELETE FROM history WHERE namespace = :namespace AND id = :id AND version IN (
    SELECT h.version FROM history AS h
    WHERE h.namespace = :namespace AND h.id = :id AND h.forgotten_at IS NULL AND h.version <= (
        SELECT m.version FROM memory AS m WHERE m.namespace = :namespace AND m.id = :id AND m.part = 0) - :versions
    ORDER BY h.version LIMIT 20);

-- history_entries --
-- Return the entries of the versions of some memories, for the names in them.
SELECT entries FROM history
WHERE namespace = :namespace AND id IN (SELECT value FROM json_each(:ids)) AND entries IS NOT NULL;

-- history_hide --
-- Make the earlier versions of a memory that becomes sensitive sensitive too: without entries, with random hashes, and
-- without the hash of a note that was imported.
UPDATE history SET sensitive = true, payload = :payload, length = 0, entries = NULL, vectors = NULL,
    metadata = json_remove(metadata, '$.note_hash')
WHERE namespace = :namespace AND id = :id AND NOT sensitive;

-- history_forget --
-- Mark the earlier versions of a memory as forgotten together with its last version, which has just been kept.
UPDATE history SET forgotten_at = :at WHERE namespace = :namespace AND id = :id AND forgotten_at IS NULL;

-- history_forgotten --
-- Return the memory last softly forgotten under an id.
SELECT <version_columns>, payload, text_at, vectors
FROM history WHERE namespace = :namespace AND id = :id AND forgotten_at IS NOT NULL ORDER BY version DESC LIMIT 1;

-- history_all_forgotten --
-- Return the softly forgotten memories, each as it was last, with who forgot it and when; the latest first. An id that
-- was remembered anew is left out.
SELECT <version_columns>, changed_by, forgotten_at FROM history AS h
WHERE namespace = :namespace AND forgotten_at IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM history AS l WHERE l.namespace = h.namespace AND l.id = h.id AND l.version > h.version
                  AND l.forgotten_at IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM memory AS m WHERE m.namespace = h.namespace AND m.id = h.id)
ORDER BY forgotten_at DESC, id LIMIT :limit;

-- history_take --
-- Remove the version that is restored as a memory; no row where another process was faster, also one that restored it,
-- changed it and forgot a later version since.
DELETE FROM history WHERE namespace = :namespace AND id = :id AND version = :version AND forgotten_at IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM history AS l WHERE l.namespace = :namespace AND l.id = :id AND l.version > :version
                  AND l.forgotten_at IS NOT NULL)
RETURNING forgotten_at;

-- history_seen --
-- Set the time of a restored memory to now, from which keep_days of its namespace counts, and how often it was seen.
UPDATE memory SET last_seen = :at, seen_count = :seen_count WHERE namespace = :namespace AND id = :id AND part = 0;

-- history_return --
-- Make the earlier versions of a restored memory its versions again.
UPDATE history SET forgotten_at = NULL
WHERE namespace = :namespace AND id = :id AND version < :version AND forgotten_at = :forgotten_at;

-- purge_select --
-- Select the softly forgotten memories to remove for good, by their last version.
SELECT id, forgotten_at FROM history AS h WHERE namespace = :namespace AND forgotten_at IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM history AS l WHERE l.namespace = h.namespace AND l.id = h.id
                  AND l.forgotten_at = h.forgotten_at AND l.version > h.version)
  AND (:ids IS NULL OR id IN (SELECT value FROM json_each(:ids)))
  AND <memory_filters>
ORDER BY id;

-- purge_history --
-- Delete the versions of removed memories, but not softly forgotten ones of the same id, which can be restored.
DELETE FROM history WHERE namespace = :namespace AND id IN (SELECT value FROM json_each(:gone)) AND forgotten_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM memory AS m WHERE m.namespace = :namespace AND m.id = history.id);

-- purge_earlier --
-- Delete softly forgotten memories, by id and time of forgetting.
DELETE FROM history WHERE namespace = :namespace
  AND (id, forgotten_at) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:earlier));

-- purge_link --
-- Delete the links of ids of which nothing is left; each end by its index.
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

-- purge_recall_log --
-- Delete the logged recalls in which these ids stand, also their rows in other namespaces: each has the question, which
-- may quote a memory.
DELETE FROM recall_log WHERE recall_id IN (
    SELECT l.recall_id FROM recall_log AS l WHERE l.namespace = :namespace AND EXISTS (
        SELECT 1 FROM json_each(l.hits) AS t WHERE t.key IN (SELECT value FROM json_each(:ids))));

-- purge_change --
-- Delete earlier changes of these ids; the last one, that they were forgotten, stays for readers of changes.
DELETE FROM change WHERE namespace = :namespace AND id IN (SELECT value FROM json_each(:ids)) AND kind <> 'forgotten'
  AND NOT EXISTS (SELECT 1 FROM memory AS m WHERE m.namespace = :namespace AND m.id = change.id);

-- sweep_forgotten_due --
-- List the namespaces with softly forgotten memories whose time for restoring is over.
SELECT DISTINCT namespace FROM history WHERE forgotten_at < :forgotten_before ORDER BY 1;

-- sweep_forgotten --
-- Select some softly forgotten memories whose time for restoring is over.
DELETE FROM history WHERE (namespace, id, version) IN (
    SELECT namespace, id, version FROM history
    WHERE namespace = :namespace AND forgotten_at < :forgotten_before LIMIT :limit)
RETURNING id;

-- sweep_forgotten_left --
-- Return the ids of which nothing is kept any more; one that was forgotten again later can still be restored.
SELECT value FROM json_each(:ids) WHERE NOT EXISTS (
    SELECT 1 FROM history AS h WHERE h.namespace = :namespace AND h.id = value);

-- sweep_versions_due --
-- List the namespaces where a memory has more earlier versions than are kept.
SELECT DISTINCT namespace FROM (
    SELECT namespace FROM history WHERE forgotten_at IS NULL
    GROUP BY namespace, id HAVING count(*) > :versions) ORDER BY 1;

-- sweep_versions --
-- Delete some of the oldest surplus versions; the versions of forgotten memories are removed with those instead.
DELETE FROM history WHERE namespace = :namespace AND (id, version) IN (
    SELECT id, version FROM (
        SELECT id, version, row_number() OVER (PARTITION BY id ORDER BY version DESC) AS place
        FROM history WHERE namespace = :namespace AND forgotten_at IS NULL)
    WHERE place > :versions LIMIT :limit);

-- sweep_expired_due --
-- List the namespaces with expired memories.
SELECT DISTINCT namespace FROM memory WHERE expires_at <= :now ORDER BY 1;

-- sweep_expired --
-- Select some expired memories, or those among the given ids.
SELECT DISTINCT id FROM memory WHERE namespace = :namespace AND expires_at <= :now
  AND (:ids IS NULL OR id IN (SELECT value FROM json_each(:ids))) ORDER BY id LIMIT :limit;

-- history_at --
-- Return the version of a memory that was valid at a time: the last that had begun, if it had not ended.
SELECT * FROM (
    SELECT <version_columns>
    FROM history WHERE namespace = :namespace AND id = :id AND forgotten_at IS NULL
    UNION ALL
    SELECT <memory_columns>
    FROM memory WHERE namespace = :namespace AND id = :id AND part = 0) AS v
WHERE coalesce(valid_from, updated_at) <= :at
  AND EXISTS (SELECT 1 FROM memory AS m WHERE m.namespace = v.namespace AND m.id = v.id AND m.part = 0
              AND (m.expires_at IS NULL OR m.expires_at > :now))
ORDER BY version DESC LIMIT 1;

-- history_earlier --
-- Return the versions that were valid at a time, of memories changed since, like history_at, with their index entries.
SELECT <version_columns_v>, v.length, v.entries, v.vectors
FROM (SELECT id, max(version) AS version FROM history
      WHERE namespace = :namespace AND forgotten_at IS NULL AND coalesce(valid_from, updated_at) <= :at
      GROUP BY id) AS k
JOIN history AS v ON v.namespace = :namespace AND v.id = k.id AND v.version = k.version
JOIN memory AS m ON m.namespace = :namespace AND m.id = k.id AND m.part = 0
WHERE NOT v.sensitive AND v.entries IS NOT NULL AND (v.valid_to IS NULL OR v.valid_to > :at)
  AND coalesce(m.valid_from, m.updated_at) > :at AND (m.expires_at IS NULL OR m.expires_at > :now)
ORDER BY v.id LIMIT :limit;
