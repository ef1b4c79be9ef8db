-- empty_select --
-- All that can be seen of a namespace, locked in the order in which others lock; ords alone, eight bytes each.
WITH locked AS (SELECT ord, part FROM memory WHERE namespace = %(namespace)s ORDER BY id, part FOR UPDATE)
SELECT count(*) FILTER (WHERE part = 0), coalesce(string_agg(int8send(ord), ''::bytea), ''::bytea) FROM locked;

-- empty_forward --
-- What was indexed goes, and its length with it.
WITH gone AS (DELETE FROM forward WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s) RETURNING length)
SELECT count(*)::bigint, coalesce(sum(length), 0)::bigint FROM gone;

-- empty_left --
-- Whether others have remembered something there meanwhile.
SELECT EXISTS (SELECT FROM memory WHERE namespace = %(namespace)s);

-- empty_note --
-- What they remembered is to be read again, for all names go that the forgotten memories were about.
INSERT INTO alias_change (namespace, keys, waiting)
SELECT %(namespace)s, keys, keys FROM (
    SELECT array_agg(DISTINCT key) AS keys FROM posting WHERE namespace = %(namespace)s AND subjects > 0) AS about
WHERE keys IS NOT NULL;

-- empty_posting --
-- Every segment that can be seen; see semmem.stores.postgres.forget for why none holds a memory of others.
DELETE FROM posting WHERE namespace = %(namespace)s;

-- empty_setting --
-- A namespace that comes again begins with the settings of the program.
DELETE FROM namespace_setting WHERE namespace = %(namespace)s;

-- scrub_tables --
-- Every table of ours, so that one that a later schema adds is rewritten too; the small ones first.
SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'semmem' AND c.relkind = 'r' ORDER BY pg_relation_size(c.oid), 1;

-- scrub_file --
-- Another one after the table was rewritten.
SELECT pg_relation_filenode(format('semmem.%%I', %(table)s::text)::regclass);
