-- What an earlier version, or a memory that was forgotten softly, needs to be read, found and brought back as it was.

-- The table anew, as SQLite takes no NOT NULL off a column; nobody has written to it before. entries are what the
-- lexical index held: for each passage its part, its length and its tokens, as JSON. There are no vectors.
DROP TABLE history;
CREATE TABLE history (
    namespace    TEXT NOT NULL,
    id           TEXT NOT NULL,
    version      INTEGER NOT NULL,
    text         TEXT NOT NULL,
    title        TEXT,
    author       TEXT,
    session      TEXT,
    position     INTEGER,
    source       TEXT,
    tags         TEXT NOT NULL DEFAULT '[]',
    metadata     TEXT NOT NULL DEFAULT '{}',
    importance   REAL NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    sensitive    INTEGER NOT NULL DEFAULT 0,
    valid_from   INTEGER,                       -- NULL: when it was written, of the first version: created_at
    valid_to     INTEGER,
    changed_by   TEXT,
    changed_at   INTEGER NOT NULL,
    forgotten_at INTEGER,                       -- forgotten softly then, and may be taken back; the versions before it too
    expires_at   INTEGER,
    pinned       INTEGER NOT NULL DEFAULT 0,
    seen_count   INTEGER NOT NULL DEFAULT 1,
    payload      BLOB,
    vectors      BLOB,
    entries      BLOB,
    length       INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (namespace, id, version)
);
CREATE INDEX history_forgotten ON history (namespace, forgotten_at) WHERE forgotten_at IS NOT NULL;

CREATE INDEX memory_expiring ON memory (namespace, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX memory_by_content ON memory (namespace, content);
CREATE INDEX memory_bounded ON memory (namespace, row) WHERE valid_from IS NOT NULL OR valid_to IS NOT NULL;
CREATE INDEX memory_pinned ON memory (namespace) WHERE pinned;

-- What is alike has a key in common: the hash of a claim's subject and attribute, or a band of a sketch of the text.
CREATE TABLE likeness (
    namespace TEXT NOT NULL,
    key       INTEGER NOT NULL,
    ord       INTEGER NOT NULL,
    PRIMARY KEY (namespace, key, ord)
) WITHOUT ROWID;
CREATE INDEX likeness_by_ord ON likeness (namespace, ord);
