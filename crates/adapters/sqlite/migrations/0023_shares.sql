-- Spaces that a tenant may have.
ALTER TABLE quotas ADD COLUMN spaces INTEGER;

-- Exchanges and conversations of a tenant that end first.
CREATE INDEX exchanges_by_tenant ON exchanges (tenant, expires_at);
CREATE INDEX conversations_by_tenant ON conversations (tenant, expires_at);
