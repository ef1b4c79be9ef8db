-- sweep_change_due --
-- The first change of a namespace is its oldest: one look at the index each.
SELECT n.namespace FROM namespace n WHERE (
    SELECT c.at FROM change c WHERE c.namespace = n.namespace AND c.kind <> 'swept' ORDER BY c.number, c.id LIMIT 1)
    < now() - make_interval(secs => 86400 * %(changes_days)s::float8) ORDER BY 1;

-- sweep_change --
-- Some of the oldest.
DELETE FROM change WHERE namespace = %(namespace)s AND (number, id) IN (
    SELECT c.number, c.id FROM change c
    WHERE c.namespace = %(namespace)s AND c.kind <> 'swept'
      AND c.at < now() - make_interval(secs => 86400 * %(changes_days)s::float8)
    ORDER BY c.number, c.id LIMIT %(limit)s) RETURNING number;

-- sweep_change_unmark --
-- One mark is enough.
DELETE FROM change WHERE namespace = %(namespace)s AND kind = 'swept' AND number < %(number)s;

-- sweep_change_mark --
-- Up to here there may be gaps: who has not read so far must export anew. No id is empty but this one and of a drop.
INSERT INTO change (namespace, number, id, kind) VALUES (%(namespace)s, %(number)s, '', 'swept') ON CONFLICT DO NOTHING;

-- change_list --
-- Behind a number, or behind an id of that number.
SELECT number, id, kind, at FROM change
WHERE namespace = %(namespace)s AND kind <> 'swept' AND (
    number > %(number)s OR (number = %(number)s AND id > %(id)s::text))
ORDER BY number, id LIMIT %(limit)s;

-- change_head --
-- Read behind the list: what is swept in between is told, and not passed over.
SELECT (extract(epoch FROM n.created_at) * 1000000)::bigint, n.changes, coalesce((
    SELECT max(c.number) FROM change AS c WHERE c.namespace = n.namespace AND c.kind = 'swept'), 0),
    (SELECT jsonb_build_object('life', value -> 'life', 'before', value -> 'before',
                               'number', value -> 'numbers' -> %(namespace)s::text) FROM meta WHERE key = 'restored')
FROM namespace AS n WHERE n.namespace = %(namespace)s;
