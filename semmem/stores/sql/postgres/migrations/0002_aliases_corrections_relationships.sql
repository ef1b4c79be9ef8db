-- What the graph needs to be the same whatever the order of writing: which aliases came and went, what people corrected,
-- and what ties two concepts.

-- One row a transaction that brought or took away aliases of subjects. waiting are those whose mentions in older memories
-- are still to be looked for; a writer that began before the row could be seen looks at keys, so a settled row stays a while.
CREATE TABLE alias_change (
    namespace text COLLATE "C" NOT NULL,
    id        bigint GENERATED ALWAYS AS IDENTITY,
    xid       xid8 NOT NULL DEFAULT pg_current_xact_id(),
    at        timestamptz NOT NULL DEFAULT now(),
    keys      bigint[] NOT NULL,
    waiting   bigint[] NOT NULL,
    looked    boolean NOT NULL DEFAULT false, -- a writer has looked; what still waits is for maintain
    PRIMARY KEY (namespace, id)
);
CREATE INDEX alias_change_by_xid ON alias_change (namespace, xid);
CREATE INDEX alias_change_waiting ON alias_change (namespace, id) WHERE cardinality(waiting) > 0;

-- Made by hand: a name that is another (into_key), or one that stands apart whatever the rules think (NULL).
CREATE TABLE correction (
    namespace text COLLATE "C" NOT NULL,
    key       bigint NOT NULL,
    name      text NOT NULL,
    into_key  bigint,
    into_name text,
    PRIMARY KEY (namespace, key)
);

-- Typed ties between two concepts, as some extractors find them in a memory.
CREATE TABLE relationship (
    namespace text COLLATE "C" NOT NULL,
    ord       bigint NOT NULL,
    subject   bigint NOT NULL,
    predicate text NOT NULL,
    object    bigint NOT NULL
);
CREATE INDEX relationship_by_ord ON relationship (namespace, ord);
CREATE INDEX relationship_by_subject ON relationship (namespace, subject);
CREATE INDEX relationship_by_object ON relationship (namespace, object);
