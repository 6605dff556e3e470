-- What a forget leaves of an exchange, as JSON.
ALTER TABLE exchanges ADD COLUMN tally TEXT NOT NULL DEFAULT '';
