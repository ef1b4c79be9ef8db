-- application --
-- Whose file this is, 0 where nobody said.
PRAGMA application_id;

-- tables --
-- Nothing at all in a new file.
SELECT count(*) FROM sqlite_master;

-- migration_exists --
-- No row in a file that semmem has not seen yet.
SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'migration';

-- migration_table --
-- What was applied and when.
CREATE TABLE migration (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);

-- migration_number --
-- The schema is as new as the last migration applied.
SELECT coalesce(max(number), 0) FROM migration;

-- migration_record --
-- In the same transaction as the migration itself.
INSERT INTO migration (number, name) VALUES (:number, :name);
