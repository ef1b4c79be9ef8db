-- ords_take --
-- Numbers for some memories and parts; the first of them makes the row. Returns the last one.
INSERT INTO namespace (namespace, ords, changed_at, language) VALUES (%(namespace)s, %(count)s, now(), %(language)s)
ON CONFLICT (namespace) DO UPDATE SET ords = namespace.ords + excluded.ords, changed_at = excluded.changed_at,
    language = CASE WHEN namespace.memories = 0 THEN excluded.language ELSE namespace.language END
RETURNING ords, language;

-- namespace_make --
-- A row to be locked or counted on, for what may come before the first memory.
INSERT INTO namespace (namespace) VALUES (%(namespace)s) ON CONFLICT (namespace) DO NOTHING;

-- namespace_check --
-- Under the lock of the row, when all is written: the language its memories are read in, its limits, and what it holds,
-- counted only where there is a limit. The bytes are those of texts and titles.
SELECT n.language, n.most_memories, n.most_bytes,
       CASE WHEN n.most_memories IS NOT NULL THEN (
           SELECT count(*) FROM memory m WHERE m.namespace = %(namespace)s AND m.part = 0) END,
       CASE WHEN n.most_bytes IS NOT NULL THEN (
           SELECT coalesce(sum(octet_length(m.text) + coalesce(octet_length(m.title), 0)), 0)::bigint
           FROM memory m WHERE m.namespace = %(namespace)s AND m.part = 0) END
FROM namespace n WHERE n.namespace = %(namespace)s;

-- namespace_claim --
-- The same lock as namespace_own; who brings the first memories chooses the language.
UPDATE namespace SET language = CASE WHEN memories = 0 THEN %(language)s ELSE language END
WHERE namespace = %(namespace)s RETURNING ords, dropping;

-- namespace_own --
-- From here to the commit one after the other: behind the rows of memories, before any row of a posting.
SELECT ords, dropping FROM namespace WHERE namespace = %(namespace)s FOR NO KEY UPDATE;

-- namespace_count --
-- What came or went has a number, under the lock of the row until the commit: so who sees a number sees all before it.
UPDATE namespace SET changes = changes + 1, revision = revision + 1, memories = memories + %(memories)s,
    length = length + %(length)s, changed_at = now()
WHERE namespace = %(namespace)s RETURNING changes, memories;

-- namespace_revise --
-- Nothing came or went, and recalls read something else: segments, lengths, names.
UPDATE namespace SET revision = revision + 1, length = length + %(length)s WHERE namespace = %(namespace)s;

-- namespace_prune --
-- Nobody still holds a number of a namespace that has been empty for a day, and longer than changes are kept; one that has
-- a limit waits for its next memory. A sensitive memory is not counted.
DELETE FROM namespace n WHERE namespace = %(namespace)s AND memories = 0 AND dropping IS NULL
AND changed_at < now() - make_interval(secs => 86400 * greatest(1, %(changes_days)s::float8))
AND keep IS NULL AND most_memories IS NULL AND most_bytes IS NULL
AND NOT EXISTS (SELECT FROM memory m WHERE m.namespace = n.namespace);

-- change_prune --
-- Nor is there anybody to be told of it.
DELETE FROM change WHERE namespace = %(namespace)s;

-- namespace_forgotten --
-- The namespaces that have been empty for so long.
SELECT namespace FROM namespace n WHERE memories = 0 AND dropping IS NULL
AND changed_at < now() - make_interval(secs => 86400 * greatest(1, %(changes_days)s::float8))
AND keep IS NULL AND most_memories IS NULL AND most_bytes IS NULL
AND NOT EXISTS (SELECT FROM memory m WHERE m.namespace = n.namespace) ORDER BY namespace;

-- namespace_names --
-- Those that hold memories, if they are sensitive ones alone.
SELECT namespace FROM namespace n
WHERE memories > 0 OR EXISTS (SELECT FROM memory m WHERE m.namespace = n.namespace) ORDER BY namespace;

-- namespace_list --
-- What there is, for a person who wants to know: every whole memory is counted.
SELECT namespace, count(*), max(updated_at) FROM memory WHERE part = 0 GROUP BY namespace ORDER BY namespace COLLATE "C";

-- language_list --
-- Whose stems the memories of each namespace were read with.
SELECT namespace, language FROM namespace WHERE memories > 0 ORDER BY namespace;

-- language_of --
-- Under the lock of the row, for who reads memories anew.
SELECT language FROM namespace WHERE namespace = %(namespace)s FOR NO KEY UPDATE;

-- language_begin --
-- From here on nobody writes or recalls until every memory has been read anew; where that changes nothing, all go on.
UPDATE namespace SET language = %(unfinished)s WHERE namespace = %(namespace)s AND language <> %(language)s;

-- language_end --
-- Every memory has been read anew.
UPDATE namespace SET language = %(language)s, revision = revision + 1
WHERE namespace = %(namespace)s AND language <> %(language)s;

-- segment_next --
-- One number a batch: two writers never touch the same posting row.
UPDATE namespace SET segments = segments + 1, revision = revision + 1 WHERE namespace = %(namespace)s RETURNING segments;

-- change_add --
-- What became of which memories, under the number that the transaction has just taken.
INSERT INTO change (namespace, number, id, kind)
SELECT n.namespace, n.changes, k.id, %(kind)s
FROM namespace n CROSS JOIN unnest(%(ids)s::text[]) AS k(id) WHERE n.namespace = %(namespace)s;

-- limits_get --
-- What a namespace keeps, in days, and how much it may hold.
SELECT (extract(epoch FROM keep) / 86400)::float8, most_memories, most_bytes FROM namespace
WHERE namespace = %(namespace)s;

-- limits_set --
-- Every writer reads it with the lock of the row. What is not given stays.
INSERT INTO namespace (namespace, keep, most_memories, most_bytes)
VALUES (%(namespace)s, make_interval(secs => 86400 * %(keep_days)s::float8), %(most_memories)s, %(most_bytes)s)
ON CONFLICT (namespace) DO UPDATE SET
    keep = CASE WHEN %(given)s::text[] @> '{keep_days}' THEN excluded.keep ELSE namespace.keep END,
    most_memories = CASE WHEN %(given)s::text[] @> '{most_memories}' THEN excluded.most_memories
                    ELSE namespace.most_memories END,
    most_bytes = CASE WHEN %(given)s::text[] @> '{most_bytes}' THEN excluded.most_bytes ELSE namespace.most_bytes END
RETURNING (extract(epoch FROM keep) / 86400)::float8, most_memories, most_bytes;

-- sweep_kept_due --
-- Namespaces that keep memories for a time: the oldest by its first time tells nothing, so each is looked at.
SELECT namespace FROM namespace WHERE keep IS NOT NULL AND memories > 0 ORDER BY namespace;

-- sweep_kept --
-- Some that nobody has changed or remembered again for so long; what is pinned stays. Locked, so that one that is changed
-- meanwhile stays too.
SELECT m.id FROM memory m JOIN namespace n ON n.namespace = m.namespace
WHERE m.namespace = %(namespace)s AND m.part = 0 AND NOT m.pinned
  AND greatest(m.created_at, m.updated_at, m.last_seen) < now() - n.keep ORDER BY m.id LIMIT %(limit)s FOR UPDATE OF m;