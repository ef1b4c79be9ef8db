-- log_add --
-- Log a recall: one row for each namespace that was asked, with its own hits only.
INSERT INTO recall_log (namespace, recall_id, at, query, recipe, hits)
VALUES (:namespace, :recall_id, :at, :query, :recipe, :hits);

-- log_hits --
-- Return the namespaces that a logged recall asked, with the ids of its hits in each.
SELECT namespace, hits FROM recall_log
WHERE namespace IN (SELECT value FROM json_each(:namespaces)) AND recall_id = :recall_id;

-- judge --
-- Store a judgement, replacing an earlier one of the same hit. Returns the id if the memory exists.
INSERT INTO judgement (namespace, recall_id, id, useful, made_by, at)
SELECT m.namespace, :recall_id, m.id, :useful, :made_by, :at
FROM memory AS m WHERE m.namespace = :namespace AND m.id = :id AND m.part = 0
ON CONFLICT (namespace, recall_id, id) DO UPDATE SET useful = excluded.useful, made_by = excluded.made_by, at = excluded.at
RETURNING id;

-- judgement_list --
-- Return the judgements of existing memories, with the question.
SELECT j.namespace, j.recall_id, l.query, j.id, j.useful, j.made_by, j.at
FROM judgement AS j JOIN recall_log AS l ON l.namespace = j.namespace AND l.recall_id = j.recall_id
WHERE j.namespace = :namespace AND EXISTS (
    SELECT 1 FROM memory AS m WHERE m.namespace = j.namespace AND m.id = j.id AND m.part = 0)
ORDER BY j.at, j.recall_id, j.id;

-- sweep_log_due --
-- List the namespaces with logged recalls to sweep.
SELECT DISTINCT l.namespace FROM recall_log AS l WHERE l.at < :recall_log_before AND NOT EXISTS (
    SELECT 1 FROM judgement AS j WHERE j.namespace = l.namespace AND j.recall_id = l.recall_id) ORDER BY 1;

-- sweep_log --
-- Delete old logged recalls; a judged one stays as long as its judgements, which need its question.
DELETE FROM recall_log WHERE namespace = :namespace AND recall_id IN (
    SELECT l.recall_id FROM recall_log AS l WHERE l.namespace = :namespace AND l.at < :recall_log_before AND NOT EXISTS (
        SELECT 1 FROM judgement AS j WHERE j.namespace = l.namespace AND j.recall_id = l.recall_id)
    ORDER BY l.at LIMIT :limit);

-- pinned_list --
-- Return the pinned memories for a context, the most important first; sensitive ones are left out.
SELECT namespace, id FROM memory
WHERE namespace IN (SELECT value FROM json_each(:namespaces)) AND pinned AND part = 0 AND NOT sensitive
  AND (expires_at IS NULL OR expires_at > :now)
ORDER BY importance DESC, created_at DESC, id DESC, namespace LIMIT :limit;
