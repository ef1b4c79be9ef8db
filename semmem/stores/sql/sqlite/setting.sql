-- setting_list --
-- Of one namespace, or of all of them.
SELECT namespace, name, value FROM namespace_setting
WHERE :namespace IS NULL OR namespace = :namespace ORDER BY namespace, name;

-- setting_set --
-- In every process from its next recall on.
INSERT INTO namespace_setting (namespace, name, value) VALUES (:namespace, :name, :value)
ON CONFLICT (namespace, name) DO UPDATE SET value = excluded.value;

-- setting_unset --
-- The program's own counts again.
DELETE FROM namespace_setting WHERE namespace = :namespace AND name = :name;

-- settings_together --
-- Of the namespaces of one recall, as one JSON array; NULL where there are none.
SELECT nullif(json_group_array(json_array(namespace, name, json(value))), '[]')
FROM (SELECT * FROM namespace_setting WHERE namespace IN (SELECT value FROM json_each(:namespaces))
      ORDER BY namespace, name);
