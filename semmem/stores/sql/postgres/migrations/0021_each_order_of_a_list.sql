-- Lists by last change and by last access read the page they return, and not their whole namespace; a hard forget reads
-- the logged recalls in which a memory stands, with their rows in other namespaces, and not the whole log.
CREATE INDEX memory_by_change ON memory (namespace, updated_at, created_at, id) WHERE part = 0;
CREATE INDEX access_by_time ON access (namespace, last_at);
CREATE INDEX recall_log_by_memory ON recall_log USING gin (jsonb_path_query_array(hits, '$.keyvalue().key'));
CREATE INDEX recall_log_by_recall ON recall_log (recall_id);
