-- no-transaction

-- Exchanges and conversations of a tenant that end first.
CREATE INDEX CONCURRENTLY exchanges_by_tenant ON exchanges (tenant, expires_at);

CREATE INDEX CONCURRENTLY conversations_by_tenant ON conversations (tenant, expires_at);
