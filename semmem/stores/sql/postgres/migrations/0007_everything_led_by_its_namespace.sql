-- The schema from its number 7 on: a store of an older one is refused, and goes over by export and import.
--
-- The namespace leads every primary key, no sequence and no foreign key goes across namespaces, and ids compare by code
-- point: so every table but meta can be partitioned or distributed by namespace as it stands. What is noted as "room"
-- has a place here and nobody who reads it yet.

-- Facts about the whole store: who fills it with vectors, the language it was read in, how far a rebuild has come.
CREATE TABLE meta (
    key   text COLLATE "C" PRIMARY KEY,
    value jsonb NOT NULL
);

-- One row a namespace: what is numbered there and counted. Its writers change or lock it (FOR NO KEY UPDATE) behind the
-- rows of memories, before any row of a posting, and hold it to the commit. It outlives the last memory for a day, so
-- that no number is given out twice to somebody who still holds it.
CREATE TABLE namespace (
    namespace     text COLLATE "C" PRIMARY KEY,
    ords          bigint NOT NULL DEFAULT 0,   -- the last number given to a memory or part
    segments      bigint NOT NULL DEFAULT 0,   -- the last number given to a segment of postings
    changes       bigint NOT NULL DEFAULT 0,   -- the number of the last change; who sees it sees all changes up to it
    revision      bigint NOT NULL DEFAULT 0,   -- counts each transaction that changed what a recall may read
    memories      bigint NOT NULL DEFAULT 0,   -- memories and parts that are indexed
    length        bigint NOT NULL DEFAULT 0,   -- their length together, in terms
    dropping      bigint,                      -- the namespace is being dropped, up to this ord
    language      text COLLATE "C" NOT NULL DEFAULT 'english', -- whose stems its memories were read with
    changed_at    timestamptz NOT NULL DEFAULT now(), -- when something came or went last
    created_at    timestamptz NOT NULL DEFAULT now(),
    keep          interval,                    -- room: how long memories are kept
    most_memories bigint,                      -- room: how many it may hold
    most_bytes    bigint                       -- room: and of what size
) WITH (fillfactor = 40);                      -- its row changes with every write: in its page, and in no index

CREATE TABLE memory (
    namespace    text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    part         integer NOT NULL DEFAULT 0,   -- 0 the whole memory, 1.. the parts of a long one
    parts        integer NOT NULL DEFAULT 0,   -- above 0: split, so only its parts are indexed
    ord          bigint NOT NULL CHECK (ord < 4294967296), -- its number in the namespace, for the packed postings
    text         text NOT NULL,
    title        text,
    author       text,
    author_key   text COLLATE "C",             -- the author's name folded, as a question is searched for it
    session      text,
    position     bigint,
    source       text,
    tags         text[] NOT NULL DEFAULT '{}',
    metadata     jsonb NOT NULL DEFAULT '{}',
    importance   double precision NOT NULL,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    version      integer NOT NULL DEFAULT 1,
    seen_count   integer NOT NULL DEFAULT 1,   -- room: how often it was remembered
    access_count integer NOT NULL DEFAULT 0,   -- room: how often it was returned
    sensitive    boolean NOT NULL DEFAULT false, -- room: in no index, no vector, no graph
    pinned       boolean NOT NULL DEFAULT false, -- room: always in the context of an agent
    content      bytea NOT NULL,               -- hash of the normalised text: what deduplication compares
    payload      bytea NOT NULL,               -- hash of everything given: what "same content" means
    valid_from   timestamptz,                  -- room: when it began to be true, if not when it was written
    valid_to     timestamptz,                  -- room: and when it ceased
    expires_at   timestamptz,                  -- room: when it vanishes
    forgotten_at timestamptz,                  -- room: forgotten softly, and may be taken back
    last_seen    timestamptz,                  -- room: when it was remembered again
    accessed_at  timestamptz,                  -- room: when it was returned last
    PRIMARY KEY (namespace, id, part)
);
-- The planner asks for no statistics of texts, and samples of them would outlive what is forgotten.
ALTER TABLE memory ALTER text SET STATISTICS 0, ALTER title SET STATISTICS 0, ALTER source SET STATISTICS 0;
CREATE UNIQUE INDEX memory_by_ord ON memory (namespace, ord);
CREATE INDEX memory_by_time ON memory (namespace, created_at, id);
-- A session is in the order of its positions, where they are given; what has none follows, by time.
CREATE INDEX memory_by_session
    ON memory (namespace, session, (coalesce(position, 9223372036854775807)), created_at, id, part)
    WHERE session IS NOT NULL;
