-- memory_firsts --
-- Return the first memory with the content of each item that was not stored because it repeats it.
SELECT DISTINCT ON (r.id) r.id, o.id
FROM unnest(%(ids)s::text[], %(contents)s::bytea[], %(payloads)s::bytea[]) AS r(id, content, payload)
JOIN memory o ON o.namespace = %(namespace)s AND o.content = r.content AND o.payload = r.payload AND o.part = 0
    AND NOT o.sensitive AND o.expires_at IS NULL
    AND o.ord > coalesce((SELECT n.dropping FROM namespace n WHERE n.namespace = %(namespace)s), 0)
    AND NOT EXISTS (
        SELECT FROM link l JOIN memory n ON n.namespace = l.namespace AND n.id = l.from_id AND n.part = 0
        WHERE l.namespace = %(namespace)s AND l.to_id = o.id AND l.type IN ('contradicts', 'supersedes'))
WHERE r.id <> o.id
ORDER BY r.id, o.created_at, o.id;

-- corroborate_lock --
-- Lock the memories whose repeats are counted, in the common order. One that is not locked was replaced or removed while
-- the lock was waited for.
WITH existing AS MATERIALIZED (
    SELECT id, part FROM memory WHERE namespace = %(namespace)s AND id = ANY(%(ids)s)
), locked AS MATERIALIZED (
    SELECT id, part FROM memory WHERE namespace = %(namespace)s AND id = ANY(%(ids)s) ORDER BY id, part FOR UPDATE
)
SELECT id, part, (id, part) IN (SELECT id, part FROM locked) FROM existing ORDER BY 1, 2;

-- memory_corroborate --
-- Count a repeat and its time; version and time of the last change stay as they are. Where it is asked for, what another
-- memory has contradicted since, or may have as its links are not made yet, is left out; some are not looked at. So is a
-- memory that has another content by now than the repeat.
UPDATE memory m SET seen_count = m.seen_count + r.times, last_seen = greatest(now(), m.last_seen)
FROM unnest(%(ids)s::text[], %(times)s::int[], %(contents)s::bytea[]) AS r(id, times, content)
WHERE m.namespace = %(namespace)s AND m.id = r.id AND m.part = 0 AND (r.content IS NULL OR m.content = r.content)
  AND (%(besides)s::text[] IS NULL OR NOT EXISTS (
        SELECT FROM link l JOIN memory n ON n.namespace = l.namespace AND n.id = l.from_id AND n.part = 0
        WHERE l.namespace = %(namespace)s AND l.to_id = m.id AND l.type IN ('contradicts', 'supersedes')
          AND n.id <> ALL(%(besides)s))
    AND NOT EXISTS (
        SELECT FROM likeness a CROSS JOIN uncompared u
        JOIN likeness b ON b.namespace = u.namespace AND b.ord = u.ord AND b.keys && a.keys
        JOIN memory n ON n.namespace = u.namespace AND n.ord = u.ord
        WHERE a.namespace = %(namespace)s AND a.ord = m.ord AND u.namespace = %(namespace)s AND u.ord <> m.ord
          AND n.id <> ALL(%(besides)s)))
RETURNING m.id;

-- comparison_like --
-- Return the memories whose links are not made yet and that have keys in common with some.
SELECT <memory_columns_m>, m.text_at
FROM uncompared u JOIN memory m ON m.namespace = u.namespace AND m.ord = u.ord
JOIN likeness b ON b.namespace = u.namespace AND b.ord = u.ord
WHERE u.namespace = %(namespace)s AND EXISTS (
    SELECT FROM memory o JOIN likeness a ON a.namespace = o.namespace AND a.ord = o.ord AND a.keys && b.keys
    WHERE o.namespace = %(namespace)s AND o.id = ANY(%(ids)s) AND o.part = 0 AND o.ord <> u.ord)
ORDER BY u.ord;

-- <likeness_shifts> --
-- By how much keys are shifted to the numbers of packed rows: one number, or two while rows are made narrower.
(SELECT shift FROM packed_likeness WHERE namespace = %(namespace)s ORDER BY shift LIMIT 1)
UNION (SELECT shift FROM packed_likeness WHERE namespace = %(namespace)s ORDER BY shift DESC LIMIT 1)

