-- The first schema. The namespace leads every key; ids compare by code point; no foreign keys, so that
-- every table can be partitioned or distributed by namespace as it stands.

CREATE TABLE meta (
    key   text COLLATE "C" PRIMARY KEY,
    value jsonb NOT NULL
);

-- One number a stored memory or part, small enough for the packed postings (uint32).
CREATE SEQUENCE memory_ord AS bigint MINVALUE 1 MAXVALUE 4294967295 NO CYCLE;
CREATE SEQUENCE segment_number AS bigint;

CREATE TABLE memory (
    namespace  text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    part       integer NOT NULL DEFAULT 0,   -- 0 the whole memory, 1.. the parts of a long one
    parts      integer NOT NULL DEFAULT 0,   -- above 0: split, so only its parts are indexed
    ord        bigint NOT NULL DEFAULT nextval('memory_ord'),
    text       text NOT NULL,
    title      text,
    author     text,
    author_key text COLLATE "C",             -- the author's name folded, as a question is searched for it
    session    text,
    position   bigint,
    source     text,
    tags       text[] NOT NULL DEFAULT '{}',
    metadata   jsonb NOT NULL DEFAULT '{}',
    importance double precision NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    version    integer NOT NULL DEFAULT 1,
    content    bytea NOT NULL,               -- hash of the normalised text: what deduplication compares
    payload    bytea NOT NULL,               -- hash of everything given: what "same content" means
    PRIMARY KEY (namespace, id, part)
);
CREATE UNIQUE INDEX memory_by_ord ON memory (namespace, ord);
CREATE INDEX memory_by_time ON memory (namespace, created_at, id);
CREATE INDEX memory_by_session ON memory (namespace, session, created_at, (coalesce(position, 0)), id, part)
    WHERE session IS NOT NULL;
CREATE INDEX memory_by_author ON memory (namespace, author_key) INCLUDE (author) WHERE author_key IS NOT NULL;

-- What each indexed memory holds: packed (key, count, mention, subject, kind), see stores/packing.py.
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
CREATE INDEX posting_shared ON posting (namespace, key) WHERE NOT lone;
CREATE INDEX posting_by_segment ON posting (namespace, segment) WHERE NOT lone;

-- Segments written since the last compaction of their namespace.
CREATE TABLE fresh (
    namespace text COLLATE "C" NOT NULL,
    segment   bigint NOT NULL,
    PRIMARY KEY (namespace, segment)
);
ALTER TABLE posting ALTER entries SET STORAGE EXTERNAL;

-- Number and length of the indexed memories, as deltas that are folded later, so that writers never queue.
CREATE TABLE tally (
    namespace text COLLATE "C" NOT NULL,
    id        bigint GENERATED ALWAYS AS IDENTITY,
    memories  bigint NOT NULL,
    length    bigint NOT NULL,
    PRIMARY KEY (namespace, id)
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
