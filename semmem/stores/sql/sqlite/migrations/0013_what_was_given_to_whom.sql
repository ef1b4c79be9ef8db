-- What was given to whom: an entry of the log says which interface and agent asked, what became of each memory, and what was
-- said of it. `hits` is an object by id. A judgement stands with the hit that it is about, so it needs no table of its own.
ALTER TABLE recall_log ADD COLUMN interface TEXT;
ALTER TABLE recall_log ADD COLUMN agent TEXT;
ALTER TABLE recall_log ADD COLUMN facts TEXT NOT NULL DEFAULT '{}';
UPDATE recall_log SET hits = (
    SELECT json_group_object(id, json_object('outcome', 'given', 'rank', place))
    FROM (SELECT value AS id, min(key) + 1 AS place FROM json_each(recall_log.hits) WHERE type = 'text' GROUP BY value))
WHERE json_type(hits) = 'array';
UPDATE recall_log SET hits = json_patch(hits, (
    SELECT json_group_object(j.id, json_object(
        'useful', json(CASE WHEN j.useful THEN 'true' ELSE 'false' END), 'judged_by', j.made_by,
        'judged_at', strftime('%Y-%m-%dT%H:%M:%S', j.at / 1000000, 'unixepoch') || printf('.%06d+00:00', j.at % 1000000)))
    FROM judgement AS j WHERE j.namespace = recall_log.namespace AND j.recall_id = recall_log.recall_id))
WHERE EXISTS (
    SELECT 1 FROM judgement AS j WHERE j.namespace = recall_log.namespace AND j.recall_id = recall_log.recall_id);
DROP TABLE judgement;
