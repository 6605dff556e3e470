-- A tenant's spaces are served in turn: the index says the space of a row.
DROP INDEX queue_by_tenant;
CREATE INDEX queue_by_tenant ON queue (tenant, acceptance, space_key, turns, bytes, accepted_at);