-- <packed_likeness_of_key> --
-- The row of packed_likeness that the key of k is in, if it is in one. Key by key, for a plan that knows no namespace would
-- read all rows of one first.
CROSS JOIN (<likeness_shifts>) AS s
CROSS JOIN LATERAL (
    SELECT * FROM packed_likeness p
    WHERE p.namespace = %(namespace)s AND p.shift = s.shift AND p.bits = k.key >> s.shift AND k.key = ANY(p.keys) LIMIT 1) AS l

-- likeness_add --
-- Store the likeness keys of memories that have none, each once, in the order of the index.
WITH whole AS (
    INSERT INTO likeness (namespace, ord, keys)
    SELECT %(namespace)s, r.ord, array_agg(r.key::integer) FROM unnest(%(keys)s::bigint[], %(ords)s::bigint[]) AS r(key, ord)
    GROUP BY r.ord
)
INSERT INTO likeness_key (namespace, key, ord)
SELECT %(namespace)s, r.key::integer, r.ord FROM unnest(%(keys)s::bigint[], %(ords)s::bigint[]) AS r(key, ord);

-- <likened> --
-- Of each memory those before it, or before a number, that have keys in common with it: of each key the newest few, and
-- of these those with most keys in common. Index look-ups, of a bounded number, whatever the size of the namespace.
-- A memory all of whose finds have other titles is linked with none, so these are not returned, and no text is read.
k AS (
    SELECT r.key::integer AS key, r.ord, greatest(r.ord, %(upto)s::bigint) AS bound
    FROM unnest(%(keys)s::bigint[], %(ords)s::bigint[]) AS r(key, ord)
), common AS (
    SELECT k.ord, k.key, l.ord AS other FROM k
    CROSS JOIN LATERAL (
        SELECT l.ord FROM likeness_key l
        WHERE l.namespace = %(namespace)s AND l.key = k.key AND l.ord < k.bound AND l.ord <> k.ord
        ORDER BY l.ord DESC LIMIT %(newest)s) AS l
    UNION ALL
    SELECT k.ord, k.key, l.ords[p.at]::bigint FROM k
    <packed_likeness_of_key>
    CROSS JOIN LATERAL unnest(array_positions(l.keys, k.key)) AS p(at)
    WHERE l.ords[p.at]::bigint < k.bound AND l.ords[p.at]::bigint <> k.ord
), newest AS (
    SELECT ord, other, row_number() OVER (PARTITION BY ord, key ORDER BY other DESC) AS age FROM common
), best AS MATERIALIZED (
    SELECT * FROM (
        SELECT ord, other, row_number() OVER (PARTITION BY ord ORDER BY count(*) DESC, other DESC) AS place
        FROM newest WHERE age <= %(newest)s GROUP BY ord, other) AS placed
    WHERE place <= %(newest)s
), own AS MATERIALIZED (  -- by its number, never by reading the namespace
    SELECT ord, coalesce((SELECT m.title FROM memory m WHERE m.namespace = %(namespace)s AND m.ord = q.ord), '') AS title
    FROM best q GROUP BY ord
), held AS MATERIALIZED (
    SELECT q.ord, q.place, m.id, m.ord AS other, m.text, m.title, m.author, coalesce(m.text_at, m.created_at) AS at,
           bool_or(own.title = '' OR coalesce(m.title, '') IN ('', own.title)) OVER (PARTITION BY q.ord) AS linkable
    FROM best q JOIN own USING (ord)
    CROSS JOIN LATERAL (SELECT * FROM memory WHERE namespace = %(namespace)s AND ord = q.other LIMIT 1) AS m
    WHERE NOT m.sensitive AND (m.expires_at IS NULL OR m.expires_at > now())
), likened AS MATERIALIZED (
    SELECT * FROM held WHERE linkable
)

-- likeness_find --
-- Return what each memory is like. What has found something is noted, until its links are made.
WITH <likened>, noted AS (
    INSERT INTO uncompared (namespace, ord) SELECT DISTINCT %(namespace)s, ord FROM likened ON CONFLICT DO NOTHING
)
SELECT ord, id, other, text, title, author, at FROM likened ORDER BY ord, place;

-- likeness_find_on_nodes --
-- Return the same and note nothing: Citus would hand what is found to every node, also to one that does not answer.
WITH <likened> SELECT ord, id, other, text, title, author, at FROM likened ORDER BY ord, place;

-- likeness_note --
-- Note that memories have found some, until their links are made.
INSERT INTO uncompared (namespace, ord) SELECT %(namespace)s, unnest(%(ords)s::bigint[]) ON CONFLICT DO NOTHING;

