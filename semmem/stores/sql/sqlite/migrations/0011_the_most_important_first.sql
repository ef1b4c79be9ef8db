-- A list by importance reads its page in the order of an index, and not its whole namespace.
CREATE INDEX memory_by_importance ON memory (namespace, importance, created_at, id) WHERE part = 0;
