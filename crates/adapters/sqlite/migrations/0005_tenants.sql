-- Whose a row is: tenants share the queue. What cannot be read belongs to nobody.
ALTER TABLE queue ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
ALTER TABLE dead_letters ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
UPDATE queue SET tenant = CASE WHEN json_valid(payload)
    THEN coalesce(CAST(json_extract(payload, '$.scope.tenant') AS TEXT), '') ELSE '' END;
UPDATE dead_letters SET tenant = CASE WHEN json_valid(payload)
    THEN coalesce(CAST(json_extract(payload, '$.scope.tenant') AS TEXT), '') ELSE '' END;
ALTER TABLE queue ADD COLUMN bytes INTEGER GENERATED ALWAYS AS (length(CAST(payload AS BLOB))) VIRTUAL;

-- Rows of a tenant in order, and all that the depth is made of.
DROP INDEX queue_depth;
CREATE INDEX queue_by_tenant ON queue (tenant, acceptance, turns, bytes, accepted_at);
CREATE INDEX dead_letters_by_tenant ON dead_letters (tenant);
