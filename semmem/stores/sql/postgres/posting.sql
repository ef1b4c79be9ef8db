-- <singleton_row_of_key> --
-- The row of lone_posting that has the key of k, if one has it: the last that begins at it or before.
SELECT l.* FROM lone_posting l WHERE l.namespace = %(namespace)s AND l.first <= k.key ORDER BY l.first DESC LIMIT 1

-- <singleton_entry_of_key> --
-- Of keys k those that stand packed and have no rows of their own, with what such a row would hold.
CROSS JOIN LATERAL (<singleton_row_of_key>) AS l
CROSS JOIN LATERAL (SELECT substr(l.entries, 12 * array_position(l.keys, k.key) - 11, 12) AS entry) AS e
CROSS JOIN LATERAL (SELECT (get_byte(e.entry, 4) + get_byte(e.entry, 5) + get_byte(e.entry, 8) > 0)::int AS n) AS c
WHERE e.entry IS NOT NULL AND NOT EXISTS (SELECT FROM posting p WHERE p.namespace = %(namespace)s AND p.key = k.key)

-- postings --
-- Return totals, pending memories and postings in one snapshot, so that a flush can neither hide a memory nor count it
-- twice. Thousands of segments arrive as two long values. A key with too many mentions has no entries. A key in
-- lone_posting counts there only where it has no rows of its own.
SELECT 0 AS what, memories AS n, length, NULL::bytea AS heads, NULL::bytea AS entries
FROM namespace WHERE namespace = %(namespace)s
UNION ALL
SELECT 1, f.ord, f.length, NULL, f.entries
FROM pending p JOIN forward f USING (namespace, ord) WHERE namespace = %(namespace)s
UNION ALL
SELECT 2, 0, 0,
       string_agg(int8send(key) || int8send(n) || int8send(CASE WHEN n <= %(max_df)s THEN length(entries) ELSE 0 END), ''),
       string_agg(CASE WHEN n <= %(max_df)s THEN entries ELSE '' END, '')
FROM (
    SELECT key, n, entries FROM posting WHERE namespace = %(namespace)s AND key = ANY(%(keys)s)
    UNION ALL
    SELECT k.key, c.n, e.entry FROM unnest(%(keys)s::bigint[]) AS k(key)
    <singleton_entry_of_key>) AS held;

-- postings_shared --
-- Like postings, but without keys that only one memory has and is not about: these are most keys and connect nothing.
-- Keys that a pending memory has as well are included.
SELECT 0 AS what, memories AS n, length, NULL::bytea AS heads, NULL::bytea AS entries
FROM namespace WHERE namespace = %(namespace)s
UNION ALL
SELECT 1, f.ord, f.length, NULL, f.entries
FROM pending p JOIN forward f USING (namespace, ord) WHERE namespace = %(namespace)s
UNION ALL
SELECT 2, 0, 0,
       string_agg(int8send(key) || int8send(n) || int8send(CASE WHEN n <= %(max_df)s THEN length(entries) ELSE 0 END), ''),
       string_agg(CASE WHEN n <= %(max_df)s THEN entries ELSE '' END, '')
FROM (
    SELECT key, n, entries FROM posting
    WHERE namespace = %(namespace)s AND key = ANY(%(keys)s) AND (NOT lone OR key = ANY(%(pending)s))
    UNION ALL
    SELECT k.key, c.n, e.entry FROM unnest(%(pending)s::bigint[]) AS k(key)
    <singleton_entry_of_key>) AS held;

-- forwards --
-- Return the forward entries and the candidates of a few memories, as three long values.
SELECT string_agg(int8send(ord) || int8send(length(entries)) || int8send(length(candidates)), ''::bytea ORDER BY ord),
       string_agg(entries, ''::bytea ORDER BY ord), string_agg(candidates, ''::bytea ORDER BY ord)
FROM forward WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s);

-- pending_entries --
-- Return the forward entries of pending memories, to be read with the postings of their keys.
SELECT f.entries FROM pending p JOIN forward f USING (namespace, ord) WHERE namespace = %(namespace)s;

-- names --
-- Return the spelling of the names of keys.
SELECT DISTINCT ON (key) key, name FROM (
    SELECT key, segment, name FROM posting WHERE namespace = %(namespace)s AND key = ANY(%(keys)s)
    UNION ALL
    SELECT k.key, 0, l.names[array_position(l.keys, k.key)] FROM unnest(%(keys)s::bigint[]) AS k(key)
    CROSS JOIN LATERAL (<singleton_row_of_key>) AS l
    WHERE k.key = ANY(l.keys)) AS held
