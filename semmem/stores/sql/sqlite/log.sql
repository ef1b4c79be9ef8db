-- log_add --
-- Log a recall: one row for each namespace that was asked, with its own hits only.
INSERT INTO recall_log (namespace, recall_id, at, query, recipe, interface, agent, facts, hits)
VALUES (:namespace, :recall_id, :at, :query, :recipe, :interface, :agent, :facts, :hits);

-- log_gone --
-- Return whether some memories were forgotten for good, or one of those that were found has become sensitive.
SELECT EXISTS (SELECT 1 FROM json_each(:ids) AS t
               WHERE NOT EXISTS (SELECT 1 FROM memory WHERE namespace = :namespace AND id = t.value)
                 AND NOT EXISTS (SELECT 1 FROM history WHERE namespace = :namespace AND id = t.value))
OR EXISTS (SELECT 1 FROM memory
           WHERE namespace = :namespace AND id IN (SELECT value FROM json_each(:found)) AND part = 0 AND sensitive);

-- <log_columns> --
-- The columns of an entry, in the order in which they are read.
l.namespace, l.recall_id, l.at, l.query, l.recipe, l.interface, l.agent, l.facts, l.hits

-- log_get --
-- Return a logged recall: one row for each namespace that it asked.
SELECT <log_columns> FROM recall_log AS l
WHERE l.namespace IN (SELECT value FROM json_each(:namespaces)) AND l.recall_id = :recall_id ORDER BY l.namespace;

-- log_list --
-- List logged recalls, newest first, as their ids are made: the rows of as many recalls as there is room for.
SELECT <log_columns> FROM recall_log AS l
WHERE l.namespace IN (SELECT value FROM json_each(:namespaces)) AND l.recall_id IN (
    SELECT DISTINCT r.recall_id FROM recall_log AS r
    WHERE r.namespace IN (SELECT value FROM json_each(:namespaces))
      AND (:cursor IS NULL OR r.recall_id < :cursor)
      AND (:interface IS NULL OR r.interface = :interface)
      AND (:agent IS NULL OR r.agent = :agent)
      AND (:memory IS NULL OR EXISTS (
          SELECT 1 FROM json_each(r.hits) AS t
          WHERE t.key = :memory AND json_extract(t.value, '$.outcome') IN ('given', 'pinned')))
      AND (:asked_after IS NULL OR r.at >= :asked_after)
      AND (:asked_before IS NULL OR r.at < :asked_before)
    ORDER BY r.recall_id DESC LIMIT :limit)
ORDER BY l.recall_id DESC, l.namespace;

-- judged_there --
-- Return the memory to be judged if it exists.
SELECT id FROM memory WHERE namespace = :namespace AND id = :id AND part = 0;

-- judge --
-- Store judgments with the hits of a logged recall, replacing earlier ones of the same hits.
UPDATE recall_log SET hits = json_patch(hits, :marks) WHERE namespace = :namespace AND recall_id = :recall_id;

-- judgment_list --
-- Return the judgments of existing memories, with the question.
SELECT l.namespace, l.recall_id, l.query, t.key, json_extract(t.value, '$.useful'), json_extract(t.value, '$.judged_by'),
       json_extract(t.value, '$.judged_at') AS judged_at
FROM recall_log AS l, json_each(l.hits) AS t
WHERE l.namespace = :namespace AND json_extract(t.value, '$.useful') IS NOT NULL AND EXISTS (
    SELECT 1 FROM memory AS m WHERE m.namespace = l.namespace AND m.id = t.key AND m.part = 0)
ORDER BY judged_at, l.recall_id, t.key;

-- <judged> --
-- Whether somebody has judged a hit of the recall.
EXISTS (SELECT 1 FROM json_each(l.hits) AS t WHERE json_extract(t.value, '$.useful') IS NOT NULL)

-- sweep_log_due --
-- List the namespaces with logged recalls to sweep.
SELECT DISTINCT l.namespace FROM recall_log AS l WHERE l.at < :recall_log_before AND NOT <judged> ORDER BY 1;

-- sweep_log --
-- Delete old logged recalls; a judged one stays as long as its memories, for its judgments need its question.
DELETE FROM recall_log WHERE namespace = :namespace AND recall_id IN (
    SELECT l.recall_id FROM recall_log AS l
    WHERE l.namespace = :namespace AND l.at < :recall_log_before AND NOT <judged> ORDER BY l.at LIMIT :limit);

-- pinned_list --
-- Return the pinned memories for a context, the most important first; sensitive ones are left out.
SELECT namespace, id FROM memory
WHERE namespace IN (SELECT value FROM json_each(:namespaces)) AND pinned AND part = 0 AND NOT sensitive
  AND (expires_at IS NULL OR expires_at > :now)
ORDER BY importance DESC, created_at DESC, id DESC, namespace LIMIT :limit;

-- audit_add --
-- Note a call: one row for each namespace that it named, with the memories of that one.
INSERT INTO audit (namespace, id, at, who, interface, agent, verb, outcome, count, ids)
VALUES (:namespace, :id, :at, :who, :interface, :agent, :verb, :outcome, :count, :ids);

-- audit_list --
-- Return what was noted, oldest first, as the ids are made.
SELECT id, at, namespace, who, interface, agent, verb, outcome, count, ids FROM audit
WHERE (id, namespace) > (:after_id, :after_namespace)
  AND (:namespaces IS NULL OR namespace IN (SELECT value FROM json_each(:namespaces)))
  AND (:who IS NULL OR who = :who) AND (:noted_after IS NULL OR at >= :noted_after) AND (:noted_before IS NULL OR at < :noted_before)
ORDER BY id, namespace LIMIT :limit;

-- sweep_audit_due --
-- List the namespaces with rows of the audit that are old enough to go.
SELECT DISTINCT namespace FROM audit WHERE at < :audit_before ORDER BY 1;

-- sweep_audit_may --
-- Let this transaction delete rows of the audit from before that time, which the table refuses otherwise.
INSERT INTO meta (key, value) VALUES ('audit_before', CAST(:audit_before AS TEXT));

-- sweep_audit --
-- Delete the oldest rows of the audit.
DELETE FROM audit WHERE namespace = :namespace AND id IN (
    SELECT a.id FROM audit AS a WHERE a.namespace = :namespace AND a.at < :audit_before ORDER BY a.at LIMIT :limit);

-- sweep_audit_no_more --
-- Let nobody delete rows of the audit again.
DELETE FROM meta WHERE key = 'audit_before';
