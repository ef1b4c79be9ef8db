-- Lists by last change and by last access read the page they return, and not their whole namespace. The former index
-- also has what is counted of a namespace.
DROP INDEX memory_changed;
CREATE INDEX memory_by_change ON memory (namespace, updated_at, created_at, id, part) WHERE part = 0;
CREATE INDEX access_by_time ON access (namespace, last_at);
