-- no-transaction

-- Retention: the turns of a space by their time, versions that are not current any more, and
-- current ones that end.
CREATE INDEX CONCURRENTLY turns_by_time ON turns (tenant, space, (coalesce(event_time, recorded_at)), acceptance, ordinal);

CREATE INDEX CONCURRENTLY derivations_superseded ON derivations (tenant, space, known_until) WHERE known_until IS NOT NULL;

CREATE INDEX CONCURRENTLY derivations_ended ON derivations (tenant, space, valid_until) WHERE known_until IS NULL AND valid_until IS NOT NULL;

-- Chronicles: current versions by when they begin.
CREATE INDEX CONCURRENTLY derivations_by_time ON derivations (tenant, space, coalesce(valid_from, known_from), first) WHERE known_until IS NULL;
