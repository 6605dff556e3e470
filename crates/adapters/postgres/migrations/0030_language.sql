-- The embedding space that a memory space moves to because its model reads the language of the space, by its hash; absent where the
-- operator's order alone moves it.
ALTER TABLE spaces ADD COLUMN IF NOT EXISTS language_embedding bigint;
