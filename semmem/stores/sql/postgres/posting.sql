-- postings --
-- Totals, pending memories and postings in one snapshot: a fold in between can neither hide a memory nor count it twice.
-- Thousands of segments arrive as two long values. What too many mention comes without entries.
SELECT 0 AS what, memories AS n, length, NULL::bytea AS heads, NULL::bytea AS entries
FROM namespace WHERE namespace = %(namespace)s
UNION ALL
SELECT 1, f.ord, f.length, NULL, f.entries
FROM pending p JOIN forward f USING (namespace, ord) WHERE namespace = %(namespace)s
UNION ALL
SELECT 2, 0, 0,
       string_agg(int8send(key) || int8send(n) || int8send(CASE WHEN n <= %(max_df)s THEN length(entries) ELSE 0 END), ''),
       string_agg(CASE WHEN n <= %(max_df)s THEN entries ELSE '' END, '')
FROM posting WHERE namespace = %(namespace)s AND key = ANY(%(keys)s);

-- postings_shared --
-- The same without the keys that one memory alone has: they tie nothing to anything, and are most of all keys. But with
-- those that a pending memory has as well.
SELECT 0 AS what, memories AS n, length, NULL::bytea AS heads, NULL::bytea AS entries
FROM namespace WHERE namespace = %(namespace)s
UNION ALL
SELECT 1, f.ord, f.length, NULL, f.entries
FROM pending p JOIN forward f USING (namespace, ord) WHERE namespace = %(namespace)s
UNION ALL
SELECT 2, 0, 0,
       string_agg(int8send(key) || int8send(n) || int8send(CASE WHEN n <= %(max_df)s THEN length(entries) ELSE 0 END), ''),
       string_agg(CASE WHEN n <= %(max_df)s THEN entries ELSE '' END, '')
FROM posting WHERE namespace = %(namespace)s AND key = ANY(%(keys)s)
  AND (NOT lone OR key = ANY(%(pending)s));

-- forwards --
-- What each of a few memories holds, as two long values.
SELECT string_agg(int8send(ord) || int8send(length(entries)), ''::bytea ORDER BY ord),
       string_agg(entries, ''::bytea ORDER BY ord)
FROM forward WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s);

-- pending_entries --
-- What pending memories hold, to be read with the postings of their keys.
SELECT f.entries FROM pending p JOIN forward f USING (namespace, ord) WHERE namespace = %(namespace)s;

-- known_subjects --
-- Which names some memory is about; the pending ones are read whole, there are few.
SELECT DISTINCT key, NULL::bytea FROM posting
WHERE namespace = %(namespace)s AND key = ANY(%(keys)s) AND subjects > 0
UNION ALL
SELECT NULL, f.entries FROM pending p JOIN forward f USING (namespace, ord) WHERE namespace = %(namespace)s;

-- known_subjects_corrected --
-- The same, and which of the names that people said these are.
SELECT DISTINCT key, NULL::bytea FROM posting
WHERE namespace = %(namespace)s AND key = ANY(%(keys)s) AND subjects > 0
UNION ALL
SELECT DISTINCT p.key, NULL::bytea FROM correction c JOIN posting p ON p.namespace = c.namespace AND p.key = c.into_key
WHERE c.namespace = %(namespace)s AND c.key = ANY(%(keys)s) AND p.subjects > 0
UNION ALL
SELECT NULL, f.entries FROM pending p JOIN forward f USING (namespace, ord) WHERE namespace = %(namespace)s;

-- names --
-- What people read for a key.
SELECT DISTINCT ON (key) key, name FROM posting
WHERE namespace = %(namespace)s AND key = ANY(%(keys)s) ORDER BY key, segment;

-- subject_names --
-- The names that a few memories are about, unpacked (stores/packing.py), with what people read for them.
SELECT a.ord, a.key, a.subject, (
    SELECT p.name FROM posting p WHERE p.namespace = %(namespace)s AND p.key = a.key ORDER BY p.segment LIMIT 1)
FROM (SELECT f.ord, get_byte(f.entries, o + 11) AS subject,
             get_byte(f.entries, o)::bigint | (get_byte(f.entries, o + 1)::bigint << 8)
             | (get_byte(f.entries, o + 2)::bigint << 16) | (get_byte(f.entries, o + 3)::bigint << 24)
             | (get_byte(f.entries, o + 4)::bigint << 32) | (get_byte(f.entries, o + 5)::bigint << 40)
             | (get_byte(f.entries, o + 6)::bigint << 48) | (get_byte(f.entries, o + 7)::bigint << 56) AS key
      FROM forward f CROSS JOIN LATERAL generate_series(0, length(f.entries) - 16, 16) AS o
      WHERE f.namespace = %(namespace)s AND f.ord = ANY(%(ords)s)
        AND get_byte(f.entries, o + 11) > 0 AND get_byte(f.entries, o + 12) = %(kind)s) AS a
ORDER BY a.ord, a.key;

-- names_pending --
-- The same, of memories that are not folded yet.
SELECT f.entries, p.names FROM pending p JOIN forward f USING (namespace, ord)
WHERE namespace = %(namespace)s;

-- backlog --
-- When to fold, and when to compact.
SELECT (SELECT count(*) FROM pending WHERE namespace = %(namespace)s),
       (SELECT count(*) FROM fresh WHERE namespace = %(namespace)s);

