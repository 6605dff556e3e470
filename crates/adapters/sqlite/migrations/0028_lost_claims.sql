-- Claims of a space since one was given back: those before the last are lost, as their process ended.
ALTER TABLE progress ADD COLUMN claims INTEGER NOT NULL DEFAULT 0;
