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

-- similarities --
-- For a handful of memories.
SELECT ord, -(vector <#> %(vector)s::public.vector) FROM embedding
WHERE namespace = ANY(%(namespaces)s) AND ord = ANY(%(ords)s);

-- embedding_vectors --
-- The vectors themselves, packed one after the other.
SELECT string_agg(int8send(ord), ''::bytea ORDER BY ord), string_agg(public.vector_send(vector), ''::bytea ORDER BY ord)
FROM embedding WHERE namespace = ANY(%(namespaces)s) AND ord = ANY(%(ords)s);

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
