-- <open> --
-- Nothing is there while a rename or a copy fills the namespace, or empties it behind a rename.
NOT EXISTS (SELECT 1 FROM namespace o WHERE o.namespace = %(namespace)s AND o.state <> 'moving')

-- <kept> --
-- What a drop of the namespace that goes on, or was cut short, has not forgotten.
ord > coalesce((SELECT d.dropping FROM namespace d WHERE d.namespace = %(namespace)s), 0)

-- <undropped> --
-- Of the versions h, what a drop of the namespace that goes on, or was cut short, has not forgotten.
NOT EXISTS (SELECT FROM namespace d JOIN change c ON c.namespace = d.namespace AND c.kind = 'dropped'
            WHERE d.namespace = %(namespace)s AND d.dropping IS NOT NULL AND c.at >= h.changed_at)

-- <unmoved> --
-- A cast that fails, with these words, where the namespace of the row is being moved; see errors.py.
CASE WHEN still IS NOT NULL THEN ('namespace_is_still: ' || state)::integer END

-- row_ids_reserve --
-- Reserve row ids for memories and parts; the first call creates the namespace's row. Returns the last row id. Another
-- derivation version than before gets a mark at the first of the row ids; of too many marks all before it become one,
-- of nobody known. The marks are put together as text, for jsonb_build_array is not immutable and Citus allows nothing
-- else here.
INSERT INTO namespace (namespace, ords, changed_at, language, makers)
VALUES (%(namespace)s, %(count)s, now(), %(language)s,
        CASE WHEN %(made_by)s::text <> '' THEN jsonb_build_array(jsonb_build_array(1, %(made_by)s::text)) END)