-- forward_add --
-- What one new memory holds.
INSERT INTO forward (namespace, ord, length, entries) VALUES (%(namespace)s, %(ord)s, %(length)s, %(entries)s);

-- pending_add --
-- One new memory that is in no posting yet.
INSERT INTO pending (namespace, ord, names) VALUES (%(namespace)s, %(ord)s, %(names)s::text[]);

-- pending_namespaces --
-- What maintain has to fold.
SELECT DISTINCT namespace FROM pending;

-- fold_take --
-- Rows that another fold holds are its business.
SELECT ord, names FROM pending WHERE namespace = %(namespace)s ORDER BY ord LIMIT %(limit)s FOR UPDATE SKIP LOCKED;

-- fold_forwards --
-- The entries of what is being folded.
SELECT ord, length, entries FROM forward WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s) ORDER BY ord;

-- fold_done --
-- From here on the postings answer for them.
DELETE FROM pending WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s);

-- posting_lock --
-- The segments that may hold some memories of each key, in one order for all who change postings.
SELECT p.key, p.segment, p.entries FROM posting p
JOIN unnest(%(keys)s::bigint[], %(lows)s::bigint[], %(highs)s::bigint[]) AS k(key, low, high) USING (key)
WHERE p.namespace = %(namespace)s AND p.low <= k.high AND p.high >= k.low
ORDER BY p.key, p.segment FOR UPDATE OF p;

-- posting_delete --
-- A segment that lost its last memory.
DELETE FROM posting p USING unnest(%(keys)s::bigint[], %(segments)s::bigint[]) AS k(key, segment)
WHERE p.namespace = %(namespace)s AND p.key = k.key AND p.segment = k.segment;

-- posting_rewrite --
-- A segment that lost some memories.
UPDATE posting p SET entries = k.entries, n = k.n, subjects = k.subjects, low = k.low, high = k.high
FROM unnest(%(keys)s::bigint[], %(segments)s::bigint[], %(entries)s::bytea[], %(n)s::int[], %(subjects)s::int[],
            %(lows)s::bigint[], %(highs)s::bigint[]) AS k(key, segment, entries, n, subjects, low, high)
WHERE p.namespace = %(namespace)s AND p.key = k.key AND p.segment = k.segment;

-- fresh_add --
-- Compaction looks at the keys of these.
INSERT INTO fresh (namespace, segment) VALUES (%(namespace)s, %(segment)s);

-- fresh_list --
-- How much has come since the last compaction.
SELECT segment FROM fresh WHERE namespace = %(namespace)s ORDER BY segment;

-- fresh_done --
-- They are joined, or stand among so few that joining does not pay.
DELETE FROM fresh WHERE namespace = %(namespace)s AND segment = ANY(%(segments)s);

-- fresh_empty --
-- A namespace without postings has nothing to compact.
DELETE FROM fresh WHERE namespace = %(namespace)s AND NOT EXISTS (
    SELECT FROM posting WHERE namespace = %(namespace)s);

-- compact --
-- Of each key of the given segments (NULL: every key), join the newest rows up to the oldest that is at most factor times
-- as large as all newer ones together, so that the rows that stay more than double; rows that are full stay.
WITH touched AS (
    SELECT DISTINCT key FROM posting
    WHERE namespace = %(namespace)s AND NOT lone AND (%(segments)s::bigint[] IS NULL OR segment = ANY(%(segments)s))
), held AS (
    SELECT p.key, p.segment, p.n, row_number() OVER newest AS age, sum(p.n + 1) OVER newest - p.n - 1 AS newer
    FROM posting p JOIN touched USING (key)
    WHERE p.namespace = %(namespace)s AND NOT p.lone AND p.n < %(full)s
    WINDOW newest AS (PARTITION BY p.key ORDER BY p.segment DESC)
), bounded AS (
    SELECT key, segment, age, max(age) FILTER (WHERE age = 1 OR n <= %(factor)s * newer) OVER (PARTITION BY key) AS last
    FROM held
), chosen AS (
    SELECT key, segment, count(*) OVER (PARTITION BY key) AS together FROM bounded WHERE age <= last
), gone AS (
    DELETE FROM posting p USING chosen c
    WHERE p.namespace = %(namespace)s AND p.key = c.key AND p.segment = c.segment AND c.together >= %(least)s
    RETURNING p.key, p.segment, p.kind, p.n, p.subjects, p.low, p.high, p.name, p.entries
), placed AS (
    SELECT *, ((sum(n) OVER (PARTITION BY key ORDER BY low, segment) - n) / %(full)s)::bigint AS piece FROM gone
)
INSERT INTO posting (namespace, key, segment, kind, n, subjects, low, high, name, entries, lone)
SELECT %(namespace)s, key, max(segment), min(kind), sum(n), sum(subjects), min(low), max(high),
       (array_agg(name ORDER BY segment))[1], string_agg(entries, ''::bytea ORDER BY low, segment), false
FROM placed GROUP BY key, piece
RETURNING 1;

-- segments_meet --
-- Keys that one memory alone had until now, and no longer.
UPDATE posting SET lone = false WHERE namespace = %(namespace)s AND key = ANY(%(keys)s) AND lone;

-- segments_known --
-- Keys that are not new to the namespace.
SELECT DISTINCT key FROM posting WHERE namespace = %(namespace)s AND key = ANY(%(keys)s);
