-- sweep_change_due --
-- List the namespaces with changes to sweep; the first change of each is its oldest, so one index look-up each.
SELECT n.namespace FROM namespace n WHERE n.state IS NULL AND (
    SELECT c.at FROM change c WHERE c.namespace = n.namespace AND c.kind <> 'swept' ORDER BY c.number, c.id LIMIT 1)
    < now() - make_interval(secs => 86400 * %(changes_days)s::float8) ORDER BY 1;

-- sweep_change --
-- Delete some of the oldest changes. Citus mistakes (number, id) IN where a statement that deletes asks for the time.
WITH old AS (
    SELECT c.number, c.id FROM change c
    WHERE c.namespace = %(namespace)s AND c.kind <> 'swept'
      AND c.at < now() - make_interval(secs => 86400 * %(changes_days)s::float8)
    ORDER BY c.number, c.id LIMIT %(limit)s
)
DELETE FROM change c USING old
WHERE c.namespace = %(namespace)s AND c.number = old.number AND c.id = old.id RETURNING c.number;

-- sweep_change_unmark --
-- Delete the earlier mark of a sweep; the newest one suffices.
DELETE FROM change WHERE namespace = %(namespace)s AND kind = 'swept' AND number < %(number)s;

-- sweep_change_mark --
-- Mark up to which change there may be gaps; readers behind it need a new export. Only marks of sweeps and drops have
-- an empty id.
INSERT INTO change (namespace, number, id, kind) VALUES (%(namespace)s, %(number)s, '', 'swept') ON CONFLICT DO NOTHING;

-- change_list --
-- Return changes after a sequence number, or after an id within it.
SELECT number, id, kind, at, types FROM change
WHERE namespace = %(namespace)s AND kind <> 'swept' AND <open> AND (
    number > %(number)s OR (number = %(number)s AND id > %(id)s::text))
ORDER BY number, id LIMIT %(limit)s;

-- change_head --
-- Return the state of the change log; read after the list, so that changes swept in between are reported.
SELECT (extract(epoch FROM n.created_at) * 1000000)::bigint, n.changes, coalesce((
    SELECT max(c.number) FROM change AS c WHERE c.namespace = n.namespace AND c.kind = 'swept'), 0),
    (SELECT jsonb_build_object('life', value -> 'life', 'before', value -> 'before',
                               'number', value -> 'numbers' -> %(namespace)s::text) FROM meta WHERE key = 'restored')
FROM namespace AS n WHERE n.namespace = %(namespace)s;
