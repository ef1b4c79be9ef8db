-- What the dense and the graph leg read. A row is the number of the namespace and the ord, as in memory.

-- entries and candidates are packed (stores/packed_postings.py), names the spelling of each entry, as JSON.
CREATE TABLE forward (
    row        INTEGER PRIMARY KEY,
    entries    BLOB NOT NULL,
    candidates BLOB NOT NULL,
    names      TEXT NOT NULL
);

-- A vector has four bytes a dimension, the lowest first. The second table is filled by a rebuild with another embedder.
CREATE TABLE embedding (
    row    INTEGER PRIMARY KEY,
    vector BLOB NOT NULL
);
CREATE TABLE embedding_next (
    row    INTEGER PRIMARY KEY,
    vector BLOB NOT NULL
);

CREATE TABLE relationship (
    row       INTEGER NOT NULL,
    subject   INTEGER NOT NULL,
    predicate TEXT NOT NULL,
    object    INTEGER NOT NULL,
    PRIMARY KEY (row, subject, predicate, object)
) WITHOUT ROWID;
CREATE INDEX relationship_by_subject ON relationship (subject);
CREATE INDEX relationship_by_object ON relationship (object);

-- What people said of names: the name of a key means another one, or with NULL only itself.
CREATE TABLE correction (
    namespace TEXT NOT NULL,
    key       INTEGER NOT NULL,
    name      TEXT NOT NULL,
    into_key  INTEGER,
    into_name TEXT,
    PRIMARY KEY (namespace, key)
) WITHOUT ROWID;

-- Nothing of that is there for older memories: maintain derives them again.
UPDATE namespace SET makers = '[[1, ""]]' WHERE ords > 0;