-- <comparable> --
-- No part, no sensitive memory, no turn, and none that has expired.
m.part = 0 AND NOT m.sensitive AND (m.session IS NULL OR m.position IS NULL)
  AND (m.expires_at IS NULL OR m.expires_at > now())

-- likeness_missing --
-- What has no keys, and may have some, or whose links are not made yet; nothing while the namespace is moved.
SELECT <memory_columns>, text_at
FROM memory m
WHERE namespace = %(namespace)s AND ord > %(after)s AND <comparable>
  AND (NOT EXISTS (SELECT FROM likeness l WHERE l.namespace = m.namespace AND l.ord = m.ord)
       OR EXISTS (SELECT FROM uncompared u WHERE u.namespace = m.namespace AND u.ord = m.ord))
  AND NOT EXISTS (SELECT 1 FROM namespace o WHERE o.namespace = %(namespace)s AND o.state IS NOT NULL)
ORDER BY ord LIMIT %(limit)s;

-- likeness_missing_somewhere --
-- List the namespaces that have such memories. As joins, because Citus sends no other form of it to its nodes.
SELECT DISTINCT m.namespace
FROM memory m
JOIN namespace n ON n.namespace = m.namespace AND n.state IS NULL
LEFT JOIN likeness l ON l.namespace = m.namespace AND l.ord = m.ord
LEFT JOIN uncompared u ON u.namespace = m.namespace AND u.ord = m.ord
WHERE <comparable> AND (l.ord IS NULL OR u.ord IS NOT NULL);

-- likeness_unpacked --
-- List the namespaces with likeness keys that have rows of their own, each with its memories.
SELECT namespace, memories FROM namespace n WHERE state IS DISTINCT FROM 'filling' AND state IS DISTINCT FROM 'emptying'
  AND EXISTS (SELECT FROM likeness_key l WHERE l.namespace = n.namespace) ORDER BY namespace;

-- likeness_forget --
-- The keys of memories that go; under the lock of the namespace, as all who write packed rows. They go out of the rows of
-- keys, packed ones too; one that holds nothing more goes. Citus hands what a WITH inserts to every node, so none does.
-- NOT IN is looked up by a hash, whatever the planner expects of how many rows are taken; NOT EXISTS was a loop in a loop.
WITH gone AS (
    DELETE FROM likeness WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s) RETURNING ord, keys
), pair AS MATERIALIZED (
    SELECT u.key, g.ord FROM gone g CROSS JOIN LATERAL unnest(g.keys) AS u(key)
), apart AS (
    DELETE FROM likeness_key l USING pair p WHERE l.namespace = %(namespace)s AND l.key = p.key AND l.ord = p.ord
), touched AS MATERIALIZED (
    SELECT DISTINCT l.shift, l.bits FROM (SELECT DISTINCT key FROM pair) AS k
    <packed_likeness_of_key>
), taken AS (
    DELETE FROM packed_likeness l USING touched t
    WHERE l.namespace = %(namespace)s AND l.shift = t.shift AND l.bits = t.bits
    RETURNING l.shift, l.bits, l.keys, l.ords
)
INSERT INTO packed_likeness (namespace, shift, bits, keys, ords)
SELECT %(namespace)s, t.shift, t.bits, array_agg(u.key ORDER BY u.at), array_agg(u.ord ORDER BY u.at)
FROM taken t CROSS JOIN LATERAL unnest(t.keys, t.ords) WITH ORDINALITY AS u(key, ord, at)
WHERE (u.key, u.ord::bigint) NOT IN (SELECT key, ord FROM pair) GROUP BY t.shift, t.bits;

-- likeness_count --
-- How many rows of keys can be packed, how many keys are packed, each counted for each of its memories, and by how much
-- they are shifted at most.
SELECT (SELECT coalesce(sum(n), 0)::bigint FROM (
            SELECT count(*) AS n FROM likeness_key WHERE namespace = %(namespace)s
            GROUP BY key HAVING count(*) <= %(most)s) AS few),
       (SELECT coalesce(sum(cardinality(keys)), 0)::bigint FROM packed_likeness WHERE namespace = %(namespace)s),
       (SELECT max(shift) FROM packed_likeness WHERE namespace = %(namespace)s);

