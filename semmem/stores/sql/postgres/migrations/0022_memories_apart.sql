-- Memories that are not one indexed row are counted without reading the others: split ones, their parts, sensitive ones.
CREATE INDEX memory_apart ON memory (namespace, part, parts) WHERE part > 0 OR parts <> 0;
