-- link_there --
-- Return which of the memories to link exist, and when the text of each began. Run under the lock of the namespace's row,
-- behind which a forget removes the links of its memories.
SELECT id, extract(epoch FROM coalesce(text_at, created_at))::float8 FROM memory WHERE namespace = %(namespace)s AND id = ANY(%(ids)s) AND part = 0;

-- link_order --
-- Return the links above the newer and below the older memories, with which a new link could close a circle.
WITH RECURSIVE newer(id) AS (
    SELECT f.id COLLATE "C" FROM unnest(%(from_ids)s::text[]) AS f(id)
    UNION
    SELECT l.from_id FROM newer n
    JOIN link l ON l.namespace = %(namespace)s AND l.to_id = n.id AND l.type = 'supersedes'
), older(id) AS (
    SELECT t.id COLLATE "C" FROM unnest(%(to_ids)s::text[]) AS t(id)
    UNION
    SELECT l.to_id FROM older o
    JOIN link l ON l.namespace = %(namespace)s AND l.from_id = o.id AND l.type = 'supersedes'
)
SELECT l.from_id, l.to_id, l.made_by FROM newer n
JOIN link l ON l.namespace = %(namespace)s AND l.to_id = n.id AND l.type = 'supersedes'
UNION
SELECT l.from_id, l.to_id, l.made_by FROM older o
JOIN link l ON l.namespace = %(namespace)s AND l.from_id = o.id AND l.type = 'supersedes';

-- link_add --
-- Store links; existing ones stay, except that a link made by semmem takes over another maker, and an earlier time
-- where one is given, as by an export. Returns the links that are new or have another maker or time.
INSERT INTO link (namespace, from_id, type, to_id, since, made_by)
SELECT %(namespace)s, r.from_id, r.type, r.to_id, coalesce(r.since, now()), r.made_by
FROM unnest(%(from_ids)s::text[], %(types)s::text[], %(to_ids)s::text[], %(since)s::timestamptz[], %(made_by)s::text[])
     AS r(from_id, type, to_id, since, made_by)
ON CONFLICT (namespace, from_id, type, to_id) DO UPDATE
    SET made_by = excluded.made_by, since = least(link.since, excluded.since)
    WHERE link.made_by = 'semmem' AND (excluded.made_by IS DISTINCT FROM 'semmem' OR excluded.since < link.since)
RETURNING from_id, type, to_id;

-- link_remove --
-- Delete one link.
DELETE FROM link WHERE namespace = %(namespace)s AND from_id = %(from_id)s AND type = %(type)s AND to_id = %(to_id)s
RETURNING from_id, type, to_id;

-- link_forget_made --
-- Delete the links that semmem made of memories that have another text now.
DELETE FROM link WHERE namespace = %(namespace)s AND made_by = 'semmem' AND (from_id = ANY(%(ids)s) OR to_id = ANY(%(ids)s))
RETURNING from_id, type, to_id;

-- <shown_m> --
-- The whole memory m has not expired.
m.part = 0 AND (m.expires_at IS NULL OR m.expires_at > now())

-- link_list --
-- Return the links from and to memories whose other end exists too; softly forgotten memories keep theirs, unseen.
SELECT l.from_id, l.type, l.to_id, l.since, l.made_by
FROM (SELECT * FROM link WHERE namespace = %(namespace)s AND from_id = ANY(%(ids)s)
      UNION
      SELECT * FROM link WHERE namespace = %(namespace)s AND to_id = ANY(%(ids)s)) AS l
WHERE EXISTS (SELECT FROM memory m WHERE m.namespace = %(namespace)s AND m.id = l.from_id AND <shown_m>)
  AND EXISTS (SELECT FROM memory m WHERE m.namespace = %(namespace)s AND m.id = l.to_id AND <shown_m>) AND <open>
ORDER BY l.from_id, l.type, l.to_id;

