-- log_add --
-- Log a recall: one row for each namespace that was asked, with its own hits only.
INSERT INTO recall_log (namespace, recall_id, query, recipe, interface, agent, facts, hits)
SELECT r.namespace, %(recall_id)s, %(query)s, %(recipe)s, %(interface)s, %(agent)s, %(facts)s, r.hits
FROM unnest(%(namespaces)s::text[], %(hits)s::jsonb[]) AS r(namespace, hits);

-- log_patience --
-- Who has recalled something waits no longer than this for a hard forget in a long transaction.
SET LOCAL lock_timeout TO '250ms';

-- log_gone --
-- Return whether a memory of these ids is gone for good, or one of those that were found has become sensitive, under
-- namespace_hold.
SELECT EXISTS (SELECT FROM unnest(%(ids)s::text[]) AS r(id)
               WHERE NOT EXISTS (SELECT FROM memory m WHERE m.namespace = %(namespace)s AND m.id = r.id AND <kept>)
                 AND NOT EXISTS (SELECT FROM history h
                                 WHERE h.namespace = %(namespace)s AND h.id = r.id AND <undropped>))
OR EXISTS (SELECT FROM memory m
           WHERE m.namespace = %(namespace)s AND m.id = ANY(%(found)s::text[]) AND m.part = 0 AND m.sensitive);

-- <log_columns> --
-- The columns of an entry, in the order in which they are read.
l.namespace, l.recall_id, l.at, l.query, l.recipe, l.interface, l.agent, l.facts, l.hits

-- <log_open> --
-- As <open>, for several namespaces.
NOT EXISTS (SELECT 1 FROM namespace o WHERE o.namespace = l.namespace AND o.state <> 'moving')

-- log_get --
-- Return a logged recall: one row for each namespace that it asked.
SELECT <log_columns> FROM recall_log l
WHERE l.namespace = ANY(%(namespaces)s) AND l.recall_id = %(recall_id)s AND <log_open> ORDER BY l.namespace;

-- log_list --
-- List logged recalls, newest first, as their ids are made: the rows of as many recalls as there is room for.
SELECT <log_columns> FROM recall_log l
WHERE l.namespace = ANY(%(namespaces)s) AND <log_open> AND l.recall_id IN (
    SELECT DISTINCT r.recall_id FROM recall_log r
    WHERE r.namespace = ANY(%(namespaces)s)
      AND (%(cursor)s::text IS NULL OR r.recall_id < %(cursor)s)
      AND (%(interface)s::text IS NULL OR r.interface = %(interface)s)
      AND (%(agent)s::text IS NULL OR r.agent = %(agent)s)
      AND (%(memory)s::text IS NULL OR r.hits -> %(memory)s::text ->> 'outcome' IN ('given', 'pinned'))
      AND (%(asked_after)s::timestamptz IS NULL OR r.at >= %(asked_after)s)
      AND (%(asked_before)s::timestamptz IS NULL OR r.at < %(asked_before)s)
    ORDER BY r.recall_id DESC LIMIT %(limit)s)
ORDER BY l.recall_id DESC, l.namespace;

-- judged_there --
-- Return the memories that exist among those to be judged, under namespace_hold.
SELECT m.id FROM memory m
WHERE m.namespace = %(namespace)s AND m.id = ANY(%(ids)s) AND m.part = 0 AND <open> AND <kept>;

-- judge --
-- Store judgments with the hits of a logged recall, replacing earlier ones of the same hits.
UPDATE recall_log l SET hits = l.hits || (
    SELECT jsonb_object_agg(j.id, coalesce(l.hits -> j.id, '{}') || j.mark)
    FROM unnest(%(ids)s::text[], %(marks)s::jsonb[]) AS j(id, mark))
WHERE l.namespace = %(namespace)s AND l.recall_id = %(recall_id)s;

-- judgment_list --
-- Return the judgments of existing memories, with the question.
SELECT l.namespace, l.recall_id, l.query, j.key, (j.value ->> 'useful')::boolean, j.value ->> 'judged_by',
       (j.value ->> 'judged_at')::timestamptz