-- likeness_pack --
-- All keys in a range that few memories have are written into packed rows anew. A key that has come to have more
-- memories has rows of its own from then on. Rows get narrower as keys get more, and while some are, the others get as
-- narrow. Returns how many rows went.
WITH s AS MATERIALIZED (<likeness_shifts>), before AS (
    DELETE FROM packed_likeness l USING s
    WHERE l.namespace = %(namespace)s AND l.shift = s.shift
      AND l.bits BETWEEN %(since)s::integer >> s.shift AND %(upto)s::integer >> s.shift
    RETURNING l.keys, l.ords
), held AS (
    SELECT l.key, l.ord, true AS apart FROM likeness_key l
    WHERE l.namespace = %(namespace)s AND l.key BETWEEN %(since)s::integer AND %(upto)s::integer
    UNION ALL
    SELECT u.key, u.ord::bigint, false FROM before t CROSS JOIN LATERAL unnest(t.keys, t.ords) AS u(key, ord)
), counted AS MATERIALIZED (
    SELECT key, ord, apart, count(*) OVER (PARTITION BY key) <= %(most)s AS few FROM held
), wanted AS (
    SELECT CASE WHEN (SELECT count(*) FROM s) = 2 THEN (SELECT min(shift) FROM s) ELSE least((SELECT min(shift) FROM s),
        %(widest)s::integer - ceil(log(2, greatest(count(*), %(full)s)::numeric / %(full)s))::integer) END AS shift
    FROM counted WHERE few
), made AS (
    INSERT INTO packed_likeness (namespace, shift, bits, keys, ords)
    SELECT %(namespace)s, w.shift, c.key >> w.shift, array_agg(c.key ORDER BY c.key, c.ord),
           array_agg(c.ord::oid ORDER BY c.key, c.ord)
    FROM counted c CROSS JOIN wanted w WHERE c.few GROUP BY w.shift, c.key >> w.shift
), many AS (
    INSERT INTO likeness_key (namespace, key, ord) SELECT %(namespace)s, key, ord FROM counted WHERE NOT few AND NOT apart
), went AS (
    DELETE FROM likeness_key l USING counted c
    WHERE l.namespace = %(namespace)s AND l.key = c.key AND l.ord = c.ord AND c.few AND c.apart
    RETURNING 1
)
SELECT count(*) FROM went;

-- comparison_waiting --
-- Return some memories whose comparison others left pending; a writer has some time to link what it has just noted.
SELECT <memory_columns_m>, m.text_at
FROM uncompared u JOIN memory m ON m.namespace = u.namespace AND m.ord = u.ord
WHERE u.namespace = %(namespace)s AND u.at <= now() - make_interval(secs => %(seconds)s)
ORDER BY u.ord LIMIT %(limit)s;

-- comparison_done --
-- Delete the notes of memories that were compared; return whether others have been noted for long.
WITH gone AS (DELETE FROM uncompared WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s))
SELECT EXISTS (SELECT FROM uncompared WHERE namespace = %(namespace)s AND ord <> ALL(%(ords)s)
               AND at <= now() - make_interval(secs => %(seconds)s));

-- comparison_again --
-- Note memories that are to be compared again at once.
INSERT INTO uncompared (namespace, ord, at)
SELECT %(namespace)s, m.ord, 'epoch'::timestamptz FROM memory m
WHERE m.namespace = %(namespace)s AND m.id = ANY(%(ids)s) AND m.part = 0 AND NOT m.sensitive
ON CONFLICT (namespace, ord) DO UPDATE SET at = excluded.at;

-- comparison_forget --
-- Delete the notes of removed memories.
DELETE FROM uncompared WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s);

-- comparison_around --
-- Note the memories that semmem linked with some that are removed or get another text, to be compared again.
INSERT INTO uncompared (namespace, ord, at)
SELECT %(namespace)s, m.ord, 'epoch'::timestamptz FROM (
    SELECT l.from_id AS id FROM link l WHERE l.namespace = %(namespace)s AND l.to_id = ANY(%(ids)s)
        AND l.made_by = 'semmem' AND l.type IN ('contradicts', 'supersedes')
    UNION
    SELECT l.to_id FROM link l WHERE l.namespace = %(namespace)s AND l.from_id = ANY(%(ids)s)
        AND l.made_by = 'semmem' AND l.type IN ('contradicts', 'supersedes')) AS o
JOIN memory m ON m.namespace = %(namespace)s AND m.id = o.id AND m.part = 0 AND NOT m.sensitive
WHERE o.id <> ALL(%(ids)s)
ON CONFLICT (namespace, ord) DO UPDATE SET at = excluded.at;
