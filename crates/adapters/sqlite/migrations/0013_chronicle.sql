-- Chronicles: what is known now, by when it begins.
CREATE INDEX derivations_by_time ON derivations (space, coalesce(valid_from, known_from), first) WHERE known_until IS NULL;