FROM recall_log l CROSS JOIN LATERAL jsonb_each(l.hits) AS j(key, value)
WHERE l.namespace = %(namespace)s AND <open> AND j.value ? 'useful' AND EXISTS (
    SELECT FROM memory m WHERE m.namespace = l.namespace AND m.id = j.key AND m.part = 0)
ORDER BY 7, l.recall_id, j.key COLLATE "C";

-- sweep_log_due --
-- List the namespaces with logged recalls to sweep; the first row by time is the oldest.
SELECT DISTINCT l.namespace FROM recall_log l
WHERE l.at < now() - make_interval(secs => 86400 * %(recall_log_days)s::float8)
  AND NOT jsonb_path_exists(l.hits, '$.*.useful') ORDER BY 1;

-- sweep_log --
-- Delete old logged recalls; a judged one stays as long as its memories, for its judgments need its question, also one
-- that is judged while its lock is waited for.
DELETE FROM recall_log WHERE namespace = %(namespace)s AND NOT jsonb_path_exists(hits, '$.*.useful') AND recall_id IN (
    SELECT l.recall_id FROM recall_log l
    WHERE l.namespace = %(namespace)s AND l.at < now() - make_interval(secs => 86400 * %(recall_log_days)s::float8)
      AND NOT jsonb_path_exists(l.hits, '$.*.useful')
    ORDER BY l.at LIMIT %(limit)s);

-- pinned_list --
-- Return the pinned memories for a context, the most important first; sensitive ones are left out.
SELECT namespace, id FROM memory m
WHERE namespace = ANY(%(namespaces)s) AND pinned AND part = 0 AND NOT sensitive AND (expires_at IS NULL OR expires_at > now())
  AND NOT EXISTS (SELECT 1 FROM namespace o
                  WHERE o.namespace = m.namespace AND (o.state <> 'moving' OR m.ord <= o.dropping))
ORDER BY importance DESC, created_at DESC, id DESC, namespace LIMIT %(limit)s;

-- audit_add --
-- Note a call: one row for each namespace that it named, with the memories of that one.
INSERT INTO audit (namespace, id, who, interface, agent, verb, outcome, count, ids)
VALUES (%(namespace)s, %(id)s, %(who)s, %(interface)s, %(agent)s, %(verb)s, %(outcome)s, %(count)s, %(ids)s);

-- audit_list --
-- Return what was noted, oldest first, as the ids are made.
SELECT id, at, namespace, who, interface, agent, verb, outcome, count, ids FROM audit
WHERE (id, namespace) > (%(after_id)s, %(after_namespace)s)
  AND (%(namespaces)s::text[] IS NULL OR namespace = ANY(%(namespaces)s))
  AND (%(who)s::text IS NULL OR who = %(who)s)
  AND (%(noted_after)s::timestamptz IS NULL OR at >= %(noted_after)s) AND (%(noted_before)s::timestamptz IS NULL OR at < %(noted_before)s)
ORDER BY id, namespace LIMIT %(limit)s;

-- sweep_audit_due --
-- List the namespaces with rows of the audit that are old enough to go.
SELECT DISTINCT namespace FROM audit
WHERE at < now() - make_interval(secs => 86400 * %(audit_days)s::float8) ORDER BY 1;

-- sweep_audit_before --
-- Return the time from before which rows of the audit go, by the clock that gave them theirs.
SELECT now() - make_interval(secs => 86400 * %(audit_days)s::float8);

-- sweep_audit_may --
-- Let this transaction delete rows of the audit from before that time, which the table refuses otherwise; on every node of
-- a store that lies on several.
SET LOCAL citus.propagate_set_commands TO 'local'; SET LOCAL semmem.audit_before TO {before};

-- sweep_audit --
-- Delete the oldest rows of the audit.
DELETE FROM audit WHERE namespace = %(namespace)s AND id IN (
    SELECT a.id FROM audit a
    WHERE a.namespace = %(namespace)s AND a.at < %(before)s ORDER BY a.at LIMIT %(limit)s);
