-- The schema from its number 3 on: a file of an older one is refused, and goes over by export and import. Text compares
-- by code point (BINARY); times are microseconds since 1970 in UTC. What is noted as "room" has a place here and nobody
-- who reads it yet.
PRAGMA application_id = 0x73656d6d;

-- Facts about the whole store, such as the language it was read in.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL                      -- JSON
) WITHOUT ROWID;

-- One row a namespace: what is numbered there, and counted. Its own number begins each of its tokens and rows, and is
-- never given twice. It outlives the last memory for a day, so that no ord is given twice to somebody who still holds
-- it.
CREATE TABLE namespace (
    number        INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace     TEXT NOT NULL UNIQUE,
    ords          INTEGER NOT NULL DEFAULT 0,   -- the last number given to a memory or part
    changes       INTEGER NOT NULL DEFAULT 0,   -- the number of the last change
    revision      INTEGER NOT NULL DEFAULT 0,   -- counts each transaction that changed what a recall may read
    memories      INTEGER NOT NULL DEFAULT 0,   -- memories and parts that are indexed
    length        INTEGER NOT NULL DEFAULT 0,   -- their length together, in terms
    language      TEXT NOT NULL DEFAULT 'english', -- whose stems its memories were read with
    changed_at    INTEGER NOT NULL,             -- when something came or went last
    keep          INTEGER,                      -- room: how long memories are kept, in microseconds
    most_memories INTEGER,                      -- room: how many it may hold
    most_bytes    INTEGER                       -- room: and of what size
);

CREATE TABLE memory (
    row          INTEGER PRIMARY KEY,           -- the number of the namespace * 2^40 + ord
    namespace    TEXT NOT NULL,
    id           TEXT NOT NULL,
    part         INTEGER NOT NULL DEFAULT 0,    -- 0 the whole memory, 1.. the parts of a long one
    parts        INTEGER NOT NULL DEFAULT 0,    -- above 0: split, so only its parts are indexed
    ord          INTEGER NOT NULL GENERATED ALWAYS AS (row & 1099511627775) VIRTUAL, -- its number in the namespace
    text         TEXT NOT NULL,
    title        TEXT,
    author       TEXT,
    author_key   TEXT,                          -- the author's name folded, as a question is searched for it
    session      TEXT,
    position     INTEGER,
    source       TEXT,
    tags         TEXT NOT NULL DEFAULT '[]',    -- JSON
    metadata     TEXT NOT NULL DEFAULT '{}',    -- JSON
    importance   REAL NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    version      INTEGER NOT NULL DEFAULT 1,
    content      BLOB NOT NULL,                 -- hash of the normalised text: what deduplication compares
    payload      BLOB NOT NULL,                 -- hash of everything given: what "same content" means
    length       INTEGER NOT NULL DEFAULT 0,    -- in terms, title counted twice: what BM25 divides by
    seen_count   INTEGER NOT NULL DEFAULT 1,    -- room: how often it was remembered
    access_count INTEGER NOT NULL DEFAULT 0,    -- room: how often it was returned
    sensitive    INTEGER NOT NULL DEFAULT 0,    -- room: in no index
    pinned       INTEGER NOT NULL DEFAULT 0,    -- room: always in the context of an agent
    valid_from   INTEGER,                       -- room: when it began to be true, if not when it was written
    valid_to     INTEGER,                       -- room: and when it ceased
    expires_at   INTEGER,                       -- room: when it vanishes
    forgotten_at INTEGER,                       -- room: forgotten softly, and may be taken back
    last_seen    INTEGER,                       -- room: when it was remembered again
    accessed_at  INTEGER,                       -- room: when it was returned last
    UNIQUE (namespace, id, part)
);
CREATE INDEX memory_by_time ON memory (namespace, created_at, id);
-- A session is in the order of its positions, where they are given; what has none follows, by time.
CREATE INDEX memory_by_session
    ON memory (namespace, session, coalesce(position, 9223372036854775807), created_at, id, part)
    WHERE session IS NOT NULL;
-- The last memories of an author are found without reading the others: what they follow says whether the author takes
-- turns.
CREATE INDEX memory_by_author ON memory (namespace, author_key, created_at, id, part)
    WHERE author_key IS NOT NULL;

-- The inverted index. A token is the number of the namespace, an n, and the key of a term in hexadecimal, once for each
-- time the memory has the term; the rowid is the row. Scores are not FTS5's own, so it keeps no sizes for them.
CREATE VIRTUAL TABLE lexical USING fts5(tokens, tokenize = 'ascii', columnsize = 0);
CREATE VIRTUAL TABLE lexical_term USING fts5vocab('lexical', 'instance');

-- Search settings of one namespace that differ from those of the program, read by every process at its next recall.
CREATE TABLE namespace_setting (
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    value     TEXT NOT NULL,                    -- JSON
    PRIMARY KEY (namespace, name)
);

-- What was written, updated and forgotten, in order: for those who keep a copy. A transaction has one number.
CREATE TABLE change (
    namespace TEXT NOT NULL,
    number    INTEGER NOT NULL,
    id        TEXT NOT NULL,
    kind      TEXT NOT NULL,                    -- written, updated, forgotten, dropped; room: linked, unlinked, restored
    at        INTEGER NOT NULL,
    PRIMARY KEY (namespace, number, id)
) WITHOUT ROWID;

-- Room: a version of a memory as it was before it was changed or forgotten softly, and when it was valid.
CREATE TABLE history (
    namespace  TEXT NOT NULL,
    id         TEXT NOT NULL,
    version    INTEGER NOT NULL,
    text       TEXT NOT NULL,
    title      TEXT,
    author     TEXT,
    session    TEXT,
    position   INTEGER,
    source     TEXT,
    tags       TEXT NOT NULL DEFAULT '[]',
    metadata   TEXT NOT NULL DEFAULT '{}',
    importance REAL NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    sensitive  INTEGER NOT NULL DEFAULT 0,
    valid_from INTEGER NOT NULL,
    valid_to   INTEGER,
    changed_by TEXT,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, id, version)
);

-- Room: a typed tie between two memories. By their ids: an update gives a memory another ord.
CREATE TABLE link (
    namespace TEXT NOT NULL,
    from_id   TEXT NOT NULL,
    type      TEXT NOT NULL,                    -- supersedes, resolved-by, part-of, see-also, contradicts
    to_id     TEXT NOT NULL,
    since     INTEGER NOT NULL,
    made_by   TEXT,
    PRIMARY KEY (namespace, from_id, type, to_id)
) WITHOUT ROWID;
CREATE INDEX link_backwards ON link (namespace, to_id, type);

-- Room: recalls, kept where somebody asked for it, until retention takes them.
CREATE TABLE recall_log (
    namespace TEXT NOT NULL,
    recall_id TEXT NOT NULL,
    at        INTEGER NOT NULL,
    query     TEXT NOT NULL,
    recipe    TEXT,
    hits      TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (namespace, recall_id)
);
CREATE INDEX recall_log_by_time ON recall_log (namespace, at);

-- Room: what somebody said of a hit of a recall.
CREATE TABLE judgement (
    namespace TEXT NOT NULL,
    recall_id TEXT NOT NULL,
    id        TEXT NOT NULL,
    useful    INTEGER NOT NULL,
    made_by   TEXT,
    at        INTEGER NOT NULL,
    PRIMARY KEY (namespace, recall_id, id)
) WITHOUT ROWID;
