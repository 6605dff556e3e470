-- What a turn says again of others, as JSON; absent where it says nothing again.
ALTER TABLE turns ADD COLUMN echoes TEXT;
