-- drop_count --
-- How many memories go.
SELECT count(*) FROM memory WHERE namespace = :namespace AND part = 0;

-- drop_lexical --
-- No posting outlives its text. Some thousands at a time.
DELETE FROM lexical WHERE rowid IN (
    SELECT row FROM memory WHERE namespace = :namespace AND row <= :upto ORDER BY row LIMIT :limit);

-- drop_memory --
-- The texts of the same.
DELETE FROM memory WHERE row IN (
    SELECT row FROM memory WHERE namespace = :namespace AND row <= :upto ORDER BY row LIMIT :limit)
RETURNING parts = 0, length;

-- drop_setting --
-- A namespace that comes again begins with the settings of the program.
DELETE FROM namespace_setting WHERE namespace = :namespace;

-- drop_rest --
-- What led to this end means nothing behind it.
DELETE FROM change WHERE namespace = :namespace AND number < (
    SELECT max(number) FROM change WHERE namespace = :namespace AND kind = 'dropped');

-- drop_history --
-- Earlier versions of what is not there any more.
DELETE FROM history WHERE namespace = :namespace AND id NOT IN (SELECT id FROM memory WHERE namespace = :namespace);

-- drop_link --
-- Ties of what is not there any more.
DELETE FROM link WHERE namespace = :namespace AND (
    from_id NOT IN (SELECT id FROM memory WHERE namespace = :namespace)
    OR to_id NOT IN (SELECT id FROM memory WHERE namespace = :namespace));

-- drop_likeness --
-- What was alike in memories that are not there any more.
DELETE FROM likeness WHERE namespace = :namespace AND ord NOT IN (
    SELECT ord FROM memory WHERE namespace = :namespace);

-- drop_judgement --
-- What was said of memories that are not there any more.
DELETE FROM judgement WHERE namespace = :namespace AND id NOT IN (SELECT id FROM memory WHERE namespace = :namespace);

-- drop_recall_log --
-- Questions asked before the namespace went.
DELETE FROM recall_log WHERE namespace = :namespace AND at < (
    SELECT max(at) FROM change WHERE namespace = :namespace AND kind = 'dropped');
