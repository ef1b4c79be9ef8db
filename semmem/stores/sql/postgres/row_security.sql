-- row_security_tables --
-- List the tables with a namespace: whether row-level security is on, and whether the policy of semmem is there.
SELECT c.relname, c.relrowsecurity,
       EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'of_permitted_namespaces')
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'namespace' AND NOT a.attisdropped
WHERE c.relnamespace = to_regnamespace('semmem') AND c.relkind IN ('r', 'p') ORDER BY c.relname COLLATE "C";

-- row_security_any --
-- Return whether row-level security is on for any table.
SELECT EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace('semmem') AND relrowsecurity);

-- row_security_binds --
-- Return the name of this user, and whether policies of the memories bind it: not a superuser, and not the owner.
SELECT current_user::text, coalesce((SELECT row_security_active(c.oid) FROM pg_class c
    WHERE c.relnamespace = to_regnamespace('semmem') AND c.relname = 'memory'), false);

-- row_security_on --
-- Let those who do not own a table see and write the rows of the permitted namespaces alone: those in the setting
-- semmem.namespaces, an array, or of all where that is 'all'; none where it is not set. Each is read once for a statement.
DROP POLICY IF EXISTS of_permitted_namespaces ON {table};
CREATE POLICY of_permitted_namespaces ON {table} USING (
    (SELECT current_setting('semmem.namespaces', true) = 'all')
    OR namespace = ANY ((SELECT CASE WHEN current_setting('semmem.namespaces', true) LIKE '{{%'
                                     THEN current_setting('semmem.namespaces', true) END::text[])::text[]));
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;

-- row_security_off --
-- Let everybody who may read a table see all of its rows again.
ALTER TABLE {table} DISABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS of_permitted_namespaces ON {table};

-- row_security_lock --
-- Wait for those who read or write the table no longer than this, in this transaction, while others wait behind.
SET LOCAL lock_timeout TO '3s';

-- incoming_table --
-- Make an empty table of this session for rows of COPY, which PostgreSQL takes into no table with policies.
CREATE TEMPORARY TABLE IF NOT EXISTS {incoming} AS SELECT * FROM {table} WITH NO DATA;

-- incoming_move --
-- Insert the rows that have come, in their order.
INSERT INTO {table} ({columns}) SELECT {columns} FROM {incoming};

-- incoming_empty --
-- Remove them from the table of this session.
TRUNCATE {incoming};