-- link_undecided --
-- Return the newest links of a type between memories that exist, without those of which one supersedes the other; of
-- see-also only those that semmem made, which are near-duplicates.
SELECT l.from_id, l.type, l.to_id, l.since, l.made_by FROM link l
WHERE l.namespace = %(namespace)s AND l.type = %(type)s AND (l.type <> 'see-also' OR l.made_by = 'semmem')
  AND NOT EXISTS (SELECT FROM link s WHERE s.namespace = %(namespace)s AND s.type = 'supersedes'
                  AND (s.from_id, s.to_id) IN ((l.from_id, l.to_id), (l.to_id, l.from_id)))
  AND EXISTS (SELECT FROM memory m WHERE m.namespace = %(namespace)s AND m.id = l.from_id AND <shown_m>)
  AND EXISTS (SELECT FROM memory m WHERE m.namespace = %(namespace)s AND m.id = l.to_id AND <shown_m>) AND <open>
ORDER BY l.since DESC, l.from_id DESC, l.to_id DESC
LIMIT %(limit)s;

-- link_newer --
-- Return the memories that supersede others, along each chain to the newest, each with its row. A memory of which no
-- version is valid yet, now or at the time asked for, supersedes nothing, and one that has expired does not exist. A
-- sensitive one, which is in no index, is returned too, because the memory that it supersedes is out of date.
WITH RECURSIVE chain(old, id, depth) AS (
    SELECT k.id COLLATE "C", k.id COLLATE "C", 0 FROM unnest(%(ids)s::text[]) AS k(id)
    UNION
    SELECT l.to_id, l.from_id, c.depth + 1 FROM chain c
    JOIN link l ON l.namespace = %(namespace)s AND l.to_id = c.id AND l.type = 'supersedes'
    JOIN memory m ON m.namespace = %(namespace)s AND m.id = l.from_id AND m.part = 0
    WHERE c.depth < %(deepest)s
      AND (m.expires_at IS NULL OR m.expires_at > now())
      AND (m.valid_from IS NULL OR m.valid_from <= coalesce(%(at)s::timestamptz, now()) OR EXISTS (
          SELECT FROM history h WHERE h.namespace = %(namespace)s AND h.id = m.id AND h.forgotten_at IS NULL
            AND coalesce(h.valid_from, h.updated_at) <= %(at)s::timestamptz))
      AND (%(at)s::timestamptz IS NULL OR m.created_at <= %(at)s AND (
          m.text_at IS NULL OR m.text_at <= %(at)s OR l.made_by IS DISTINCT FROM 'semmem'))
)
SELECT DISTINCT c.old, m.sensitive, m.ord, m.namespace, m.id, m.part, m.importance, m.content,
       extract(epoch FROM m.created_at)::float8, extract(epoch FROM m.updated_at)::float8
FROM chain c JOIN memory m ON m.namespace = %(namespace)s AND m.id = c.id AND m.part <= 1
    AND (m.parts = 0 OR m.sensitive)
WHERE c.depth > 0;

-- link_neighbours --
-- Return the links that the walk follows: in both directions, except links made by semmem; a bounded number for each
-- memory.
SELECT m.ord, o.ord, q.type FROM memory m
CROSS JOIN LATERAL (
    (SELECT l.to_id AS id, l.type FROM link l WHERE l.namespace = %(namespace)s AND l.from_id = m.id
       AND l.made_by IS DISTINCT FROM 'semmem'
     ORDER BY l.type, l.to_id LIMIT %(limit)s)
    UNION
    (SELECT l.from_id, l.type FROM link l WHERE l.namespace = %(namespace)s AND l.to_id = m.id
       AND l.made_by IS DISTINCT FROM 'semmem'
     ORDER BY l.type, l.from_id LIMIT %(limit)s)) AS q
JOIN memory o ON o.namespace = %(namespace)s AND o.id = q.id AND o.parts = 0 AND o.part <= 1 AND NOT o.sensitive
    AND (o.expires_at IS NULL OR o.expires_at > now())
WHERE m.namespace = %(namespace)s AND m.ord = ANY(%(ords)s)
ORDER BY m.ord, o.ord, q.type;
