-- Which version of the splitter, of the likeness keys and of the extractor made what of a namespace is derived.

-- A few pairs a namespace, in order, as JSON: from this ord on, made by this. What was there before counts as made by the
-- versions of the day of this migration, so nothing is made anew for it.
ALTER TABLE namespace ADD COLUMN makers TEXT;
UPDATE namespace SET makers = '[[1, "1 1 2 rules"]]';

-- Nobody wrote or read these: what is forgotten softly stands in history, and counts in access.
ALTER TABLE memory DROP COLUMN forgotten_at;
ALTER TABLE memory DROP COLUMN access_count;
