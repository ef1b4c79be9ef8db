-- What was given to whom: an entry of the log says which interface and agent asked, what became of each memory, and what was
-- said of it. `hits` is an object by id. A judgement stands with the hit that it is about, so it needs no table of its own.
ALTER TABLE recall_log ADD interface text, ADD agent text, ADD facts jsonb NOT NULL DEFAULT '{}';
ALTER TABLE recall_log ALTER hits SET DEFAULT '{}';
UPDATE recall_log l SET hits = coalesce((
    SELECT jsonb_object_agg(t.id, jsonb_build_object('outcome', 'given', 'rank', t.place))
    FROM (SELECT h.value #>> '{}' AS id, min(h.place) AS place
          FROM jsonb_array_elements(l.hits) WITH ORDINALITY AS h(value, place)
          WHERE jsonb_typeof(h.value) = 'string' GROUP BY 1) t), '{}')
WHERE jsonb_typeof(l.hits) = 'array';
UPDATE recall_log l SET hits = l.hits || (
    SELECT jsonb_object_agg(j.id, coalesce(l.hits -> j.id, '{}') || jsonb_build_object(
        'useful', j.useful, 'judged_by', j.made_by,
        'judged_at', to_char(j.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"')))
    FROM judgement j WHERE j.namespace = l.namespace AND j.recall_id = l.recall_id)
WHERE EXISTS (SELECT FROM judgement j WHERE j.namespace = l.namespace AND j.recall_id = l.recall_id);
DROP TABLE judgement;
