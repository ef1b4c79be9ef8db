-- How often recalls returned a memory, and when they last did.

-- A table of its own, so that the row of a memory is not rewritten for it. Written some time after the recalls, a
-- process at a time; a row goes with its memory, for good.
CREATE TABLE access (
    namespace TEXT NOT NULL,
    id        TEXT NOT NULL,
    count     INTEGER NOT NULL,
    last_at   INTEGER NOT NULL,
    PRIMARY KEY (namespace, id)
) WITHOUT ROWID;
