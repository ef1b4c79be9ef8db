-- corrections --
-- Return the corrections of names.
SELECT key, name, into_key, into_name FROM correction WHERE namespace = %(namespace)s;

-- correction_empty --
-- Delete the corrections of an empty namespace.
DELETE FROM correction WHERE namespace = %(namespace)s
AND NOT EXISTS (SELECT FROM memory WHERE namespace = %(namespace)s);

-- correction_drop --
-- Delete the corrections of names that no memory mentions any more, and those into such a name.
DELETE FROM correction
WHERE namespace = %(namespace)s AND (key = ANY(%(keys)s::bigint[]) OR into_key = ANY(%(keys)s::bigint[]));

-- keys_held --
-- Return those of a few keys that indexed memories have which are not pending.
SELECT key FROM posting WHERE namespace = %(namespace)s AND key = ANY(%(keys)s::bigint[])
UNION
SELECT k.key FROM unnest(%(keys)s::bigint[]) AS k(key)
CROSS JOIN LATERAL (<singleton_row_of_key>) AS l
WHERE k.key = ANY(l.keys);

-- reindex_lock --
-- Lock the memories that still exist, in the order of forget.
SELECT ord FROM memory WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s) ORDER BY id, part FOR NO KEY UPDATE;

-- reindex_forwards --
-- Return the present forward entries of memories.
SELECT ord, length, entries, candidates FROM forward WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s);

-- reindex_relationships --
-- Return the present relationships of memories.
SELECT ord, subject, predicate, object FROM relationship WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s);

-- reindex_pending --
-- Return which memories are pending, taking them out; it waits for a flush that holds a row, which then no longer
-- exists.
DELETE FROM pending WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s) RETURNING ord, bulk;

-- reindex_forward --
-- Store the new forward entries of memories.
UPDATE forward f SET length = k.length, entries = k.entries, candidates = k.candidates
FROM unnest(%(ords)s::bigint[], %(lengths)s::int[], %(entries)s::bytea[], %(candidates)s::bytea[])
     AS k(ord, length, entries, candidates)
WHERE f.namespace = %(namespace)s AND f.ord = k.ord;

-- relationship_forget --
-- Delete the relationships extracted from a memory.
DELETE FROM relationship WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s);

-- relationships_of --
-- Return the concepts related to those of a few memories, in both directions, each once.
SELECT DISTINCT one, other FROM (
    SELECT subject AS one, object AS other FROM relationship
    WHERE namespace = %(namespace)s AND subject = ANY(%(keys)s)
    UNION ALL
    SELECT object, subject FROM relationship
    WHERE namespace = %(namespace)s AND object = ANY(%(keys)s)) AS tied
ORDER BY one, other LIMIT %(limit)s;

-- indexed_after --
-- All that is indexed, in order, a few thousand at a time.
SELECT <memory_columns>
FROM memory WHERE namespace = %(namespace)s AND ord > %(ord)s AND parts = 0 AND <open>
ORDER BY ord LIMIT %(limit)s;