ON CONFLICT (namespace) DO UPDATE SET ords = namespace.ords + excluded.ords, changed_at = excluded.changed_at,
    language = CASE WHEN namespace.memories = 0 THEN excluded.language ELSE namespace.language END,
    makers = CASE
        WHEN excluded.makers IS NULL OR namespace.makers #>> '{-1,1}' = excluded.makers #>> '{0,1}' THEN namespace.makers
        WHEN jsonb_array_length(namespace.makers) >= 32
            THEN ('[[1, ""], [' || (namespace.ords + 1)::text || ', ' || (excluded.makers #> '{0,1}')::text || ']]')::jsonb
        ELSE coalesce(namespace.makers, '[]'::jsonb)
            || ('[[' || (namespace.ords + 1)::text || ', ' || (excluded.makers #> '{0,1}')::text || ']]')::jsonb END
RETURNING ords, language;

-- namespace_make --
-- Create the namespace's row, for what may come before its first memory.
INSERT INTO namespace (namespace) VALUES (%(namespace)s) ON CONFLICT (namespace) DO NOTHING;

-- namespace_check --
-- Return, under the lock of the row after all writes, the language, the limits, and the present counts where there is a
-- limit. The bytes are those of texts and titles.
SELECT n.language, n.most_memories, n.most_bytes,
       CASE WHEN n.most_memories IS NOT NULL THEN (
           SELECT count(*) FROM memory m WHERE m.namespace = %(namespace)s AND m.part = 0) END,
       CASE WHEN n.most_bytes IS NOT NULL THEN (
           SELECT coalesce(sum(octet_length(m.text) + coalesce(octet_length(m.title), 0)), 0)::bigint
           FROM memory m WHERE m.namespace = %(namespace)s AND m.part = 0) END
FROM namespace n WHERE n.namespace = %(namespace)s;

-- namespace_claim --
-- Take the lock of namespace_own; the first memories choose the language. Returns what decides whether new ones may stay.
UPDATE namespace SET language = CASE WHEN memories = 0 THEN %(language)s ELSE language END
WHERE namespace = %(namespace)s
RETURNING ords, makers, dropping, language, most_memories IS NOT NULL OR most_bytes IS NOT NULL;

-- namespace_own --
-- Lock the namespace's row until the commit: after the rows of memories, before any row of postings.
SELECT ords, dropping, <unmoved> FROM namespace WHERE namespace = %(namespace)s FOR NO KEY UPDATE;

-- namespace_alone --
-- Take that lock, and one that namespace_hold waits for: what is written under that names no memory that is gone for good.
SELECT ords, dropping, <unmoved> FROM namespace WHERE namespace = %(namespace)s FOR UPDATE;

-- namespace_drops --
-- Return, under that lock, whether a drop takes one of these row ids, or a version that was put into the history then.
SELECT n.dropping >= %(least)s::bigint OR n.dropping IS NOT NULL AND %(earliest)s::timestamptz <= (
    SELECT max(c.at) FROM change c WHERE c.namespace = %(namespace)s AND c.kind = 'dropped')
FROM namespace n WHERE n.namespace = %(namespace)s;

-- namespace_hold --
-- Keep a rename from beginning until the commit; for what is written without the lock of the row.
SELECT <unmoved> FROM namespace WHERE namespace = %(namespace)s FOR KEY SHARE;

-- namespace_count --
-- Number a change, under the lock of the row until the commit; so a reader that sees a number sees all before it.
UPDATE namespace SET changes = changes + 1, revision = revision + 1, memories = memories + %(memories)s,
    length = length + %(length)s, changed_at = now()
WHERE namespace = %(namespace)s RETURNING changes, memories;

-- namespace_revise --
-- Advance the sequence number where no memory came or went but recalls read other data: lengths, names, vectors.
UPDATE namespace SET revision = revision + 1, length = length + %(length)s WHERE namespace = %(namespace)s;

-- namespace_prune --
-- Delete the row of a namespace empty for a day and longer than changes are kept, when no writer can still hold its
-- row ids. A namespace with limits stays. Sensitive memories are not in its count, so they are looked for.
DELETE FROM namespace n WHERE namespace = %(namespace)s AND memories = 0 AND dropping IS NULL AND state IS NULL
AND changed_at < now() - make_interval(secs => 86400 * greatest(1, %(changes_days)s::float8))
AND keep IS NULL AND most_memories IS NULL AND most_bytes IS NULL
AND NOT EXISTS (SELECT FROM memory m WHERE m.namespace = n.namespace);

-- change_prune --
-- Delete the last changes of such a namespace.
DELETE FROM change WHERE namespace = %(namespace)s;

-- namespace_forgotten --
-- List the namespaces that have been empty that long.
SELECT namespace FROM namespace n WHERE memories = 0 AND dropping IS NULL AND state IS NULL
AND changed_at < now() - make_interval(secs => 86400 * greatest(1, %(changes_days)s::float8))
AND keep IS NULL AND most_memories IS NULL AND most_bytes IS NULL
AND NOT EXISTS (SELECT FROM memory m WHERE m.namespace = n.namespace) ORDER BY namespace;

-- namespace_names --
-- List the namespaces that hold memories, including those with sensitive ones only.
SELECT namespace FROM namespace n
WHERE (memories > 0 OR EXISTS (SELECT FROM memory m WHERE m.namespace = n.namespace))
  AND state IS DISTINCT FROM 'filling' AND state IS DISTINCT FROM 'emptying' ORDER BY namespace;

-- namespace_large --
-- List the namespaces with so many indexed memories or more that nobody is dropping or moving, the largest first.
SELECT namespace FROM namespace
WHERE memories >= %(least)s AND dropping IS NULL AND state IS NULL ORDER BY memories DESC, namespace;

-- namespace_unsettled --
-- List the namespaces that have got postings since maintain joined theirs, each with its memories, the last segment that
-- was joined, and its last one.
SELECT namespace, memories, settled, segments FROM namespace n
WHERE segments > settled AND (memories > 0 OR EXISTS (SELECT FROM memory m WHERE m.namespace = n.namespace))
  AND state IS DISTINCT FROM 'filling' AND state IS DISTINCT FROM 'emptying' ORDER BY namespace;

-- namespace_settle --
-- Note that the postings of a namespace up to a segment are joined.
UPDATE namespace SET settled = greatest(settled, %(upto)s) WHERE namespace = %(namespace)s;

-- namespace_list --
-- Return each namespace with its number of whole memories and its last change, for people.
SELECT namespace, count(*), max(updated_at) FROM memory m
WHERE part = 0 AND NOT EXISTS (SELECT 1 FROM namespace o WHERE o.namespace = m.namespace AND o.state <> 'moving')
GROUP BY namespace ORDER BY namespace COLLATE "C";

-- language_list --
-- Return the language in which each namespace was extracted.
SELECT namespace, language FROM namespace WHERE memories > 0 ORDER BY namespace;

-- language_of --
-- Return the language of a namespace under the lock of its row, for re-extraction.
SELECT language FROM namespace WHERE namespace = %(namespace)s FOR NO KEY UPDATE;

-- language_begin --
-- Record that a namespace is being extracted in another language, during which nobody writes to it or recalls from it.
UPDATE namespace SET language = %(unfinished)s WHERE namespace = %(namespace)s AND language <> %(language)s;

-- language_end --
-- Record that every memory of a namespace was extracted in a language.
UPDATE namespace SET language = %(language)s, revision = revision + 1
WHERE namespace = %(namespace)s AND language <> %(language)s;

-- segment_next --
-- Take a segment number for a batch, so that two writers never touch the same posting row, or for a merge of segments.
UPDATE namespace SET segments = segments + 1, revision = revision + 1 WHERE namespace = %(namespace)s RETURNING segments;

-- change_add --
-- Record the changes of memories under the sequence number just taken.
INSERT INTO change (namespace, number, id, kind, types)
SELECT n.namespace, n.changes, k.id, %(kind)s, %(types)s
FROM namespace n CROSS JOIN unnest(%(ids)s::text[]) AS k(id) WHERE n.namespace = %(namespace)s;

-- limits_get --
-- Return the limits of a namespace: days that it keeps memories, memories and bytes that it may hold.
SELECT (extract(epoch FROM keep) / 86400)::float8, most_memories, most_bytes FROM namespace
WHERE namespace = %(namespace)s;

-- limits_set --
-- Change some limits of a namespace; every writer reads them with the lock of the row.
INSERT INTO namespace (namespace, keep, most_memories, most_bytes)
VALUES (%(namespace)s, make_interval(secs => 86400 * %(keep_days)s::float8), %(most_memories)s, %(most_bytes)s)
ON CONFLICT (namespace) DO UPDATE SET
    keep = CASE WHEN %(given)s::text[] @> '{keep_days}' THEN excluded.keep ELSE namespace.keep END,
    most_memories = CASE WHEN %(given)s::text[] @> '{most_memories}' THEN excluded.most_memories
                    ELSE namespace.most_memories END,
    most_bytes = CASE WHEN %(given)s::text[] @> '{most_bytes}' THEN excluded.most_bytes ELSE namespace.most_bytes END
RETURNING (extract(epoch FROM keep) / 86400)::float8, most_memories, most_bytes;

-- sweep_kept_due --
-- List the namespaces that keep memories for a limited time; every one is examined, as no index has their last changes.
-- Sensitive memories are not in its count, so they are looked for.
SELECT namespace FROM namespace n WHERE keep IS NOT NULL AND state IS NULL
AND (memories > 0 OR EXISTS (SELECT FROM memory m WHERE m.namespace = n.namespace)) ORDER BY namespace;

-- sweep_kept --
-- Select some memories not written, changed or remembered again for that long, except pinned ones; locked, so that one
-- changed meanwhile stays too. Of a time in the future that was given, only the time of the writing counts.
SELECT m.id FROM memory m JOIN namespace n ON n.namespace = m.namespace
WHERE m.namespace = %(namespace)s AND m.part = 0 AND NOT m.pinned
  AND coalesce(m.last_seen, m.updated_at) < now() - n.keep
  AND (m.updated_at < now() - n.keep OR m.updated_at > now()) ORDER BY m.id LIMIT %(limit)s FOR UPDATE OF m;

-- namespaces_stored --
-- Return those of some namespaces of which anything is stored that a recall reads.
SELECT namespace FROM namespace WHERE namespace = ANY(%(namespaces)s)
UNION SELECT namespace FROM namespace_setting WHERE namespace = ANY(%(namespaces)s)
UNION SELECT namespace FROM correction WHERE namespace = ANY(%(namespaces)s);
