-- A namespace that gets another name, or is copied, in many transactions.

-- state: filling, it is the new name, and nobody sees it yet; moving, it is the old name, which is read and not written;
-- emptying, its memories have the new name, and its rows go. other is the other name.
-- still is what its numbers add up to meanwhile: who writes to a namespace takes a number, and is refused here.
ALTER TABLE namespace ADD state text COLLATE "C", ADD other text COLLATE "C", ADD still bigint,
    ADD CONSTRAINT namespace_is_still CHECK (still = ords + segments + changes + revision);
