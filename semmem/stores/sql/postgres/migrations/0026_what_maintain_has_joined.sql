-- maintain joins and packs the postings of those namespaces alone that have got some since it did so last.

ALTER TABLE namespace ADD settled bigint NOT NULL DEFAULT 0; -- the last segment of postings that maintain has joined
