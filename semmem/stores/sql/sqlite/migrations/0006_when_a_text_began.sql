-- When the text of a memory began, and what is still to be compared.

-- text_at is the time of the update that brought the text, NULL where it is created_at.
ALTER TABLE memory ADD COLUMN text_at INTEGER;
ALTER TABLE history ADD COLUMN text_at INTEGER;

-- Of a memory that has been updated: the first of the versions that have its text, behind the last one with another.
UPDATE memory SET text_at = coalesce(
    (SELECT min(v.updated_at) FROM history AS v
     WHERE v.namespace = memory.namespace AND v.id = memory.id AND v.forgotten_at IS NULL AND v.version > (
         SELECT max(o.version) FROM history AS o WHERE o.namespace = memory.namespace AND o.id = memory.id
             AND o.forgotten_at IS NULL AND o.text <> memory.text)),
    updated_at)
WHERE version > 1 AND part = 0 AND EXISTS (
    SELECT 1 FROM history AS h WHERE h.namespace = memory.namespace AND h.id = memory.id AND h.forgotten_at IS NULL
        AND h.text <> memory.text);

-- Memories whose links are not made yet: noted with what has made them due, taken away with the links. What a process
-- that ended in between has left, the next one finds.
CREATE TABLE uncompared (
    namespace TEXT NOT NULL,
    ord       INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (namespace, ord)
) WITHOUT ROWID;

-- Of what links were made or taken away, with a comma between them.
ALTER TABLE change ADD COLUMN types TEXT;
