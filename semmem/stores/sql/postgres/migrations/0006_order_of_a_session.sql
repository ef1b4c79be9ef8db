-- A session is in the order of its positions, where they are given; what has none follows, by time.
DROP INDEX memory_by_session;
CREATE INDEX memory_by_session
    ON memory (namespace, session, (coalesce(position, 9223372036854775807)), created_at, id, part)
    WHERE session IS NOT NULL;

-- The last memories of an author are found without reading the others: what they follow says whether the author takes turns.
DROP INDEX memory_by_author;
CREATE INDEX memory_by_author ON memory (namespace, author_key, created_at, id, part) INCLUDE (author)
    WHERE author_key IS NOT NULL;
