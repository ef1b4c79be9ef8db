-- What is alike, in few bytes: a row a memory, and rows of its keys only until maintain has packed them.

-- A key is four bytes from here on: it says what is worth comparing, and one that is the same by chance only costs
-- that.
CREATE TABLE likeness_key (
    namespace text COLLATE "C" NOT NULL,
    key       integer NOT NULL,
    ord       bigint NOT NULL,
    PRIMARY KEY (namespace, key, ord)
);
INSERT INTO likeness_key (namespace, key, ord)
SELECT DISTINCT namespace, ((key << 32) >> 32)::integer, ord FROM likeness ORDER BY 1, 2, 3;

-- All keys of a memory: by these it is taken out of the other two tables.
DROP TABLE likeness;
CREATE TABLE likeness (
    namespace text COLLATE "C" NOT NULL,
    ord       bigint NOT NULL,
    keys      integer[] NOT NULL,
    PRIMARY KEY (namespace, ord)
);
INSERT INTO likeness (namespace, ord, keys)
SELECT namespace, ord, array_agg(key ORDER BY key) FROM likeness_key GROUP BY namespace, ord ORDER BY 1, 2;

-- Keys that few memories have: ascending, each again for each of its memories, whose ords stand beside it (oid: a
-- number of four bytes without a sign). A key is in the row of its upper bits, key >> shift. There are one or two
-- shifts in a namespace: the lower one is that of the rows which are written now. No key and memory are in likeness_key
-- too.
CREATE TABLE packed_likeness (
    namespace text COLLATE "C" NOT NULL,
    shift     integer NOT NULL,
    bits      integer NOT NULL,
    keys      integer[] NOT NULL,
    ords      oid[] NOT NULL,
    PRIMARY KEY (namespace, shift, bits)
);
ALTER TABLE likeness ALTER keys SET STATISTICS 0;
ALTER TABLE packed_likeness ALTER keys SET STATISTICS 0, ALTER ords SET STATISTICS 0;

-- Nobody wrote or read these: what is forgotten softly stands in history, and counts in access.
ALTER TABLE memory DROP forgotten_at, DROP access_count;
