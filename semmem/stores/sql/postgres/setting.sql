-- setting_list --
-- What people changed for a namespace, or for all of them; recalls read it with memory_size.
SELECT namespace, name, value FROM namespace_setting
WHERE %(namespace)s::text IS NULL OR namespace = %(namespace)s ORDER BY namespace, name;

-- setting_set --
-- The last one to set it wins.
INSERT INTO namespace_setting (namespace, name, value, changed_at) VALUES (%(namespace)s, %(name)s, %(value)s, now())
ON CONFLICT (namespace, name) DO UPDATE SET value = excluded.value, changed_at = excluded.changed_at;

-- setting_unset --
-- Back to what the program or its file says.
DELETE FROM namespace_setting WHERE namespace = %(namespace)s AND name = ANY(%(names)s);
