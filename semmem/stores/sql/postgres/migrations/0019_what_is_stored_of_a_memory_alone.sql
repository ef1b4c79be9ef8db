-- What is stored of a memory depends on that memory alone: no names wait for others. Beside its forward entries stand the
-- runs of its text that are names where another memory is about them.
ALTER TABLE forward ADD candidates bytea NOT NULL DEFAULT '';
ALTER TABLE forward ALTER candidates SET STORAGE EXTERNAL;
DROP TABLE alias_change;

-- A key that a memory is about is found with those that several memories have.
UPDATE posting SET lone = false WHERE lone AND subjects > 0;
INSERT INTO posting (namespace, key, segment, kind, n, subjects, low, high, name, entries, lone)
SELECT l.namespace, u.key, 0, get_byte(l.kinds, u.at::int - 1),
       (get_byte(e.entry, 4) + get_byte(e.entry, 5) + get_byte(e.entry, 8) > 0)::int, 1, o.ord, o.ord, u.name, e.entry, false
FROM lone_posting l CROSS JOIN LATERAL unnest(l.keys, l.names) WITH ORDINALITY AS u(key, name, at)
CROSS JOIN LATERAL (SELECT substr(l.entries, 12 * u.at::int - 11, 12) AS entry) AS e
CROSS JOIN LATERAL (SELECT get_byte(e.entry, 0) | (get_byte(e.entry, 1) << 8) | (get_byte(e.entry, 2) << 16)
                           | (get_byte(e.entry, 3)::bigint << 24) AS ord) AS o
WHERE get_byte(e.entry, 9) > 0
  AND NOT EXISTS (SELECT FROM posting p WHERE p.namespace = l.namespace AND p.key = u.key);
