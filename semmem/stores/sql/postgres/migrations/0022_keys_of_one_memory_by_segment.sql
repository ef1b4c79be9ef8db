-- A key that one memory alone has is no row of posting at all: what a flush brings of them is packed at once, under the
-- number of its segment, as maintain packs all of them under 0.
ALTER TABLE lone_posting ADD segment bigint NOT NULL DEFAULT 0;
ALTER TABLE lone_posting ALTER segment DROP DEFAULT;
ALTER TABLE lone_posting DROP CONSTRAINT lone_posting_pkey;
ALTER TABLE lone_posting ADD PRIMARY KEY (namespace, segment, first);

-- The segments of lone_posting. Within one no two rows overlap; a key is in one of them at most.
CREATE TABLE lone_segment (
    namespace text COLLATE "C" NOT NULL,
    segment   bigint NOT NULL,
    low       bigint NOT NULL,               -- the lowest and the highest memory that may be in it
    high      bigint NOT NULL,
    keys      bigint,                        -- how many keys it had when it was written; NULL of 0, to which maintain adds
    PRIMARY KEY (namespace, segment)
);
INSERT INTO lone_segment (namespace, segment, low, high) SELECT DISTINCT namespace, 0, 0, 4294967295 FROM lone_posting;

UPDATE namespace SET segments = segments + 1
WHERE namespace IN (SELECT namespace FROM posting WHERE lone);
INSERT INTO lone_segment (namespace, segment, low, high, keys)
SELECT namespace, (SELECT n.segments FROM namespace n WHERE n.namespace = p.namespace), min(low), max(high), count(*)
FROM posting p WHERE lone GROUP BY namespace;
INSERT INTO lone_posting (namespace, segment, first, low, high, keys, kinds, entries, names)
SELECT namespace, of, min(key), min(low), max(high), array_agg(key ORDER BY key),
       string_agg(set_byte('\x00'::bytea, 0, kind), ''::bytea ORDER BY key), string_agg(entries, ''::bytea ORDER BY key),
       array_agg(name ORDER BY key)
FROM (SELECT p.*, s.segment AS of, (row_number() OVER (PARTITION BY p.namespace ORDER BY p.key) - 1) / 32 AS piece
      FROM posting p JOIN lone_segment s ON s.namespace = p.namespace AND s.segment > 0 WHERE p.lone) AS placed
GROUP BY namespace, of, piece;
DELETE FROM posting WHERE lone;
DROP INDEX posting_shared;
ALTER TABLE posting DROP lone;
CREATE INDEX posting_by_segment ON posting (namespace, segment);
