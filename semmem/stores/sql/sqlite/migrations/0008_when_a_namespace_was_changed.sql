-- How many memories a namespace has, and when one of them was changed last: counted without reading their texts.
CREATE INDEX memory_changed ON memory (namespace, updated_at, part) WHERE part = 0;