ORDER BY key, segment;

-- subject_names --
-- The names that a few memories are about, unpacked (stores/packing.py), with what people read for them, which is how the
-- first memory of the name writes it, and the title of the memory, which may write it otherwise.
SELECT k.ord, k.key, k.subject, m.title, coalesce((
    SELECT p.name FROM posting p WHERE p.namespace = %(namespace)s AND p.key = k.key ORDER BY p.segment LIMIT 1), (
    SELECT l.names[array_position(l.keys, k.key)] FROM (<singleton_row_of_key>) AS l))
FROM (SELECT f.ord, get_byte(f.entries, o + 11) AS subject,
             get_byte(f.entries, o)::bigint | (get_byte(f.entries, o + 1)::bigint << 8)
             | (get_byte(f.entries, o + 2)::bigint << 16) | (get_byte(f.entries, o + 3)::bigint << 24)
             | (get_byte(f.entries, o + 4)::bigint << 32) | (get_byte(f.entries, o + 5)::bigint << 40)
             | (get_byte(f.entries, o + 6)::bigint << 48) | (get_byte(f.entries, o + 7)::bigint << 56) AS key
      FROM forward f CROSS JOIN LATERAL generate_series(0, length(f.entries) - 16, 16) AS o
      WHERE f.namespace = %(namespace)s AND f.ord = ANY(%(ords)s)
        AND get_byte(f.entries, o + 11) > 0 AND get_byte(f.entries, o + 12) = %(kind)s) AS k
JOIN memory m ON m.namespace = %(namespace)s AND m.ord = k.ord
ORDER BY k.ord, k.key;

-- names_pending --
-- Return the spelling of the names of keys in pending memories.
SELECT f.entries, p.names FROM pending p JOIN forward f USING (namespace, ord)
WHERE namespace = %(namespace)s;

-- backlog --
-- Return what decides on flushing and compaction: how many memories are pending without those of a bulk, how many keys
-- these have, and how many segments are fresh.
SELECT count(*) FILTER (WHERE bulk = 0), coalesce(sum(bulk), 0)::bigint,
       (SELECT count(*) FROM fresh WHERE namespace = %(namespace)s)
FROM pending WHERE namespace = %(namespace)s;

-- bulk_ends --
-- List those of some namespaces in which at least so many memories are pending, each with their number.
SELECT namespace, count(*) FROM pending WHERE namespace = ANY(%(namespaces)s) GROUP BY namespace HAVING count(*) >= %(least)s;

-- forward_add --
-- Store the forward entries of one new memory.
INSERT INTO forward (namespace, ord, length, entries, candidates)
VALUES (%(namespace)s, %(ord)s, %(length)s, %(entries)s, %(candidates)s);

-- pending_add --
-- Mark one new memory as pending.
INSERT INTO pending (namespace, ord, names, bulk)
SELECT %(namespace)s, %(ord)s, p.names, CASE WHEN %(bulk)s THEN cardinality(p.names) ELSE 0 END
FROM (SELECT %(names)s::text[] AS names) AS p;

-- pending_namespaces --
-- List the namespaces with pending memories, each with their number.
SELECT namespace, count(*) FROM pending GROUP BY namespace;

-- flush_take --
-- Take pending memories for a flush, skipping those that another flush has locked: at most limit of them, those of a
-- bulk last, and of these as many as have the given number of keys together. So single memories flush themselves first,
-- and little by little what a bulk that died has left.
SELECT ord, names FROM pending WHERE namespace = %(namespace)s AND (bulk = 0 OR ord <= (
    SELECT max(ord) FROM (
        SELECT ord, sum(bulk) OVER (ORDER BY ord) - bulk AS keys FROM pending WHERE namespace = %(namespace)s) AS before
    WHERE keys < %(keys)s))
ORDER BY bulk > 0, ord LIMIT %(limit)s FOR UPDATE SKIP LOCKED;

-- flush_forwards --
-- Return the forward entries of the memories being flushed.
SELECT ord, length, entries FROM forward WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s) ORDER BY ord;

-- flush_done --
-- Delete the pending marks of flushed memories, which the postings now hold.
DELETE FROM pending WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s);

