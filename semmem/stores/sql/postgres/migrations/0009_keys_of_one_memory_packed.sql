-- Most keys of a namespace are in one memory alone: maintain packs their postings, some dozens to a row.

-- keys are ascending, and no two rows of a namespace overlap: the row of a key is the last that begins at it or before.
-- To the keys belong, in their order, kinds (a byte each), names, and entries of 12 bytes, as in posting. A key that
-- has come to have rows in posting counts there, and not here.
CREATE TABLE lone_posting (
    namespace text COLLATE "C" NOT NULL,
    first     bigint NOT NULL,
    low       bigint NOT NULL,               -- the lowest and the highest memory
    high      bigint NOT NULL,
    keys      bigint[] NOT NULL,
    kinds     bytea NOT NULL,
    entries   bytea NOT NULL,
    names     text[] NOT NULL,
    PRIMARY KEY (namespace, first)
);
ALTER TABLE lone_posting ALTER keys SET STATISTICS 0, ALTER kinds SET STATISTICS 0, ALTER entries SET STATISTICS 0,
    ALTER names SET STATISTICS 0;
