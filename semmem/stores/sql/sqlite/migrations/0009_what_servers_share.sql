-- Several servers over one file share the keys of their clients, and the answers to requests that may be sent again.

-- key is the same JSON as in a file of keys; of the secret it holds the SHA-256 alone.
CREATE TABLE access_key (
    id  TEXT PRIMARY KEY,
    key TEXT NOT NULL
) WITHOUT ROWID;

-- key is a digest of the Idempotency-Key with its client and namespace, request a keyed digest of the request. The
-- answer is JSON without the texts of memories. unscrubbed: the file is still to be rewritten for a hard forget.
CREATE TABLE answered (
    key        BLOB PRIMARY KEY,
    request    BLOB NOT NULL,
    answer     TEXT NOT NULL,
    unscrubbed INTEGER NOT NULL DEFAULT 0,
    at         INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX answered_at ON answered (at);