-- posting_lock --
-- Lock the segments that may hold some memories of each key, in the common order.
SELECT p.key, p.segment, p.entries FROM posting p
JOIN unnest(%(keys)s::bigint[], %(lows)s::bigint[], %(highs)s::bigint[]) AS k(key, low, high) USING (key)
WHERE p.namespace = %(namespace)s AND p.low <= k.high AND p.high >= k.low
ORDER BY p.key, p.segment FOR UPDATE OF p;

-- posting_delete --
-- Delete a posting row that lost its last memory.
DELETE FROM posting p USING unnest(%(keys)s::bigint[], %(segments)s::bigint[]) AS k(key, segment)
WHERE p.namespace = %(namespace)s AND p.key = k.key AND p.segment = k.segment;

-- posting_rewrite --
-- Update a posting row that lost some memories. The entries are sent in binary format (b): as text they are four times as
-- long to make.
UPDATE posting p SET entries = k.entries, n = k.n, subjects = k.subjects, low = k.low, high = k.high
FROM unnest(%(keys)s::bigint[], %(segments)s::bigint[], %(entries)b::bytea[], %(n)s::int[], %(subjects)s::int[],
            %(lows)s::bigint[], %(highs)s::bigint[]) AS k(key, segment, entries, n, subjects, low, high)
WHERE p.namespace = %(namespace)s AND p.key = k.key AND p.segment = k.segment;

-- fresh_add --
-- Mark a segment as fresh: compaction considers its keys.
INSERT INTO fresh (namespace, segment) VALUES (%(namespace)s, %(segment)s);

-- fresh_list --
-- Return the fresh segments: those written since the last compaction.
SELECT segment FROM fresh WHERE namespace = %(namespace)s ORDER BY segment;

-- fresh_done --
-- Unmark fresh segments that were merged, or that are too few to be worth merging.
DELETE FROM fresh WHERE namespace = %(namespace)s AND segment = ANY(%(segments)s);

-- fresh_empty --
-- Unmark the fresh segments of a namespace without postings.
DELETE FROM fresh WHERE namespace = %(namespace)s AND NOT EXISTS (
    SELECT FROM posting WHERE namespace = %(namespace)s);

-- <rows_joined> --
-- The rows that are gone, each key's merged into as few as may be full.
), placed AS (
    SELECT *, ((sum(n) OVER (PARTITION BY key ORDER BY low, segment) - n) / %(full)s)::bigint AS piece FROM gone
)
INSERT INTO posting (namespace, key, segment, kind, n, subjects, low, high, name, entries, lone)
SELECT %(namespace)s, key, max(segment), min(kind), sum(n), sum(subjects), min(low), max(high),
       (array_agg(name ORDER BY segment))[1], string_agg(entries, ''::bytea ORDER BY low, segment), false
FROM placed GROUP BY key, piece
RETURNING 1

