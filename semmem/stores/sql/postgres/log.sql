-- log_add --
-- Log a recall: one row for each namespace that was asked, with its own hits only.
INSERT INTO recall_log (namespace, recall_id, query, recipe, hits)
SELECT r.namespace, %(recall_id)s, %(query)s, %(recipe)s, r.hits
FROM unnest(%(namespaces)s::text[], %(hits)s::jsonb[]) AS r(namespace, hits);

-- log_hits --
-- Return the namespaces that a logged recall asked, with the ids of its hits in each.
SELECT namespace, hits FROM recall_log WHERE namespace = ANY(%(namespaces)s) AND recall_id = %(recall_id)s;

-- judge --
-- Store judgements, replacing earlier ones of the same hit. Returns the memories that exist, so that missing ones show.
INSERT INTO judgement (namespace, recall_id, id, useful, made_by)
SELECT m.namespace, %(recall_id)s, m.id, j.useful, %(made_by)s
FROM unnest(%(namespaces)s::text[], %(ids)s::text[], %(useful)s::boolean[]) AS j(namespace, id, useful)
JOIN memory m ON m.namespace = j.namespace AND m.id = j.id AND m.part = 0
WHERE NOT EXISTS (SELECT 1 FROM namespace o WHERE o.namespace = m.namespace AND o.state <> 'moving')
ORDER BY m.namespace, m.id
ON CONFLICT (namespace, recall_id, id) DO UPDATE SET useful = excluded.useful, made_by = excluded.made_by, at = now()
RETURNING namespace, id;

-- judgement_list --
-- Return the judgements of existing memories, with the question.
SELECT j.namespace, j.recall_id, l.query, j.id, j.useful, j.made_by, j.at
FROM judgement j JOIN recall_log l USING (namespace, recall_id)
WHERE j.namespace = %(namespace)s AND <open> AND EXISTS (
    SELECT FROM memory m WHERE m.namespace = j.namespace AND m.id = j.id AND m.part = 0)
ORDER BY j.at, j.recall_id, j.id;

-- sweep_log_due --
-- List the namespaces with logged recalls to sweep; the first row by time is the oldest.
SELECT DISTINCT l.namespace FROM recall_log l
WHERE l.at < now() - make_interval(secs => 86400 * %(recall_log_days)s::float8)
  AND NOT EXISTS (SELECT FROM judgement j WHERE j.namespace = l.namespace AND j.recall_id = l.recall_id) ORDER BY 1;

-- sweep_log --
-- Delete old logged recalls; a judged one stays as long as its judgements, which need its question.
DELETE FROM recall_log WHERE namespace = %(namespace)s AND recall_id IN (
    SELECT l.recall_id FROM recall_log l
    WHERE l.namespace = %(namespace)s AND l.at < now() - make_interval(secs => 86400 * %(recall_log_days)s::float8)
      AND NOT EXISTS (SELECT FROM judgement j WHERE j.namespace = l.namespace AND j.recall_id = l.recall_id)
    ORDER BY l.at LIMIT %(limit)s);

-- pinned_list --
-- Return the pinned memories for a context, the most important first; sensitive ones are left out.
SELECT namespace, id FROM memory m
WHERE namespace = ANY(%(namespaces)s) AND pinned AND part = 0 AND NOT sensitive AND (expires_at IS NULL OR expires_at > now())
  AND NOT EXISTS (SELECT 1 FROM namespace o WHERE o.namespace = m.namespace AND o.state <> 'moving')
ORDER BY importance DESC, created_at DESC, id DESC, namespace LIMIT %(limit)s;
