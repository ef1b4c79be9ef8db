-- Lists by importance read the page they return, in the order of an index, and not their whole namespace.
CREATE INDEX memory_by_importance ON memory (namespace, importance, created_at, id) WHERE part = 0;
