-- Servers that share the limit of rate take from one bucket of tokens for each client, and the due rows of the audit are
-- found by their age.

-- client is a digest of a key or an address. tokens are those left at that time, and granted those taken then. Nothing is
-- lost with them but a second of a limit, so no log is written.
CREATE UNLOGGED TABLE rate_bucket (
    client  bytea PRIMARY KEY,
    tokens  double precision NOT NULL,
    granted double precision NOT NULL DEFAULT 0,
    at      timestamptz NOT NULL
);
CREATE INDEX rate_bucket_by_age ON rate_bucket (at);
CREATE INDEX audit_by_age ON audit (at, namespace);
