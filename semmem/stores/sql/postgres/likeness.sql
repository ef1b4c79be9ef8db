-- memory_firsts --
-- Of what was not stored because it had been said before: which memory said it first.
SELECT DISTINCT ON (r.id) r.id, o.id
FROM unnest(%(ids)s::text[], %(contents)s::bytea[], %(payloads)s::bytea[]) AS r(id, content, payload)
JOIN memory o ON o.namespace = %(namespace)s AND o.content = r.content AND o.payload = r.payload AND o.part = 0
    AND NOT o.sensitive AND o.expires_at IS NULL
    AND o.ord > coalesce((SELECT n.dropping FROM namespace n WHERE n.namespace = %(namespace)s), 0)
WHERE r.id <> o.id
ORDER BY r.id, o.created_at, o.id;

-- memory_corroborate --
-- What was said again counts how often, and when last. Its version and the time of its last change stay.
UPDATE memory m SET seen_count = m.seen_count + r.times, last_seen = greatest(now(), m.last_seen)
FROM unnest(%(ids)s::text[], %(times)s::int[]) AS r(id, times)
WHERE m.namespace = %(namespace)s AND m.id = r.id AND m.part = 0
RETURNING m.id;

-- likeness_add --
-- The keys of some memories that have none, each once, in the order of the index.
INSERT INTO likeness (namespace, key, ord)
SELECT %(namespace)s, r.key, r.ord FROM unnest(%(keys)s::bigint[], %(ords)s::bigint[]) AS r(key, ord);

-- likeness_find --
-- Of each memory those before it, or before a number, that have keys in common with it: of each key the newest few, and of these those with most
-- keys in common. Index look-ups, of a bounded number, whatever the size of the namespace.
SELECT q.ord, m.id, m.ord, m.text, m.title, m.author, m.created_at
FROM (
    SELECT k.ord, c.ord AS other, row_number() OVER (PARTITION BY k.ord ORDER BY count(*) DESC, c.ord DESC) AS place
    FROM unnest(%(keys)s::bigint[], %(ords)s::bigint[]) AS k(key, ord)
    CROSS JOIN LATERAL (
        SELECT l.ord FROM likeness l WHERE l.namespace = %(namespace)s AND l.key = k.key AND l.ord < greatest(k.ord, %(upto)s::bigint)
          AND l.ord <> k.ord
        ORDER BY l.ord DESC LIMIT %(newest)s) AS c
    GROUP BY k.ord, c.ord) AS q
CROSS JOIN LATERAL (  -- by its number, never by reading the namespace
    SELECT * FROM memory WHERE namespace = %(namespace)s AND ord = q.other LIMIT 1) AS m
WHERE q.place <= %(newest)s AND NOT m.sensitive AND (m.expires_at IS NULL OR m.expires_at > now())
ORDER BY q.ord, q.place;

-- likeness_missing --
-- What has no keys, and may have some.
SELECT namespace, id, part, text, title, author, session, position, source, tags, metadata, importance, created_at,
       updated_at, version, sensitive, valid_from, valid_to, expires_at, pinned, seen_count, last_seen, ord
FROM memory m
WHERE namespace = %(namespace)s AND ord > %(after)s AND part = 0 AND NOT sensitive AND (session IS NULL OR position IS NULL)
  AND (expires_at IS NULL OR expires_at > now())
  AND NOT EXISTS (SELECT FROM likeness l WHERE l.namespace = m.namespace AND l.ord = m.ord)
ORDER BY ord LIMIT %(limit)s;

-- likeness_forget --
-- Those of memories that go.
DELETE FROM likeness WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s);
