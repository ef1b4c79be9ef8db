-- Which version of the splitter, of the likeness keys and of the extractor made what of a namespace is derived.

-- A few pairs a namespace, in order: from this ord on, made by this. What was there before counts as made by the versions
-- of the day of this migration, so nothing is made anew for it.
ALTER TABLE namespace ADD makers jsonb;
UPDATE namespace SET makers = '[[1, "1 1 2 rules"]]';
