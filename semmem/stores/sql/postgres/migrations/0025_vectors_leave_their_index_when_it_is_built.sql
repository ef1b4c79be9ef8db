-- A vector that goes stays in the index of vectors, where searches pass it over, until maintain builds that index anew:
-- to take it out, pgvector looks for other neighbours of all vectors linked with it, which takes as long as building the
-- index over 200 vectors. So neither maintain nor autovacuum takes any out.
ALTER TABLE embedding SET (vacuum_index_cleanup = off);
ALTER TABLE embedding_next SET (vacuum_index_cleanup = off);
