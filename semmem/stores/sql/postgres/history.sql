-- history_list --
-- The versions of one memory, oldest first, with who ended each and when; the one that is there now comes last.
SELECT namespace, id, 0 AS part, text, title, author, session, position, source, tags, metadata, importance, created_at,
       updated_at, version, 0::bigint AS ord, changed_by, changed_at, forgotten_at
FROM history WHERE namespace = %(namespace)s AND id = %(id)s
UNION ALL
SELECT namespace, id, part, text, title, author, session, position, source, tags, metadata, importance, created_at,
       updated_at, version, ord, NULL, NULL, NULL
FROM memory WHERE namespace = %(namespace)s AND id = %(id)s AND part = 0
ORDER BY version;
