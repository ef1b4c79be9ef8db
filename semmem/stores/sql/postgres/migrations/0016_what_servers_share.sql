-- Several servers over one store share the keys of their clients, and the answers to requests that may be sent again.

-- key is the same JSON as in a file of keys; of the secret it holds the SHA-256 alone.
CREATE TABLE access_key (
    id  text COLLATE "C" PRIMARY KEY,
    key jsonb NOT NULL
);

-- key is a digest of the Idempotency-Key with its client and namespace, request a keyed digest of the request. The
-- answer is JSON without the texts of memories. unscrubbed: the files are still to be rewritten for a hard forget.
CREATE TABLE answered (
    key        bytea PRIMARY KEY,
    request    bytea NOT NULL,
    answer     text NOT NULL,
    unscrubbed boolean NOT NULL DEFAULT false,
    at         timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX answered_at ON answered (at);
