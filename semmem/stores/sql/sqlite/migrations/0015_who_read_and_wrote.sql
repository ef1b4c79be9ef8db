-- Who read and wrote what: one row for each namespace of a call, without a text. Nobody changes a row, and only maintain
-- deletes one, when its days are over: it notes up to which time in meta, and takes that back in the same transaction.
CREATE TABLE audit (
    namespace TEXT NOT NULL,
    id        TEXT NOT NULL,
    at        INTEGER NOT NULL,
    who       TEXT,
    interface TEXT NOT NULL,
    agent     TEXT,
    verb      TEXT NOT NULL,
    outcome   TEXT NOT NULL,
    count     INTEGER,
    ids       TEXT NOT NULL,
    PRIMARY KEY (namespace, id)
) WITHOUT ROWID;
CREATE INDEX audit_by_id ON audit (id, namespace);
CREATE INDEX audit_by_time ON audit (namespace, at);
CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'Rows of audit are neither changed nor deleted.');
END;
CREATE TRIGGER audit_undeleted BEFORE DELETE ON audit
WHEN NOT EXISTS (SELECT 1 FROM meta WHERE key = 'audit_before' AND old.at < CAST(value AS INTEGER))
BEGIN
    SELECT RAISE(ABORT, 'Rows of audit are neither changed nor deleted.');
END;
