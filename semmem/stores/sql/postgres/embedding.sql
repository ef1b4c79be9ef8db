-- nearest --
-- Exact, over whole namespaces. Vectors have unit length, so the inner product is the cosine.
SELECT ord, -(vector <#> %(vector)s::public.vector) FROM embedding
WHERE namespace = ANY(%(namespaces)s)
ORDER BY vector <#> %(vector)s::public.vector, ord LIMIT %(depth)s;

-- nearest_within --
-- Exact, over the memories a filter lets through.
SELECT ord, -(vector <#> %(vector)s::public.vector) FROM embedding
WHERE namespace = ANY(%(namespaces)s) AND ord = ANY(%(ords)s)
ORDER BY vector <#> %(vector)s::public.vector, ord LIMIT %(depth)s;

-- nearest_indexed --
-- Approximate over what is in the HNSW index (halfvec, as many candidates as are worth rescoring), exact over the rest,
-- then all of them by the exact cosine. The scan goes on (hnsw.iterative_scan) until enough are of the namespaces.
WITH near AS MATERIALIZED (
    SELECT ord, vector FROM embedding
    WHERE indexed AND namespace = ANY(%(namespaces)s)
    ORDER BY (vector::public.halfvec({dimensions})) <#> %(vector)s::public.vector::public.halfvec({dimensions})
    LIMIT %(candidates)s
), rest AS MATERIALIZED (
    SELECT ord, vector FROM embedding WHERE NOT indexed AND namespace = ANY(%(namespaces)s)
    ORDER BY vector <#> %(vector)s::public.vector LIMIT %(depth)s
)
SELECT ord, -(vector <#> %(vector)s::public.vector) AS cosine FROM (SELECT * FROM near UNION ALL SELECT * FROM rest) AS found
ORDER BY cosine DESC, ord LIMIT %(depth)s;

-- plan_for_these --
-- With an unknown LIMIT the planner would not take the index.
SET LOCAL plan_cache_mode TO force_custom_plan;

-- embedding_index --
-- One index for the store; {dimensions} is a whole number from meta, as an index needs it written out.
CREATE INDEX CONCURRENTLY IF NOT EXISTS embedding_hnsw ON embedding
USING hnsw ((vector::public.halfvec({dimensions})) public.halfvec_ip_ops) WITH (m = 16, ef_construction = 64)
WHERE indexed;

-- embedding_index_ready --
-- Whether the index is there and whole.
SELECT i.indisvalid FROM pg_index i WHERE i.indexrelid = to_regclass('embedding_hnsw');

-- embedding_index_drop --
-- An interrupted build leaves an index that answers nothing.
DROP INDEX IF EXISTS embedding_hnsw;

-- embedding_unindexed --
-- How many wait, in all namespaces that are large enough to need the index.
SELECT namespace, count(*) FILTER (WHERE NOT indexed), count(*) FROM embedding
GROUP BY namespace HAVING count(*) >= %(least)s AND count(*) FILTER (WHERE NOT indexed) > 0;

-- embedding_take_in --
-- Some thousands at a time, so that no transaction is long.
UPDATE embedding SET indexed = true WHERE (namespace, ord) IN (
    SELECT namespace, ord FROM embedding WHERE namespace = %(namespace)s AND NOT indexed ORDER BY ord LIMIT %(limit)s);

-- similarities --
-- For a handful of memories.
SELECT ord, -(vector <#> %(vector)s::public.vector) FROM embedding
WHERE namespace = ANY(%(namespaces)s) AND ord = ANY(%(ords)s);

-- embedding_vectors --
-- The vectors themselves, packed one after the other.
SELECT string_agg(int8send(ord), ''::bytea ORDER BY ord), string_agg(public.vector_send(vector), ''::bytea ORDER BY ord)
FROM embedding WHERE namespace = ANY(%(namespaces)s) AND ord = ANY(%(ords)s);

-- embedding_clear --
-- Vectors of two models do not compare.
TRUNCATE embedding;

-- embedding_missing --
-- What rebuild has to fill in, in order.
SELECT m.namespace, m.id, m.part, m.text, m.title, m.author, m.session, m.position, m.source, m.tags, m.metadata,
       m.importance, m.created_at, m.updated_at, m.version, m.ord FROM memory m
LEFT JOIN embedding e USING (namespace, ord)
WHERE m.parts = 0 AND e.ord IS NULL AND (m.namespace, m.ord) > (%(namespace)s COLLATE "C", %(ord)s)
ORDER BY m.namespace, m.ord LIMIT %(limit)s;

-- embedding_add --
-- Rebuild writes what ingest could not; the join leaves out what was forgotten since, and locks what is there.
INSERT INTO embedding (namespace, ord, vector)
SELECT m.namespace, m.ord, k.vector::public.vector
FROM unnest(%(namespaces)s::text[], %(ords)s::bigint[], %(vectors)s::text[]) AS k(namespace, ord, vector)
JOIN memory m ON m.namespace = k.namespace AND m.ord = k.ord
ORDER BY m.namespace, m.ord
FOR KEY SHARE OF m
ON CONFLICT (namespace, ord) DO NOTHING;
