-- What a forget leaves of an exchange, as JSON.
ALTER TABLE exchanges ADD COLUMN tally text NOT NULL DEFAULT '';
