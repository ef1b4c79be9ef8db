-- Who a memory comes from: user, agent, tool or imported; NULL where nobody said.
ALTER TABLE memory ADD source_type text COLLATE "C";
ALTER TABLE history ADD source_type text COLLATE "C";
