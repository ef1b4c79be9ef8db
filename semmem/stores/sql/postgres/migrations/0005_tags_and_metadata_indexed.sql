-- Filters by tag and by metadata read what they let through, not the whole namespace. Over all namespaces: the planner
-- goes by the namespace where that is smaller.
CREATE INDEX memory_by_tag ON memory USING gin (tags);
CREATE INDEX memory_by_metadata ON memory USING gin (metadata jsonb_path_ops);
