-- The number of keys of a pending memory that waits for its bulk, 0 for others: the writer of the bulk folds many
-- batches together.
ALTER TABLE pending ADD bulk integer NOT NULL DEFAULT 0;
