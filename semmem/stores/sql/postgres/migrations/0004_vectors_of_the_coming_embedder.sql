-- The shadow of embedding: a rebuild fills it with vectors of another embedder while readers go on with the old ones; when
-- it is full the two tables change their names. Whose vectors these are is in meta under embedder_next.
CREATE TABLE embedding_next (
    namespace text COLLATE "C" NOT NULL,
    ord       bigint NOT NULL,
    vector    public.vector NOT NULL,
    indexed   boolean NOT NULL DEFAULT false,
    PRIMARY KEY (namespace, ord)
);
CREATE INDEX embedding_next_rest ON embedding_next (namespace) WHERE NOT indexed;
ALTER TABLE embedding_next ALTER vector SET STORAGE MAIN;
