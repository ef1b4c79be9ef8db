-- setting_list --
-- Return the search settings of one namespace, or of all; recalls read them with memory_size.
SELECT namespace, name, value FROM namespace_setting
WHERE %(namespace)s::text IS NULL OR namespace = %(namespace)s ORDER BY namespace, name;

-- setting_hold --
-- Wait for the end of a rename or the beginning of a drop, which take the settings: they take all of a change, or nothing.
SELECT FROM namespace WHERE namespace = %(namespace)s FOR KEY SHARE;

-- setting_set --
-- Set a search setting of a namespace; the last writer wins.
INSERT INTO namespace_setting (namespace, name, value, changed_at) VALUES (%(namespace)s, %(name)s, %(value)s, now())
ON CONFLICT (namespace, name) DO UPDATE SET value = excluded.value, changed_at = excluded.changed_at;

-- setting_unset --
-- Delete a search setting of a namespace, so that the program's applies.
DELETE FROM namespace_setting WHERE namespace = %(namespace)s AND name = ANY(%(names)s);
