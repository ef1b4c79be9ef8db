-- When the text of a memory began, and what is still to be compared.

-- text_at is the time of the update that brought the text, NULL where it is created_at.
ALTER TABLE memory ADD text_at timestamptz;
ALTER TABLE history ADD text_at timestamptz;

-- Of a memory that has been updated: the first of the versions that have its text, behind the last one with another.
UPDATE memory m SET text_at = coalesce(
    (SELECT min(v.updated_at) FROM history v
     WHERE v.namespace = m.namespace AND v.id = m.id AND v.forgotten_at IS NULL AND v.version > (
         SELECT max(o.version) FROM history o WHERE o.namespace = m.namespace AND o.id = m.id
             AND o.forgotten_at IS NULL AND o.text <> m.text)),
    m.updated_at)
WHERE m.version > 1 AND m.part = 0 AND EXISTS (
    SELECT FROM history h WHERE h.namespace = m.namespace AND h.id = m.id AND h.forgotten_at IS NULL
        AND h.text <> m.text);

-- Memories whose links are not made yet: noted with what has made them due, taken away with the links. What a process
-- that ended in between has left, the next one finds.
CREATE TABLE uncompared (
    namespace text COLLATE "C" NOT NULL,
    ord       bigint NOT NULL,
    at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (namespace, ord)
);

-- Of what links were made or taken away, with a comma between them.
ALTER TABLE change ADD types text COLLATE "C";
