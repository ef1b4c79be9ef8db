-- The first schema. Text compares by code point (BINARY); times are microseconds since 1970 in UTC; an ord is never
-- given twice, so that a reader who still holds one cannot meet another memory under it.
PRAGMA application_id = 0x73656d6d;

CREATE TABLE memory (
    ord        INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace  TEXT NOT NULL,
    id         TEXT NOT NULL,
    part       INTEGER NOT NULL DEFAULT 0,   -- 0 the whole memory, 1.. the parts of a long one
    parts      INTEGER NOT NULL DEFAULT 0,   -- above 0: split, so only its parts are indexed
    text       TEXT NOT NULL,
    title      TEXT,
    author     TEXT,
    author_key TEXT,                         -- the author's name folded, as a question is searched for it
    session    TEXT,
    position   INTEGER,
    source     TEXT,
    tags       TEXT NOT NULL DEFAULT '[]',   -- JSON
    metadata   TEXT NOT NULL DEFAULT '{}',   -- JSON
    importance REAL NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version    INTEGER NOT NULL DEFAULT 1,
    content    BLOB NOT NULL,                -- hash of the normalised text: what deduplication compares
    payload    BLOB NOT NULL,                -- hash of everything given: what "same content" means
    length     INTEGER NOT NULL DEFAULT 0,   -- in terms, title counted twice: what BM25 divides by
    UNIQUE (namespace, id, part)
);
CREATE INDEX memory_by_time ON memory (namespace, created_at, id);
CREATE INDEX memory_by_session ON memory (namespace, session, created_at, coalesce(position, 0), id, part)
    WHERE session IS NOT NULL;
CREATE INDEX memory_by_author ON memory (namespace, author_key) WHERE author_key IS NOT NULL;

-- Number and length of the indexed memories of a namespace; its number begins each of its tokens.
CREATE TABLE tally (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace TEXT NOT NULL UNIQUE,
    memories  INTEGER NOT NULL DEFAULT 0,
    length    INTEGER NOT NULL DEFAULT 0
);

-- The inverted index. A token is the number of the namespace, an n, and the key of a term in hexadecimal, once for each
-- time the memory has the term; the rowid is the ord. Scores are not FTS5's own, so it keeps no sizes for them.
CREATE VIRTUAL TABLE lexical USING fts5(tokens, tokenize = 'ascii', columnsize = 0);
CREATE VIRTUAL TABLE lexical_term USING fts5vocab('lexical', 'instance');

-- Search settings of one namespace that differ from those of the program, read by every process at its next recall.
CREATE TABLE namespace_setting (
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    value     TEXT NOT NULL,                 -- JSON
    PRIMARY KEY (namespace, name)
);
