-- setting_list --
-- Return the search settings of one namespace, or of all.
SELECT namespace, name, value FROM namespace_setting
WHERE :namespace IS NULL OR namespace = :namespace ORDER BY namespace, name;

-- setting_set --
-- Set a search setting of a namespace; every process uses it from its next recall on.
INSERT INTO namespace_setting (namespace, name, value) VALUES (:namespace, :name, :value)
ON CONFLICT (namespace, name) DO UPDATE SET value = excluded.value;

-- setting_unset --
-- Delete a search setting of a namespace, so that the program's applies.
DELETE FROM namespace_setting WHERE namespace = :namespace AND name = :name;

-- settings_together --
-- Return the settings of the namespaces of one recall as a JSON array, NULL where there are none, and in which of them
-- memories are linked by somebody (1) or may be superseded (2), by the first links only, so that many others cost
-- nothing.
SELECT nullif(json_group_array(json_array(namespace, name, json(value))), '[]'),
       (SELECT json_group_array(json_array(n.value, (
            SELECT CASE WHEN count(*) = 200 OR max(type = 'supersedes') THEN 2 ELSE max(made_by IS NOT 'semmem') END
            FROM (SELECT type, made_by FROM link WHERE namespace = n.value LIMIT 200))))
        FROM json_each(:namespaces) AS n WHERE EXISTS (SELECT 1 FROM link WHERE namespace = n.value))
FROM (SELECT * FROM namespace_setting WHERE namespace IN (SELECT value FROM json_each(:namespaces))
      ORDER BY namespace, name);
