-- history_list --
-- The versions of one memory, oldest first, with who ended each and when; the one that is there now comes last.
SELECT namespace, id, 0, text, title, author, session, position, source, tags, metadata, importance, created_at,
       updated_at, version, sensitive, 0, changed_by, changed_at, forgotten_at
FROM history WHERE namespace = :namespace AND id = :id
UNION ALL
SELECT namespace, id, part, text, title, author, session, position, source, tags, metadata, importance, created_at,
       updated_at, version, sensitive, ord, NULL, NULL, NULL
FROM memory WHERE namespace = :namespace AND id = :id AND part = 0
ORDER BY version;

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