-- The last memories of an author are found without reading the others: what they follow says whether the author takes
-- turns.
CREATE INDEX memory_by_author ON memory (namespace, author_key, created_at, id, part) INCLUDE (author)
    WHERE author_key IS NOT NULL;
-- Filters by tag and by metadata read what they let through, not the whole namespace. Over all namespaces: the planner
-- goes by the namespace where that is smaller.
CREATE INDEX memory_by_tag ON memory USING gin (tags);
CREATE INDEX memory_by_metadata ON memory USING gin (metadata jsonb_path_ops);

-- What each indexed memory holds: packed (key, count, mention, subject, kind), see stores/packed_postings.py.
CREATE TABLE forward (
    namespace text COLLATE "C" NOT NULL,
    ord       bigint NOT NULL,
    length    integer NOT NULL,
    entries   bytea NOT NULL,
    PRIMARY KEY (namespace, ord)
);
ALTER TABLE forward ALTER entries SET STORAGE EXTERNAL;

-- Memories whose entries are not in a posting segment yet; readers take them from forward. names is parallel to
-- the entries and moves into the postings.
CREATE TABLE pending (
    namespace text COLLATE "C" NOT NULL,
    ord       bigint NOT NULL,
    names     text[] NOT NULL,
    PRIMARY KEY (namespace, ord)
);

-- The inverse of forward: for each key, segments of packed (ord, count, length, mention, subject).
CREATE TABLE posting (
    namespace text COLLATE "C" NOT NULL,
    key       bigint NOT NULL,
    segment   bigint NOT NULL,
    kind      smallint NOT NULL,
    n         integer NOT NULL,
    subjects  integer NOT NULL,
    low       bigint NOT NULL,
    high      bigint NOT NULL,
    name      text NOT NULL,
    entries   bytea NOT NULL,
    lone      boolean NOT NULL,              -- the only entry of its key, so it ties no two memories
    PRIMARY KEY (namespace, key, segment)
);
ALTER TABLE posting ALTER name SET STATISTICS 0;
CREATE INDEX posting_shared ON posting (namespace, key) WHERE NOT lone;
CREATE INDEX posting_by_segment ON posting (namespace, segment) WHERE NOT lone;
ALTER TABLE posting ALTER entries SET STORAGE EXTERNAL;

-- Segments written since the last compaction of their namespace.
CREATE TABLE fresh (
    namespace text COLLATE "C" NOT NULL,
    segment   bigint NOT NULL,
    PRIMARY KEY (namespace, segment)
);

CREATE TABLE embedding (
    namespace text COLLATE "C" NOT NULL,
    ord       bigint NOT NULL,
    vector    public.vector NOT NULL,
    indexed   boolean NOT NULL DEFAULT false, -- in the HNSW index, if there is one; the others are searched exactly
    PRIMARY KEY (namespace, ord)
);
CREATE INDEX embedding_rest ON embedding (namespace) WHERE NOT indexed;
ALTER TABLE embedding ALTER vector SET STORAGE MAIN;

-- The shadow of embedding: a rebuild fills it with vectors of another embedder while readers go on with the old ones;
-- when it is full the two tables change their names. Whose vectors these are is in meta under embedder_next.
CREATE TABLE embedding_next (
    namespace text COLLATE "C" NOT NULL,
    ord       bigint NOT NULL,
    vector    public.vector NOT NULL,
    indexed   boolean NOT NULL DEFAULT false,
    PRIMARY KEY (namespace, ord)
);
CREATE INDEX embedding_next_rest ON embedding_next (namespace) WHERE NOT indexed;
ALTER TABLE embedding_next ALTER vector SET STORAGE MAIN;

