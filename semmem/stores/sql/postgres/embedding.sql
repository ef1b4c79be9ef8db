-- nearest --
-- Exact, over a whole namespace. Vectors have unit length, so the inner product is the cosine. Here and below nothing is
-- found when another embedder fills the store than made the question's vector: in the snapshot of the vectors themselves.
SELECT ord, -(vector <#> %(vector)s::public.vector) FROM embedding
WHERE namespace = %(namespace)s
  AND (%(embedder)s::jsonb IS NULL OR (SELECT value FROM meta WHERE key = 'embedder') = %(embedder)s::jsonb)
ORDER BY vector <#> %(vector)s::public.vector, ord LIMIT %(depth)s;

-- nearest_within --
-- Exact, over the memories a filter lets through.
SELECT ord, -(vector <#> %(vector)s::public.vector) FROM embedding
WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s)
  AND (%(embedder)s::jsonb IS NULL OR (SELECT value FROM meta WHERE key = 'embedder') = %(embedder)s::jsonb)
ORDER BY vector <#> %(vector)s::public.vector, ord LIMIT %(depth)s;

-- nearest_indexed --
-- Approximate over what is in the HNSW index (halfvec, as many candidates as are worth rescoring), exact over the rest,
-- then all of them by the exact cosine. The scan goes on (hnsw.iterative_scan) until enough are of the namespace, or it has seen hnsw.max_scan_tuples
-- of others: so what the index itself has found is counted, before the rest makes up for it. Nothing where there is no
-- index, or one whose build was interrupted.
WITH near AS MATERIALIZED (
    SELECT ord, vector FROM embedding
    WHERE indexed AND namespace = %(namespace)s
      AND (SELECT i.indisvalid FROM pg_index i WHERE i.indexrelid = to_regclass('embedding_hnsw'))
      AND (%(embedder)s::jsonb IS NULL OR (SELECT value FROM meta WHERE key = 'embedder') = %(embedder)s::jsonb)
    ORDER BY (vector::public.halfvec({dimensions})) <#> %(vector)s::public.vector::public.halfvec({dimensions})
    LIMIT %(candidates)s
), rest AS MATERIALIZED (
    SELECT ord, vector FROM embedding WHERE NOT indexed AND namespace = %(namespace)s
      AND (SELECT i.indisvalid FROM pg_index i WHERE i.indexrelid = to_regclass('embedding_hnsw'))
      AND (%(embedder)s::jsonb IS NULL OR (SELECT value FROM meta WHERE key = 'embedder') = %(embedder)s::jsonb)
    ORDER BY vector <#> %(vector)s::public.vector LIMIT %(depth)s
)
SELECT ord, -(vector <#> %(vector)s::public.vector) AS cosine, (SELECT count(*) FROM near) AS of_index
FROM (SELECT * FROM near UNION ALL SELECT * FROM rest) AS found
ORDER BY cosine DESC, ord LIMIT %(depth)s;

-- plan_for_these --
-- With an unknown LIMIT, or filters that may be NULL, the planner would not take the index.
SET LOCAL plan_cache_mode TO force_custom_plan;

-- nearest_breadth --
-- How many candidates the index keeps in view, for this transaction.
SELECT set_config('hnsw.ef_search', %(breadth)s, true);

-- embedding_index --
-- One index for the store; {dimensions} is a whole number from meta, as an index needs it written out. {table} is
-- embedding, or the shadow that takes its place.
CREATE INDEX CONCURRENTLY IF NOT EXISTS {table}_hnsw ON {table}
USING hnsw ((vector::public.halfvec({dimensions})) public.halfvec_ip_ops) WITH (m = 16, ef_construction = 64)
WHERE indexed;

-- embedding_index_ready --
-- Whether the index is there and whole.
SELECT i.indisvalid FROM pg_index i WHERE i.indexrelid = to_regclass('{table}_hnsw');

-- embedding_index_drop --
-- An interrupted build leaves an index that answers nothing.
DROP INDEX IF EXISTS {table}_hnsw;

-- embedding_unindexed --
-- How many wait, in all namespaces that are large enough to need the index.
SELECT namespace, count(*) FILTER (WHERE NOT indexed), count(*) FROM {table}
GROUP BY namespace HAVING count(*) >= %(least)s AND count(*) FILTER (WHERE NOT indexed) > 0;

-- embedding_take_in --
-- Some thousands at a time, so that no transaction is long.
UPDATE {table} SET indexed = true WHERE (namespace, ord) IN (
    SELECT namespace, ord FROM {table} WHERE namespace = %(namespace)s AND NOT indexed ORDER BY ord LIMIT %(limit)s);

-- similarities --
-- For a handful of memories.
SELECT ord, -(vector <#> %(vector)s::public.vector) FROM embedding
WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s)
  AND (%(embedder)s::jsonb IS NULL OR (SELECT value FROM meta WHERE key = 'embedder') = %(embedder)s::jsonb);

-- embedding_vectors --
-- The vectors themselves, packed one after the other.
SELECT string_agg(int8send(ord), ''::bytea ORDER BY ord), string_agg(public.vector_send(vector), ''::bytea ORDER BY ord)
FROM embedding WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s)
  AND (%(embedder)s::jsonb IS NULL OR (SELECT value FROM meta WHERE key = 'embedder') = %(embedder)s::jsonb);

-- embedding_missing --
-- What rebuild has to fill in, in order.
SELECT m.namespace, m.id, m.part, m.text, m.title, m.author, m.session, m.position, m.source, m.tags, m.metadata,
       m.importance, m.created_at, m.updated_at, m.version, m.sensitive, m.valid_from, m.valid_to,
       m.expires_at, m.pinned, m.seen_count, m.last_seen, m.ord FROM memory m
LEFT JOIN {table} e USING (namespace, ord)
WHERE m.parts = 0 AND e.ord IS NULL AND (m.namespace, m.ord) > (%(namespace)s COLLATE "C", %(ord)s)
ORDER BY m.namespace, m.ord LIMIT %(limit)s;

-- embedding_missing_count --
-- How many of the texts the dense leg does not know.
SELECT count(*) FROM memory m
WHERE parts = 0 AND NOT EXISTS (SELECT 1 FROM embedding e WHERE e.namespace = m.namespace AND e.ord = m.ord);

-- embedding_add --
-- Rebuild writes what ingest could not; the join leaves out what was forgotten since, and locks what is there.
INSERT INTO {table} (namespace, ord, vector)
SELECT m.namespace, m.ord, k.vector::public.vector
FROM unnest(%(ords)s::bigint[], %(vectors)s::text[]) AS k(ord, vector)
JOIN memory m ON m.namespace = %(namespace)s AND m.ord = k.ord
ORDER BY m.ord
{lock}
ON CONFLICT (namespace, ord) DO NOTHING;

-- embedding_put --
-- The vector of one new memory.
INSERT INTO embedding (namespace, ord, vector) VALUES (%(namespace)s, %(ord)s, %(vector)s::public.vector);

-- embedding_own --
-- The lock of whoever stores a vector, before the vector is there: whose vectors these are does not change behind it.
LOCK TABLE embedding IN ROW EXCLUSIVE MODE;

-- embedding_in_index --
-- Whether a build that was interrupted is still to be done.
SELECT EXISTS (SELECT 1 FROM {table} WHERE indexed);

-- embedding_in_index_count --
-- How many vectors the index has.
SELECT count(*) FROM {table} WHERE indexed;

-- shadow_count --
-- How many vectors of the coming embedder an interrupted rebuild has made.
SELECT count(*) FROM embedding_next;

-- shadow_clear --
-- Of another embedder than the one that comes now, or not wanted any more.
TRUNCATE embedding_next;

-- shadow_write_lock --
-- Nobody adds a vector any more, readers go on.
LOCK TABLE embedding IN SHARE ROW EXCLUSIVE MODE;

-- shadow_own_lock --
-- Nobody reads a vector any more, for the few milliseconds of the next statement.
LOCK TABLE embedding, embedding_next IN ACCESS EXCLUSIVE MODE;

-- shadow_swap --
-- The tables change their names, and so do their indexes; the old vectors go.
DROP INDEX IF EXISTS embedding_hnsw;
ALTER TABLE embedding RENAME TO embedding_before;
ALTER INDEX embedding_pkey RENAME TO embedding_before_pkey;
ALTER INDEX embedding_rest RENAME TO embedding_before_rest;
ALTER TABLE embedding_next RENAME TO embedding;
ALTER INDEX embedding_next_pkey RENAME TO embedding_pkey;
ALTER INDEX embedding_next_rest RENAME TO embedding_rest;
ALTER INDEX IF EXISTS embedding_next_hnsw RENAME TO embedding_hnsw;
ALTER TABLE embedding_before RENAME TO embedding_next;
ALTER INDEX embedding_before_pkey RENAME TO embedding_next_pkey;
ALTER INDEX embedding_before_rest RENAME TO embedding_next_rest;
TRUNCATE embedding_next;
UPDATE meta SET value = (SELECT value FROM meta WHERE key = 'embedder_next') WHERE key = 'embedder';
DELETE FROM meta WHERE key = 'embedder_next';

-- rebuild_lock --
-- One rebuild at a time, for as long as its connection lives.
SELECT pg_try_advisory_lock(hashtextextended('semmem rebuild', 0));
