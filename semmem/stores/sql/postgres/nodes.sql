-- nodes_extension --
-- Return the version of Citus in this database, and that which the server offers; NULL where it is missing.
SELECT (SELECT extversion FROM pg_extension WHERE extname = 'citus'),
       (SELECT default_version FROM pg_available_extensions WHERE name = 'citus');

-- nodes_known --
-- Return whether this database has Citus.
SELECT to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL;

-- nodes_coordinator --
-- Return whether this server is the coordinator, the only one that may change tables; whether it knows any node; whether
-- one of these takes shards; and the coordinator's address.
SELECT citus_is_coordinator(), count(*) > 0, count(*) FILTER (WHERE shouldhaveshards) > 0,
       max(nodename || ':' || nodeport) FILTER (WHERE groupid = 0)
FROM pg_dist_node;

-- nodes_distributed --
-- Return whether the store lies on the nodes.
SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass('semmem.memory'));

-- nodes_tables --
-- List every table with its first column, whether it lies on the nodes, and the bytes that it takes beside them, of which
-- some are rows or none.
SELECT c.relname, a.attname, p.logicalrelid IS NOT NULL, pg_total_relation_size(c.oid), pg_relation_size(c.oid) > 0
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'semmem'
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = 1
LEFT JOIN pg_dist_partition p ON p.logicalrelid = c.oid
WHERE c.relkind = 'r' AND NOT c.relispartition ORDER BY c.relname COLLATE "C";

-- nodes_settings --
-- Change tables one after the other on each node, and wait as long as it takes, in this transaction.
SET LOCAL citus.multi_shard_modify_mode TO 'sequential'; SET LOCAL citus.enable_unsafe_triggers TO on; SET LOCAL statement_timeout TO 0;
SET LOCAL idle_in_transaction_session_timeout TO 0;

-- nodes_everywhere --
-- Keep a table whole on every node.
SELECT create_reference_table(%(table)s::regclass);

-- nodes_first --
-- Spread the first table over the nodes by its namespace.
SELECT create_distributed_table(%(table)s::regclass, 'namespace', colocate_with => 'none');

-- nodes_beside --
-- Spread a table by its namespace, the rows of a namespace on the node that has its memories.
SELECT create_distributed_table(%(table)s::regclass, 'namespace', colocate_with => 'semmem.memory');

-- nodes_lock --
-- Let writers wait, and readers go on.
LOCK TABLE {tables} IN EXCLUSIVE MODE;

-- nodes_left_may --
-- Let this transaction delete the rows of the audit that lie beside the nodes, which the table refuses otherwise.
SET LOCAL semmem.audit_before TO 'infinity';

-- nodes_left --
-- Delete the rows of a table that lie beside the nodes since it was distributed, and that nobody reads.
SELECT truncate_local_data_after_distributing_table(%(table)s::regclass);

-- nodes_each --
-- List the nodes that hold shards of the memories, each with their number, and the bytes of all tables there.
SELECT s.nodename || ':' || s.nodeport, count(*) FILTER (WHERE c.relname = 'memory'), coalesce(sum(s.shard_size), 0)::bigint
FROM citus_shards s JOIN pg_class c ON c.oid = s.table_name JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'semmem' AND s.citus_table_type = 'distributed' GROUP BY 1 ORDER BY 1;

-- nodes_of --
-- Return the node that holds a namespace, from the catalogue, which every node has; citus_shards would ask all for sizes.
SELECT n.nodename || ':' || n.nodeport FROM pg_dist_placement p JOIN pg_dist_node n USING (groupid)
WHERE p.shardid = get_shard_id_for_distribution_column('semmem.memory'::regclass, %(namespace)s::text)
  AND n.noderole = 'primary';