-- Changes that brought or took away aliases of subjects, by their number. waiting are those whose mentions in older
-- memories are still to be looked for; a writer that began before the change looks at keys, so a settled row stays a
-- while.
CREATE TABLE alias_change (
    namespace text COLLATE "C" NOT NULL,
    number    bigint NOT NULL,
    at        timestamptz NOT NULL DEFAULT now(),
    keys      bigint[] NOT NULL,
    waiting   bigint[] NOT NULL,
    looked    boolean NOT NULL DEFAULT false, -- a writer has looked; what still waits is for maintain
    PRIMARY KEY (namespace, number)
);
CREATE INDEX alias_change_waiting ON alias_change (namespace, number) WHERE cardinality(waiting) > 0;

-- Made by hand: a name that is another (into_key), or one that stands apart whatever the rules think (NULL).
CREATE TABLE correction (
    namespace text COLLATE "C" NOT NULL,
    key       bigint NOT NULL,
    name      text NOT NULL,
    into_key  bigint,
    into_name text,
    PRIMARY KEY (namespace, key)
);

-- Typed ties between two concepts, as some extractors find them in a memory.
CREATE TABLE relationship (
    namespace text COLLATE "C" NOT NULL,
    ord       bigint NOT NULL,
    subject   bigint NOT NULL,
    object    bigint NOT NULL,
    predicate text COLLATE "C" NOT NULL,
    PRIMARY KEY (namespace, ord, subject, object, predicate)
);
CREATE INDEX relationship_by_subject ON relationship (namespace, subject);
CREATE INDEX relationship_by_object ON relationship (namespace, object);

-- Search settings of one namespace that differ from those of the program, read by every process at its next recall.
CREATE TABLE namespace_setting (
    namespace  text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    value      jsonb NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (namespace, name)
);

-- What was written, updated and forgotten, in order: for those who keep a copy. A transaction has one number.
CREATE TABLE change (
    namespace text COLLATE "C" NOT NULL,
    number    bigint NOT NULL,
    id        text COLLATE "C" NOT NULL,
    kind      text COLLATE "C" NOT NULL,     -- written, updated, forgotten; room: linked, unlinked, restored
    at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (namespace, number, id)
);

-- Room: a version of a memory as it was before it was changed or forgotten softly, and when it was valid.
CREATE TABLE history (
    namespace  text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    version    integer NOT NULL,
    text       text NOT NULL,
    title      text,
    author     text,
    session    text,
    position   bigint,
    source     text,
    tags       text[] NOT NULL DEFAULT '{}',
    metadata   jsonb NOT NULL DEFAULT '{}',
    importance double precision NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    sensitive  boolean NOT NULL DEFAULT false,
    valid_from timestamptz NOT NULL,
    valid_to   timestamptz,
    changed_by text,
    changed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (namespace, id, version)
);

-- Room: a typed tie between two memories. By their ids: an update gives a memory another ord.
CREATE TABLE link (
    namespace text COLLATE "C" NOT NULL,
    from_id   text COLLATE "C" NOT NULL,
    type      text COLLATE "C" NOT NULL,     -- supersedes, resolved-by, part-of, see-also, contradicts
    to_id     text COLLATE "C" NOT NULL,
    since     timestamptz NOT NULL DEFAULT now(),
    made_by   text,
    PRIMARY KEY (namespace, from_id, type, to_id)
);
CREATE INDEX link_backwards ON link (namespace, to_id, type);

-- Room: recalls, kept where somebody asked for it, until retention takes them.
CREATE TABLE recall_log (
    namespace text COLLATE "C" NOT NULL,
    recall_id text COLLATE "C" NOT NULL,
    at        timestamptz NOT NULL DEFAULT now(),
    query     text NOT NULL,
    recipe    text,
    hits      jsonb NOT NULL DEFAULT '[]',
    PRIMARY KEY (namespace, recall_id)
);
CREATE INDEX recall_log_by_time ON recall_log (namespace, at);

-- Room: what somebody said of a hit of a recall.
CREATE TABLE judgement (
    namespace text COLLATE "C" NOT NULL,
    recall_id text COLLATE "C" NOT NULL,
    id        text COLLATE "C" NOT NULL,
    useful    boolean NOT NULL,
    made_by   text,
    at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (namespace, recall_id, id)
);
