-- Search settings of one namespace that differ from those of the program, read by every process at its next recall.
CREATE TABLE namespace_setting (
    namespace  text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    value      jsonb NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (namespace, name)
);
