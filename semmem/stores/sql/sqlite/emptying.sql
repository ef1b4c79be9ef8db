-- empty_count --
-- How many memories go.
SELECT count(*) FROM memory WHERE namespace = :namespace AND part = 0;

-- empty_lexical --
-- No posting outlives its text.
DELETE FROM lexical WHERE rowid IN (SELECT ord FROM memory WHERE namespace = :namespace AND parts = 0);

-- empty_memory --
-- The texts.
DELETE FROM memory WHERE namespace = :namespace;

-- empty_tally --
-- Of an empty namespace no name is left either.
DELETE FROM tally WHERE namespace = :namespace;

-- empty_setting --
-- A namespace that comes again begins with the settings of the program.
DELETE FROM namespace_setting WHERE namespace = :namespace;