-- compact --
-- Join, for each key that has at least so many fresh rows in the given segments, the newest rows up to the oldest that is
-- at most twice as large as all newer ones together; so each remaining row is more than twice as large. Full rows stay.
-- Keys are looked up as one array and rows are compared with a set (IS TRUE keeps it from becoming a join): a plan that
-- was made while the table was empty would read all rows of a segment for each one.
WITH touched AS (
    SELECT key FROM posting
    WHERE namespace = %(namespace)s AND NOT lone AND segment = ANY(%(segments)s::bigint[])
    GROUP BY key HAVING count(*) >= %(fresh)s
), held AS (
    SELECT p.key, p.segment, p.n, row_number() OVER newest AS age, sum(p.n + 1) OVER newest - p.n - 1 AS newer
    FROM posting p
    WHERE p.namespace = %(namespace)s AND NOT p.lone AND p.n < %(full)s
      AND p.key = ANY((SELECT array_agg(key) FROM touched)::bigint[])
    WINDOW newest AS (PARTITION BY p.key ORDER BY p.segment DESC)
), bounded AS (
    SELECT key, segment, age, max(age) FILTER (WHERE age = 1 OR n <= 2 * newer) OVER (PARTITION BY key) AS last
    FROM held
), chosen AS (
    SELECT key, segment FROM (
        SELECT key, segment, count(*) OVER (PARTITION BY key) AS together FROM bounded WHERE age <= last) AS joined
    WHERE together >= %(least)s
), gone AS (
    DELETE FROM posting p
    WHERE p.namespace = %(namespace)s AND NOT p.lone AND p.n < %(full)s
      AND p.key = ANY((SELECT array_agg(DISTINCT key) FROM chosen)::bigint[])
      AND ((p.key, p.segment) IN (SELECT key, segment FROM chosen)) IS TRUE
    RETURNING p.key, p.segment, p.kind, p.n, p.subjects, p.low, p.high, p.name, p.entries
<rows_joined>;

-- keys_of_several_rows --
-- Return the keys with a row in a segment after the given one that have several rows which can be joined, ascending, and
-- how many rows these are; the keys are NULL for none. Keys are looked up as one array, so that no plan reads all rows of
-- a large namespace for a few.
WITH touched AS (
    SELECT DISTINCT key FROM posting
    WHERE namespace = %(namespace)s AND NOT lone AND segment > %(after)s::bigint AND n < %(full)s
)
SELECT string_agg(int8send(key), ''::bytea ORDER BY key), coalesce(sum(rows), 0)::bigint FROM (
    SELECT key, count(*) AS rows FROM posting
    WHERE namespace = %(namespace)s AND NOT lone AND n < %(full)s
      AND key = ANY((SELECT array_agg(key) FROM touched)::bigint[])
    GROUP BY key HAVING count(*) > 1) AS several;

-- compact_keys --
-- Join all rows of each of some keys, but full ones.
WITH gone AS (
    DELETE FROM posting p
    WHERE p.namespace = %(namespace)s AND NOT p.lone AND p.n < %(full)s AND p.key = ANY(%(keys)s::bigint[])
    RETURNING p.key, p.segment, p.kind, p.n, p.subjects, p.low, p.high, p.name, p.entries
<rows_joined>;

-- segments_known --
-- Return those of the keys that several memories have, by one row of each: some have hundreds of rows. The first key from
-- each one on is asked for, in order, so that no plan reads the rows of the namespace by another index for each key.
SELECT k.key FROM unnest(%(keys)s::bigint[]) AS k(key)
CROSS JOIN LATERAL (
    SELECT p.key FROM posting p WHERE p.namespace = %(namespace)s AND p.key >= k.key AND NOT p.lone
    ORDER BY p.key LIMIT 1) AS held
WHERE held.key = k.key;

-- segments_meet --
-- Mark keys as shared that only one memory had until now, and return them.
UPDATE posting SET lone = false WHERE namespace = %(namespace)s AND key = ANY(%(keys)s) AND lone RETURNING key;

-- singleton_meet --
-- Write a row of their own for keys in lone_posting that another memory now has too; that row counts instead. Returns the
-- keys.
INSERT INTO posting (namespace, key, segment, kind, n, subjects, low, high, name, entries, lone)
SELECT %(namespace)s, k.key, 0, get_byte(l.kinds, a.at - 1),
       (get_byte(e.entry, 4) + get_byte(e.entry, 5) + get_byte(e.entry, 8) > 0)::int, (get_byte(e.entry, 9) > 0)::int,
       e.ord, e.ord, l.names[a.at], e.entry, false
FROM (
    SELECT DISTINCT u.key FROM unnest(%(keys)s::bigint[]) AS u(key)
    WHERE EXISTS (SELECT FROM lone_posting l WHERE l.namespace = %(namespace)s)) AS k  -- none, before maintain has packed
CROSS JOIN LATERAL (<singleton_row_of_key>) AS l
CROSS JOIN LATERAL (SELECT array_position(l.keys, k.key) AS at) AS a
CROSS JOIN LATERAL (SELECT substr(l.entries, 12 * a.at - 11, 12) AS entry) AS f
CROSS JOIN LATERAL (
    SELECT f.entry, get_byte(f.entry, 0) | (get_byte(f.entry, 1) << 8) | (get_byte(f.entry, 2) << 16)
                    | (get_byte(f.entry, 3)::bigint << 24) AS ord) AS e
WHERE a.at IS NOT NULL AND NOT EXISTS (
    SELECT FROM posting p WHERE p.namespace = %(namespace)s AND p.key = k.key)
RETURNING key;

-- singleton_clear --
-- Remove memories from the rows of lone_posting that hold their keys; delete rows that are then empty.
WITH gone AS MATERIALIZED (
    SELECT DISTINCT key, ord FROM unnest(%(keys)s::bigint[], %(ords)s::bigint[]) AS g(key, ord)
), touched AS MATERIALIZED (
    SELECT DISTINCT l.first FROM (SELECT DISTINCT key FROM gone) AS k
    CROSS JOIN LATERAL (<singleton_row_of_key>) AS l
    WHERE k.key = ANY(l.keys)
), taken AS (
    DELETE FROM lone_posting l USING touched t WHERE l.namespace = %(namespace)s AND l.first = t.first
    RETURNING l.first, l.keys, l.kinds, l.entries, l.names
), held AS (
    SELECT t.first, u.key, u.name, u.at, get_byte(t.kinds, u.at::int - 1) AS kind,
           substr(t.entries, 12 * u.at::int - 11, 12) AS entry
    FROM taken t CROSS JOIN LATERAL unnest(t.keys, t.names) WITH ORDINALITY AS u(key, name, at)
), numbered AS (
    SELECT *, get_byte(entry, 0) | (get_byte(entry, 1) << 8) | (get_byte(entry, 2) << 16)
              | (get_byte(entry, 3)::bigint << 24) AS ord
    FROM held
)
INSERT INTO lone_posting (namespace, first, low, high, keys, kinds, entries, names)
SELECT %(namespace)s, n.first, min(n.ord), max(n.ord), array_agg(n.key ORDER BY n.at),
       string_agg(set_byte('\x00'::bytea, 0, n.kind), ''::bytea ORDER BY n.at),
       string_agg(n.entry, ''::bytea ORDER BY n.at), array_agg(n.name ORDER BY n.at)
FROM numbered n WHERE NOT EXISTS (SELECT FROM gone g WHERE g.key = n.key AND g.ord = n.ord) GROUP BY n.first;

-- singleton_sizes --
-- Of the keys up to one, count those of single memories with rows of their own, and those in lone_posting.
SELECT (SELECT count(*) FROM posting WHERE namespace = %(namespace)s AND lone AND key <= %(upto)s::bigint),
       (SELECT coalesce(sum(cardinality(keys)), 0)::bigint FROM lone_posting
        WHERE namespace = %(namespace)s AND first <= %(upto)s::bigint);

-- singleton_pack --
-- Rewrite the rows of lone_posting for a range of keys, with all keys of single memories in it and those of the last
-- row that begins in it, except keys with rows of their own. Returns the last key, and how many rows were removed.
WITH bound AS MATERIALIZED (
    SELECT greatest(%(upto)s::bigint, (
        SELECT l.keys[cardinality(l.keys)] FROM lone_posting l
        WHERE l.namespace = %(namespace)s AND l.first <= %(upto)s::bigint ORDER BY l.first DESC LIMIT 1)) AS upto
), alone AS (
    DELETE FROM posting p USING bound b
    WHERE p.namespace = %(namespace)s AND p.lone AND p.key BETWEEN %(since)s::bigint AND b.upto
    RETURNING p.key, p.kind::int AS kind, p.name, p.entries AS entry
), before AS (
    DELETE FROM lone_posting l USING bound b
    WHERE l.namespace = %(namespace)s AND l.first BETWEEN %(since)s::bigint AND b.upto
    RETURNING l.keys, l.kinds, l.entries, l.names
), held AS (
    SELECT key, kind, name, entry FROM alone
    UNION ALL
    SELECT u.key, get_byte(t.kinds, u.at::int - 1), u.name, substr(t.entries, 12 * u.at::int - 11, 12)
    FROM before t CROSS JOIN LATERAL unnest(t.keys, t.names) WITH ORDINALITY AS u(key, name, at)
    WHERE NOT EXISTS (SELECT FROM posting p WHERE p.namespace = %(namespace)s AND p.key = u.key)
), placed AS (
    SELECT *, (row_number() OVER (ORDER BY key) - 1) / %(size)s::int AS piece,
           get_byte(entry, 0) | (get_byte(entry, 1) << 8) | (get_byte(entry, 2) << 16)
           | (get_byte(entry, 3)::bigint << 24) AS ord
    FROM held
), made AS (
    INSERT INTO lone_posting (namespace, first, low, high, keys, kinds, entries, names)
    SELECT %(namespace)s, min(key), min(ord), max(ord), array_agg(key ORDER BY key),
           string_agg(set_byte('\x00'::bytea, 0, kind), ''::bytea ORDER BY key),
           string_agg(entry, ''::bytea ORDER BY key), array_agg(name ORDER BY key)
    FROM placed GROUP BY piece
)
SELECT b.upto, (SELECT count(*) FROM alone) FROM bound b;
