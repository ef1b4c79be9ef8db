-- What an earlier version, or a memory that was forgotten softly, needs to be read, found and brought back as it was.

-- Their memories are in no index. length and entries are what the postings held: for each passage its part, its length
-- and its packed entries (stores/packed_postings.py); vectors are those of its passages, with who made them.
ALTER TABLE history
    ADD forgotten_at timestamptz,            -- forgotten softly then, and may be taken back; the versions before it too
    ADD expires_at   timestamptz,
    ADD pinned       boolean NOT NULL DEFAULT false,
    ADD seen_count   integer NOT NULL DEFAULT 1,
    ADD payload      bytea,
    ADD vectors      bytea,
    ADD entries      bytea,
    ADD length       integer NOT NULL DEFAULT 0;
ALTER TABLE history ALTER valid_from DROP NOT NULL; -- NULL: when it was written, of the first version: created_at
ALTER TABLE history ALTER text SET STATISTICS 0, ALTER title SET STATISTICS 0, ALTER source SET STATISTICS 0;
CREATE INDEX history_forgotten ON history (namespace, forgotten_at) WHERE forgotten_at IS NOT NULL;

CREATE INDEX memory_expiring ON memory (namespace, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX memory_by_content ON memory (namespace, content);
CREATE INDEX memory_bounded ON memory (namespace, ord) WHERE valid_from IS NOT NULL OR valid_to IS NOT NULL;
CREATE INDEX memory_pinned ON memory (namespace) WHERE pinned;

-- What is alike has a key in common: the hash of a claim's subject and attribute, or a band of a sketch of the text.
CREATE TABLE likeness (
    namespace text COLLATE "C" NOT NULL,
    key       bigint NOT NULL,
    ord       bigint NOT NULL,
    PRIMARY KEY (namespace, key, ord)
);
CREATE INDEX likeness_by_ord ON likeness (namespace, ord);
