-- link_there --
-- Return which of the memories to link exist, and when the text of each began.
SELECT id, coalesce(text_at, created_at) FROM memory WHERE namespace = :namespace AND id IN (SELECT value FROM json_each(:ids)) AND part = 0;

-- link_order --
-- Return the links above the newer and below the older memories, with which a new link could close a circle.
WITH RECURSIVE newer(id) AS (
    SELECT value FROM json_each(:from_ids)
    UNION
    SELECT l.from_id FROM newer AS n JOIN link AS l ON l.namespace = :namespace AND l.to_id = n.id AND l.type = 'supersedes'
), older(id) AS (
    SELECT value FROM json_each(:to_ids)
    UNION
    SELECT l.to_id FROM older AS o JOIN link AS l ON l.namespace = :namespace AND l.from_id = o.id AND l.type = 'supersedes'
)
SELECT l.from_id, l.to_id, l.made_by FROM newer AS n
JOIN link AS l ON l.namespace = :namespace AND l.to_id = n.id AND l.type = 'supersedes'
UNION
SELECT l.from_id, l.to_id, l.made_by FROM older AS o
JOIN link AS l ON l.namespace = :namespace AND l.from_id = o.id AND l.type = 'supersedes';

-- link_add --
-- Store a link; an existing one changes no row, except that a link made by semmem takes over another maker, and an
-- earlier time where one is given, as by an export.
INSERT INTO link (namespace, from_id, type, to_id, since, made_by)
VALUES (:namespace, :from_id, :type, :to_id, :since, :made_by)
ON CONFLICT (namespace, from_id, type, to_id) DO UPDATE
    SET made_by = excluded.made_by, since = min(link.since, excluded.since)
    WHERE link.made_by IS 'semmem' AND (excluded.made_by IS NOT 'semmem' OR excluded.since < link.since);

-- link_remove --
-- Delete one link.
DELETE FROM link WHERE namespace = :namespace AND from_id = :from_id AND type = :type AND to_id = :to_id;

-- link_forget_made --
-- Delete the links that semmem made of memories that have another text now.
DELETE FROM link WHERE namespace = :namespace AND made_by = 'semmem' AND (namespace, from_id, type, to_id) IN (
    SELECT namespace, from_id, type, to_id FROM link
    WHERE namespace = :namespace AND from_id IN (SELECT value FROM json_each(:ids))
    UNION ALL
    SELECT namespace, from_id, type, to_id FROM link
    WHERE namespace = :namespace AND to_id IN (SELECT value FROM json_each(:ids)))
RETURNING from_id, type, to_id;

-- <shown_m> --
-- The whole memory m has not expired.
m.part = 0 AND (m.expires_at IS NULL OR m.expires_at > :now)

-- link_list --
-- Return the links from and to memories whose other end exists too; softly forgotten memories keep theirs, unseen.
SELECT l.from_id, l.type, l.to_id, l.since, l.made_by
FROM (SELECT * FROM link WHERE namespace = :namespace AND from_id IN (SELECT value FROM json_each(:ids))
      UNION
      SELECT * FROM link WHERE namespace = :namespace AND to_id IN (SELECT value FROM json_each(:ids))) AS l
WHERE EXISTS (SELECT 1 FROM memory AS m WHERE m.namespace = :namespace AND m.id = l.from_id AND <shown_m>)
  AND EXISTS (SELECT 1 FROM memory AS m WHERE m.namespace = :namespace AND m.id = l.to_id AND <shown_m>)
ORDER BY l.from_id, l.type, l.to_id;

-- link_undecided --
-- Return the newest links of a type between memories that exist, without those of which one supersedes the other; of
-- see-also only those that semmem made, which are near-duplicates.
SELECT l.from_id, l.type, l.to_id, l.since, l.made_by FROM link AS l
WHERE l.namespace = :namespace AND l.type = :type AND (l.type <> 'see-also' OR l.made_by = 'semmem')
  AND NOT EXISTS (SELECT 1 FROM link AS s WHERE s.namespace = :namespace AND s.type = 'supersedes'
                  AND ((s.from_id = l.from_id AND s.to_id = l.to_id) OR (s.from_id = l.to_id AND s.to_id = l.from_id)))
  AND EXISTS (SELECT 1 FROM memory AS m WHERE m.namespace = :namespace AND m.id = l.from_id AND <shown_m>)
  AND EXISTS (SELECT 1 FROM memory AS m WHERE m.namespace = :namespace AND m.id = l.to_id AND <shown_m>)
ORDER BY l.since DESC, l.from_id DESC, l.to_id DESC
LIMIT :limit;

-- link_newer --
-- Return the memories that supersede others, along each chain to the newest, each with its row. A memory of which no
-- version is valid yet, now or at the time asked for, supersedes nothing, and one that has expired does not exist. A
-- sensitive one, which is in no index, is returned too, because the memory that it supersedes is out of date.
WITH RECURSIVE chain(old, id, depth) AS (
    SELECT value, value, 0 FROM json_each(:ids)
    UNION
    SELECT l.to_id, l.from_id, c.depth + 1 FROM chain AS c
    JOIN link AS l ON l.namespace = :namespace AND l.to_id = c.id AND l.type = 'supersedes'
    JOIN memory AS m ON m.namespace = :namespace AND m.id = l.from_id AND m.part = 0
    WHERE c.depth < :deepest
      AND (m.expires_at IS NULL OR m.expires_at > :now)
      AND (m.valid_from IS NULL OR m.valid_from <= coalesce(:at, :now) OR EXISTS (
          SELECT 1 FROM history AS h WHERE h.namespace = :namespace AND h.id = m.id AND h.forgotten_at IS NULL
            AND coalesce(h.valid_from, h.updated_at) <= :at))
      AND (:at IS NULL OR m.created_at <= :at AND (
          m.text_at IS NULL OR m.text_at <= :at OR l.made_by IS NOT 'semmem'))
)
SELECT DISTINCT c.old, m.sensitive, m.ord, m.namespace, m.id, m.part, m.importance, m.content, m.created_at, m.updated_at
FROM chain AS c JOIN memory AS m ON m.namespace = :namespace AND m.id = c.id AND m.part <= 1
    AND (m.parts = 0 OR m.sensitive)
WHERE c.depth > 0;

-- link_neighbours --
-- Return the links that the walk follows: in both directions, except links made by semmem; a bounded number for each
-- memory.
WITH some(ord, id) AS (
    SELECT ord, id FROM memory WHERE row IN (
        SELECT (SELECT number FROM namespace WHERE namespace = :namespace) << 40 | value FROM json_each(:ords))
), tie(ord, id, type, direction) AS (
    SELECT s.ord, l.to_id, l.type, 'from' FROM some AS s JOIN link AS l ON l.namespace = :namespace AND l.from_id = s.id
    WHERE l.made_by IS NOT 'semmem'
    UNION ALL
    SELECT s.ord, l.from_id, l.type, 'to' FROM some AS s JOIN link AS l ON l.namespace = :namespace AND l.to_id = s.id
    WHERE l.made_by IS NOT 'semmem'
), numbered AS (SELECT *, row_number() OVER (PARTITION BY ord, direction ORDER BY type, id) AS place FROM tie)
SELECT DISTINCT t.ord, o.ord, t.type FROM numbered AS t
JOIN memory AS o ON o.namespace = :namespace AND o.id = t.id AND o.parts = 0 AND o.part <= 1 AND NOT o.sensitive
    AND (o.expires_at IS NULL OR o.expires_at > :now)
WHERE t.place <= :limit
ORDER BY t.ord, o.ord, t.type;
