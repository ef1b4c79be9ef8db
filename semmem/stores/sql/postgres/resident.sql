-- <place_of_state> --
-- What identifies the history of a namespace's state. The server's start time is included, because a server set back to
-- an earlier state may use a number twice; so are the database and the file of the table, which is another one after a
-- restore of one server, and what the last copy into this database or restore noted, because both bring numbers of their
-- own.
extract(epoch FROM n.created_at)::float8, extract(epoch FROM pg_postmaster_start_time())::float8,
       (SELECT value::text FROM meta WHERE key = 'embedder'), pg_relation_filepath('semmem.namespace'),
       (SELECT md5(string_agg(value::text, ' ' ORDER BY key)) FROM meta WHERE key IN ('copy', 'restored'))

-- <state> --
-- The state of a namespace: writers count every change of what a recall may read.
n.revision, n.changes, n.segments, n.memories, n.length, n.dropping IS NOT NULL OR n.state IS NOT NULL,
       <place_of_state>

-- resident_state --
-- Return the state of a namespace.
SELECT <state>
FROM namespace n WHERE n.namespace = %(namespace)s;

-- resident_size --
-- Return the numbers of indexed memories and of vectors of a namespace, and the bytes of the forward entries and candidates.
SELECT count(*), (SELECT count(*) FROM embedding WHERE namespace = %(namespace)s), coalesce(sum(octet_length(entries)), 0)::bigint, coalesce(sum(octet_length(candidates)), 0)::bigint
FROM forward WHERE namespace = %(namespace)s;

-- <changed_ids> --
-- The ids that changed after a sequence number, as an array: planned as a join, a namespace would be read whole.
ARRAY(SELECT c.id FROM change c WHERE c.namespace = %(namespace)s AND c.number > %(since)s)

-- <changed_ords> --
-- The memories of these ids.
ARRAY(SELECT m.ord FROM memory m WHERE m.namespace = %(namespace)s AND m.id = ANY (<changed_ids>))

-- <memory_in_memory> --
-- The columns of memory_turns, the title of a memory, and the order of its session.
m.namespace, m.ord, m.session, m.author, right(rtrim(m.text, E' \t\r\n'), 1) = '?',
       (extract(year FROM m.created_at) * 12 + extract(month FROM m.created_at) - 1)::int,
       m.id, m.part, m.importance, m.content, extract(epoch FROM m.created_at)::float8,
       extract(epoch FROM m.updated_at)::float8,
       m.title, coalesce(m.position, 9223372036854775807), (extract(epoch FROM m.created_at) * 1000000)::bigint

-- <forwards_in_memory> --
-- The forward entries and candidates of memories, packed.
string_agg(int8send(f.ord) || int8send(f.length) || int8send(octet_length(f.entries))
                  || int8send(octet_length(f.candidates)), ''::bytea ORDER BY f.ord),
       string_agg(f.entries, ''::bytea ORDER BY f.ord), string_agg(f.candidates, ''::bytea ORDER BY f.ord)

-- <vectors_in_memory> --
-- The vectors of memories, packed.
string_agg(int8send(e.ord), ''::bytea ORDER BY e.ord),
       string_agg(public.vector_send(e.vector), ''::bytea ORDER BY e.ord)

-- resident_memories --
-- Return what is kept of the first indexed memories after a row id.
SELECT <memory_in_memory>
FROM memory m WHERE m.namespace = %(namespace)s AND m.parts = 0 AND m.ord > %(after)s
ORDER BY m.ord LIMIT %(most)s;

-- resident_forwards --
-- Return the forward entries of these memories.
SELECT <forwards_in_memory>
FROM forward f WHERE f.namespace = %(namespace)s AND f.ord > %(after)s AND f.ord <= %(upto)s;

-- resident_vectors --
-- Return the vectors of these memories.
SELECT <vectors_in_memory>
FROM embedding e WHERE e.namespace = %(namespace)s AND e.ord > %(after)s AND e.ord <= %(upto)s;

-- resident_memories_since --
-- Return the same of the memories that changed after a sequence number.
SELECT <memory_in_memory>
FROM memory m WHERE m.namespace = %(namespace)s AND m.parts = 0 AND m.id = ANY (<changed_ids>)
ORDER BY m.ord;

-- resident_forwards_since --
-- Return the forward entries of these memories.
SELECT <forwards_in_memory>
FROM forward f WHERE f.namespace = %(namespace)s AND f.ord = ANY (<changed_ords>);

-- resident_vectors_since --
-- Return the vectors of these memories.
SELECT <vectors_in_memory>
FROM embedding e WHERE e.namespace = %(namespace)s AND e.ord = ANY (<changed_ords>);

-- resident_changes --
-- Return the ids that came, went or were replaced after a sequence number.
SELECT DISTINCT id, kind FROM change WHERE namespace = %(namespace)s AND number > %(since)s;

-- resident_snapshot --
-- Begin a snapshot, so that one model is read from one state.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
