-- How often recalls returned a memory, and when they last did.

-- A table of its own, so that the row of a memory is not rewritten for it. Written some time after the recalls, a
-- process at a time; a row goes with its memory, for good.
CREATE TABLE access (
    namespace text COLLATE "C" NOT NULL,
    id        text COLLATE "C" NOT NULL,
    count     bigint NOT NULL,
    last_at   timestamptz NOT NULL,
    PRIMARY KEY (namespace, id)
) WITH (fillfactor = 70);                      -- its rows change often, in their pages and in no index
