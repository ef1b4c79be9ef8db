-- application --
-- Return the application id of the file, 0 where there is none.
PRAGMA application_id;

-- tables --
-- Count the tables and other objects of the file; a new file has none.
SELECT count(*) FROM sqlite_master;

-- migration_exists --
-- Return the table of migrations; no row in a file without semmem's tables.
SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'migration';

-- migration_table --
-- Create the record of migrations.
CREATE TABLE migration (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);

-- migration_number --
-- Return the number of the last migration applied, which is the schema's number.
SELECT coalesce(max(number), 0) FROM migration;

-- migration_record --
-- Record a migration, in the transaction of the migration itself.
INSERT INTO migration (number, name) VALUES (:number, :name);
