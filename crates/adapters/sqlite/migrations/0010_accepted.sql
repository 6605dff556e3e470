-- When the batch of a letter was accepted; absent in letters of before this was kept.
ALTER TABLE dead_letters ADD COLUMN accepted_at INTEGER;