-- graph_hash --
-- Hash the meaning of the graph, independent of row ids, segments and order of writing; one snapshot, 32 bytes a
-- memory.
SELECT encode(sha256(
    coalesce((SELECT string_agg(sha256(int4send(octet_length(m.id)) || convert_to(m.id, 'UTF8') || int4send(m.part)
                                       || int4send(f.length) || int4send(length(f.entries)) || f.entries
                                       || int4send(length(f.candidates)) || f.candidates
                                       || coalesce(r.tied, ''::bytea)), ''::bytea ORDER BY m.id, m.part)
              FROM memory m JOIN forward f USING (namespace, ord)
              LEFT JOIN (SELECT ord, string_agg(int8send(subject) || int8send(object) || convert_to(predicate, 'UTF8')
                                                || '\x00'::bytea, ''::bytea
                                                ORDER BY subject, object, predicate COLLATE "C") AS tied
                         FROM relationship WHERE namespace = %(namespace)s GROUP BY ord) AS r ON r.ord = m.ord
              WHERE m.namespace = %(namespace)s AND <open>), ''::bytea)
    || coalesce((SELECT string_agg(int8send(key) || coalesce('\x01'::bytea || int8send(into_key), '\x00'::bytea), ''::bytea
                                   ORDER BY key)
                 FROM correction WHERE namespace = %(namespace)s), ''::bytea)
    || coalesce((SELECT string_agg(convert_to(l.from_id, 'UTF8') || '\x00'::bytea || convert_to(l.type, 'UTF8') || '\x00'::bytea
                                   || convert_to(l.to_id, 'UTF8') || '\x00'::bytea, ''::bytea
                                   ORDER BY l.from_id, l.type, l.to_id)
                 FROM link l
                 JOIN memory f ON f.namespace = %(namespace)s AND f.id = l.from_id AND f.part = 0
                 JOIN memory t ON t.namespace = %(namespace)s AND t.id = l.to_id AND t.part = 0
                 WHERE l.namespace = %(namespace)s AND l.made_by IS DISTINCT FROM 'semmem'), ''::bytea)), 'hex');

-- concepts_pending --
-- Return the entries of pending memories, in the same snapshot as concepts.
SELECT f.entries, p.names FROM pending p JOIN forward f USING (namespace, ord)
WHERE namespace = %(namespace)s AND <open>;

-- concepts --
-- List the names of a namespace, the most mentioned first; pending memories are passed in. The initials of titles,
-- which no memory mentions, are kept for questions and not listed. Of several spellings the most frequent one is shown.
SELECT key, (array_agg(name ORDER BY n DESC, name COLLATE "C"))[1], sum(n)::bigint AS df, sum(subjects)::bigint
FROM (SELECT key, name, sum(n) AS n, sum(subjects) AS subjects
      FROM (SELECT key, name, n, subjects FROM posting WHERE namespace = %(namespace)s AND kind = %(kind)s AND <open>
            UNION ALL
            SELECT u.key, u.name, (get_byte(l.entries, 12 * u.at::int - 8) + get_byte(l.entries, 12 * u.at::int - 7)
                                   + get_byte(l.entries, 12 * u.at::int - 4) > 0)::int,
                   (get_byte(l.entries, 12 * u.at::int - 3) > 0)::int
            FROM lone_posting l CROSS JOIN LATERAL unnest(l.keys, l.names) WITH ORDINALITY AS u(key, name, at)
            WHERE l.namespace = %(namespace)s AND <open> AND get_byte(l.kinds, u.at::int - 1) = %(kind)s
              AND NOT EXISTS (SELECT FROM posting p WHERE p.namespace = %(namespace)s AND p.key = u.key)
            UNION ALL
            SELECT * FROM unnest(%(keys)s::bigint[], %(names)s::text[], %(n)s::int[], %(subjects)s::int[])) AS held
      GROUP BY key, name) AS form
GROUP BY key
HAVING sum(n) + sum(subjects) > 0
   AND (%(like)s::text IS NULL OR bool_or(name ILIKE %(like)s))
ORDER BY df DESC, (array_agg(name ORDER BY n DESC, name COLLATE "C"))[1] COLLATE "C", key LIMIT %(limit)s;

-- correct --
-- Record a correction; a later one replaces an earlier one of the same name, and names merged into it move along.
WITH moved AS (
    UPDATE correction SET into_key = %(into_key)s, into_name = %(into_name)s
    WHERE namespace = %(namespace)s AND into_key = %(key)s)
INSERT INTO correction (namespace, key, name, into_key, into_name)
VALUES (%(namespace)s, %(key)s, %(name)s, %(into_key)s, %(into_name)s)
ON CONFLICT (namespace, key) DO UPDATE SET name = excluded.name, into_key = excluded.into_key,
    into_name = excluded.into_name;

-- correct_not --
-- Undo the merges into a name, and the correction of the name itself.
DELETE FROM correction WHERE namespace = %(namespace)s AND (key = %(key)s OR into_key = %(key)s);
