-- nearest --
-- Nearest vectors of a whole namespace, exact. Vectors have unit length, so the inner product is the cosine. Here and
-- below, nothing is returned when another embedder fills the store, in this snapshot, than made the question's vector.
SELECT ord, -(vector <#> %(vector)s::public.vector) FROM embedding
WHERE namespace = %(namespace)s
  AND (%(embedder)s::jsonb IS NULL OR (SELECT value FROM meta WHERE key = 'embedder') = %(embedder)s::jsonb)
ORDER BY vector <#> %(vector)s::public.vector, ord LIMIT %(depth)s;

-- nearest_memories --
-- Return the memories and parts nearest to a vector, as the statement nearest finds them, each with its cosine.
SELECT <memory_columns_m>, n.cosine
FROM (SELECT ord, -(vector <#> %(vector)s::public.vector) AS cosine FROM embedding
      WHERE namespace = %(namespace)s AND ord <> ALL(%(excluded)s)
        AND (%(embedder)s::jsonb IS NULL OR (SELECT value FROM meta WHERE key = 'embedder') = %(embedder)s::jsonb)
      ORDER BY vector <#> %(vector)s::public.vector, ord LIMIT %(depth)s) AS n
JOIN memory m ON m.namespace = %(namespace)s AND m.ord = n.ord
WHERE n.cosine >= %(least)s AND <open>
ORDER BY n.cosine DESC, n.ord;

-- nearest_within --
-- Nearest vectors among the memories that a filter matches, exact.
SELECT ord, -(vector <#> %(vector)s::public.vector) FROM embedding
WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s)
  AND (%(embedder)s::jsonb IS NULL OR (SELECT value FROM meta WHERE key = 'embedder') = %(embedder)s::jsonb)
ORDER BY vector <#> %(vector)s::public.vector, ord LIMIT %(depth)s;

-- nearest_indexed --
-- Nearest vectors, approximate over those in the HNSW index (of {indexed}, as many candidates as are worth rescoring) and
-- exact over the others, then all by exact cosine. The index scan continues (hnsw.iterative_scan) until enough rows are
-- of the namespace, or it has seen hnsw.max_scan_tuples of others; so the rows from the index are counted separately.
-- Nothing where there is no index, or one whose build was interrupted.
WITH near AS MATERIALIZED (
    SELECT ord, vector FROM embedding
    WHERE indexed AND namespace = %(namespace)s
      AND (SELECT i.indisvalid FROM pg_index i WHERE i.indexrelid = to_regclass('embedding_hnsw'))
      AND (%(embedder)s::jsonb IS NULL OR (SELECT value FROM meta WHERE key = 'embedder') = %(embedder)s::jsonb)
    ORDER BY ({indexed}) <#> {asked}
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
-- Plan for the given parameters: with an unknown LIMIT, or filters that may be NULL, the index would not be used.
SET LOCAL plan_cache_mode TO force_custom_plan;

-- plan_for_any --
-- Keep one plan for any parameters, as the session does, in the rest of a transaction that goes on.
SET LOCAL plan_cache_mode TO force_generic_plan;

-- nearest_breadth --
-- Set how many candidates the index scan considers, for this transaction.
SELECT set_config('hnsw.ef_search', %(breadth)s, true);

-- embedding_index --
-- Build the one index of the store; {indexed} is the vector in half precision, with its dimensions written out, as an
-- index needs it. {table} is embedding, or the staging vectors that take its place.
CREATE INDEX CONCURRENTLY IF NOT EXISTS {table}_hnsw ON {table}
USING hnsw (({indexed}) public.halfvec_ip_ops) WITH (m = 16, ef_construction = 128)
WHERE indexed;

-- embedding_index_ready --
-- Return whether the index exists and is complete.
SELECT i.indisvalid FROM pg_index i WHERE i.indexrelid = to_regclass('{table}_hnsw');

-- embedding_index_lock --
-- Lock out others who would index the same table, for as long as the connection lives.
SELECT pg_try_advisory_lock(hashtextextended('semmem index {table}', 0));

-- embedding_index_unlock --
-- Release the lock explicitly, because the connection is pooled.
SELECT pg_advisory_unlock(hashtextextended('semmem index {table}', 0));

-- embedding_index_drop --
-- Drop the index, to build it anew or because the table goes; nobody can read the table meanwhile.
DROP INDEX IF EXISTS {table}_hnsw;

-- embedding_index_clear --
-- Drop the invalid index that an interrupted build leaves; this waits for those who read the table, and nobody for it.
DROP INDEX CONCURRENTLY IF EXISTS {table}_hnsw;

-- embedding_index_entries --
-- Return how many vectors were put into the index since it was built, as a text; NULL where an older version made it, or
-- somebody wrote another comment on it.
SELECT substring(obj_description(to_regclass('{table}_hnsw'), 'pg_class') FROM '^[0-9]+$');

-- embedding_index_note --
-- Note that number.
COMMENT ON INDEX {table}_hnsw IS '{entries}';

-- embedding_large --
-- Count the vectors that wait for the index, in each namespace large enough to need it.
SELECT namespace, count(*) FILTER (WHERE NOT indexed) FROM {table} GROUP BY namespace HAVING count(*) >= %(least)s;

-- embedding_take_in --
-- Mark some thousands of vectors as indexed at a time, so that no transaction is long.
UPDATE {table} SET indexed = true WHERE (namespace, ord) IN (
    SELECT namespace, ord FROM {table} WHERE namespace = %(namespace)s AND NOT indexed ORDER BY ord LIMIT %(limit)s);

-- similarities --
-- Return the inner products of a few memories with a vector.
SELECT ord, -(vector <#> %(vector)s::public.vector) FROM embedding
WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s)
  AND (%(embedder)s::jsonb IS NULL OR (SELECT value FROM meta WHERE key = 'embedder') = %(embedder)s::jsonb);

-- embedding_vectors --
-- Return vectors, packed one after the other.
SELECT string_agg(int8send(ord), ''::bytea ORDER BY ord), string_agg(public.vector_send(vector), ''::bytea ORDER BY ord)
FROM embedding WHERE namespace = %(namespace)s AND ord = ANY(%(ords)s)
  AND (%(embedder)s::jsonb IS NULL OR (SELECT value FROM meta WHERE key = 'embedder') = %(embedder)s::jsonb);

-- embedding_missing --
-- List the indexed memories without a vector, in order, for rebuild.
SELECT <memory_columns_m> FROM memory m
LEFT JOIN {table} e USING (namespace, ord)
WHERE m.parts = 0 AND e.ord IS NULL AND (m.namespace, m.ord) > (%(namespace)s COLLATE "C", %(ord)s)
ORDER BY m.namespace, m.ord LIMIT %(limit)s;

-- embedding_missing_count --
-- Count the indexed memories without a vector.
SELECT count(*) FROM memory m
WHERE parts = 0 AND NOT EXISTS (SELECT 1 FROM embedding e WHERE e.namespace = m.namespace AND e.ord = m.ord);

-- embedding_add --
-- Store vectors made by a rebuild; the join leaves out memories forgotten meanwhile, and locks the others.
INSERT INTO {table} (namespace, ord, vector)
SELECT m.namespace, m.ord, k.vector::public.vector
FROM unnest(%(ords)s::bigint[], %(vectors)s::text[]) AS k(ord, vector)
JOIN memory m ON m.namespace = %(namespace)s AND m.ord = k.ord
ORDER BY m.ord
{lock}
ON CONFLICT (namespace, ord) DO NOTHING;

-- embedding_put --
-- Store the vector of one new memory.
INSERT INTO embedding (namespace, ord, vector) VALUES (%(namespace)s, %(ord)s, %(vector)s::public.vector);

-- embedding_own --
-- Lock the table before a vector is stored, so that the store's embedder cannot change before the commit: as a writer does
-- that deletes nothing, on this server alone, for LOCK TABLE would ask every node.
DELETE FROM embedding WHERE false;

-- embedding_in_index_count --
-- Count the vectors in the index.
SELECT count(*) FROM {table} WHERE indexed;

-- staging_count --
-- Count the staging vectors that an interrupted rebuild has made.
SELECT count(*) FROM embedding_next;

-- staging_clear --
-- Delete the staging vectors: they are of another embedder, or no longer wanted.
TRUNCATE embedding_next;

-- embedding_stay --
-- Let no other table take the place of the vectors until the end of the transaction. A transaction that reads one snapshot
-- begins with this, before it has that snapshot: what is copied to the other table later would not be in it.
LOCK TABLE embedding IN ACCESS SHARE MODE;

-- staging_free --
-- Return whether maintain may copy the vectors to the staging table: no rebuild fills it or was interrupted, and this user
-- owns both tables, and sees each row of them.
SELECT NOT EXISTS (SELECT FROM meta WHERE key = 'embedder_next')
   AND bool_and(pg_has_role(relowner, 'USAGE') AND NOT row_security_active(oid))
FROM pg_class WHERE oid IN ('embedding'::regclass, 'embedding_next'::regclass);

-- staging_left --
-- Return whether there are staging vectors.
SELECT EXISTS (SELECT 1 FROM embedding_next LIMIT 1);

-- staging_claim_lock --
-- Lock out maintain, which fills the staging table while it holds the same lock, until the commit.
SELECT pg_try_advisory_xact_lock(hashtextextended('semmem index embedding', 0));

-- staging_range --
-- Return the place of the last of some thousands of vectors behind another place.
SELECT namespace, ord FROM (
    SELECT namespace, ord FROM embedding WHERE (namespace, ord) > (%(namespace)s COLLATE "C", %(after)s)
    ORDER BY namespace, ord LIMIT %(size)s) AS range_of
ORDER BY namespace DESC, ord DESC LIMIT 1;

-- staging_copy_lock --
-- Lock out whoever deletes staging vectors, before the next statement sees which vectors there are.
LOCK TABLE embedding_next IN SHARE ROW EXCLUSIVE MODE;

-- staging_copy --
-- Copy a range of vectors that have no copy yet.
INSERT INTO embedding_next (namespace, ord, vector, indexed)
SELECT namespace, ord, vector, namespace = ANY(%(indexed)s) FROM embedding
WHERE (namespace, ord) > (%(namespace)s COLLATE "C", %(after)s) AND (namespace, ord) <= (%(last)s COLLATE "C", %(upto)s)
ON CONFLICT (namespace, ord) DO NOTHING;

-- staging_late --
-- Copy the last vectors that have no copy, under the lock of the vectors.
INSERT INTO embedding_next (namespace, ord, vector, indexed)
SELECT e.namespace, e.ord, e.vector, false FROM embedding e
WHERE NOT EXISTS (SELECT FROM embedding_next n WHERE n.namespace = e.namespace AND n.ord = e.ord);

-- staging_gone --
-- Delete the copies of vectors that are gone, under the same lock.
DELETE FROM embedding_next n
WHERE NOT EXISTS (SELECT FROM embedding e WHERE e.namespace = n.namespace AND e.ord = n.ord);

-- staging_write_lock --
-- Lock out writers of vectors; readers continue.
LOCK TABLE embedding IN SHARE ROW EXCLUSIVE MODE;

-- staging_own_lock --
-- Lock out readers of vectors too, for the few milliseconds of the next statement.
LOCK TABLE embedding, embedding_next IN ACCESS EXCLUSIVE MODE;

-- staging_swap --
-- Swap the names of the tables and of their indexes, and delete the old vectors.
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

-- rebuild_lock --
-- Lock out other rebuilds for as long as the connection lives.
SELECT pg_try_advisory_lock(hashtextextended('semmem rebuild', 0));
