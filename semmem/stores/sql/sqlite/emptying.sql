-- drop_count --
-- Count the memories that a drop removes.
SELECT count(*) FROM memory WHERE namespace = :namespace AND part = 0;

-- drop_lexical --
-- Delete the tokens of some thousands of dropped memories.
DELETE FROM lexical WHERE rowid IN (
    SELECT row FROM memory WHERE namespace = :namespace AND row <= :upto ORDER BY row LIMIT :limit);

-- drop_forward --
-- Delete the entries of the same memories.
DELETE FROM forward WHERE row IN (
    SELECT row FROM memory WHERE namespace = :namespace AND row <= :upto ORDER BY row LIMIT :limit);

-- drop_embedding --
-- Delete the vectors of the same memories.
DELETE FROM embedding WHERE row IN (
    SELECT row FROM memory WHERE namespace = :namespace AND row <= :upto ORDER BY row LIMIT :limit);

-- drop_staging --
-- Delete the next embedder's vectors of the same memories.
DELETE FROM embedding_next WHERE row IN (
    SELECT row FROM memory WHERE namespace = :namespace AND row <= :upto ORDER BY row LIMIT :limit);

-- drop_relationship --
-- Delete the relationships of the same memories.
DELETE FROM relationship WHERE row IN (
    SELECT row FROM memory WHERE namespace = :namespace AND row <= :upto ORDER BY row LIMIT :limit);

-- drop_memory --
-- Delete the same memories.
DELETE FROM memory WHERE row IN (
    SELECT row FROM memory WHERE namespace = :namespace AND row <= :upto ORDER BY row LIMIT :limit)
RETURNING parts = 0, length;

-- drop_setting --
-- Delete the settings of the namespace; a new one of its name begins with the program's settings.
DELETE FROM namespace_setting WHERE namespace = :namespace;

-- drop_rest --
-- Delete the changes before the drop, which mean nothing after it.
DELETE FROM change WHERE namespace = :namespace AND number < (
    SELECT max(number) FROM change WHERE namespace = :namespace AND kind = 'dropped');

-- drop_history --
-- Delete the earlier versions of dropped memories.
DELETE FROM history WHERE namespace = :namespace AND id NOT IN (SELECT id FROM memory WHERE namespace = :namespace);

-- drop_link --
-- Delete the links of dropped memories.
DELETE FROM link WHERE namespace = :namespace AND (
    from_id NOT IN (SELECT id FROM memory WHERE namespace = :namespace)
    OR to_id NOT IN (SELECT id FROM memory WHERE namespace = :namespace));

-- drop_likeness --
-- Delete the likeness keys of dropped memories.
DELETE FROM likeness WHERE namespace = :namespace AND ord NOT IN (
    SELECT ord FROM memory WHERE namespace = :namespace);

-- drop_uncompared --
-- Delete the notes of what was to be compared.
DELETE FROM uncompared WHERE namespace = :namespace AND ord NOT IN (
    SELECT ord FROM memory WHERE namespace = :namespace);

-- drop_recall_found --
-- Delete the logged recalls that found memories of a namespace that is dropped, also their rows in other namespaces, as
-- purge_recall_log does.
DELETE FROM recall_log WHERE recall_id IN (
    SELECT l.recall_id FROM recall_log AS l WHERE l.namespace = :namespace AND l.hits <> '{}');

-- drop_recall_log --
-- Delete the other logged recalls of a namespace that is dropped.
DELETE FROM recall_log WHERE namespace = :namespace;
