-- Change sequence at which the space was last forgotten as a whole: tombstones up to it keep nothing from being imported anew.
ALTER TABLE spaces ADD COLUMN erased INTEGER NOT NULL DEFAULT 0;
