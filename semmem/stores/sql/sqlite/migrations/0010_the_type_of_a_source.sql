-- Who a memory comes from: user, agent, tool or imported; NULL where nobody said.
ALTER TABLE memory ADD COLUMN source_type TEXT;
ALTER TABLE history ADD COLUMN source_type TEXT;
