-- API keys by the hashes of their secrets. Rows stay: what was revoked must not come back.
CREATE TABLE keys (
    tenant           text   COLLATE "C" NOT NULL,
    id               uuid   NOT NULL,
    created_at       bigint NOT NULL,
    expires_at       bigint,
    last_used_at     bigint,
    revoked_at       bigint,
    calls_per_minute bigint,
    rights           smallint NOT NULL, -- bits
    operator         boolean  NOT NULL,
    replaced_by      uuid,
    hash             bytea  NOT NULL,
    label            text   NOT NULL,
    spaces           text   NOT NULL,   -- JSON
    PRIMARY KEY (tenant, id)
);
CREATE UNIQUE INDEX keys_by_hash ON keys (hash);
CREATE INDEX keys_by_age ON keys (tenant, created_at, id);

-- What tenants may use; no row means no limit.
CREATE TABLE quotas (
    tenant           text   COLLATE "C" PRIMARY KEY,
    calls_per_minute bigint,
    turns            bigint
);

-- Who did what, and which turns entered which prompt: names and ids only.
CREATE TABLE audit (
    tenant     text   COLLATE "C" NOT NULL,
    at         bigint NOT NULL,
    id         bigint GENERATED ALWAYS AS IDENTITY,
    kind       text   COLLATE "C" NOT NULL,
    caller     text   NOT NULL,
    request_id text   NOT NULL,
    space      text,
    key        uuid,
    turns      text, -- JSON, absent where there is none
    detail     text, -- JSON, absent where there is none
    PRIMARY KEY (tenant, at, id)
);
CREATE INDEX audit_by_age ON audit (at);

DO $$
DECLARE
    protected text;
BEGIN
    FOREACH protected IN ARRAY ARRAY['keys', 'quotas', 'audit'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', protected);
        EXECUTE format('CREATE POLICY own_tenant ON %I
            USING (tenant = nullif(current_setting(''memfleet.tenant'', true), ''''))', protected);
    END LOOP;
END $$;

GRANT SELECT, INSERT ON keys TO memfleet_app;
GRANT UPDATE (expires_at, last_used_at, revoked_at, replaced_by) ON keys TO memfleet_app;
GRANT SELECT, INSERT, UPDATE ON quotas TO memfleet_app;
-- Nobody changes the log; only what is too old is removed, below.
GRANT SELECT, INSERT ON audit TO memfleet_app;

GRANT SELECT ON keys TO memfleet_sweep;
GRANT SELECT (tenant) ON quotas TO memfleet_sweep;
GRANT SELECT (at), DELETE ON audit TO memfleet_sweep;
CREATE POLICY every_tenant ON keys FOR SELECT TO memfleet_sweep USING (true);
CREATE POLICY every_tenant ON quotas FOR SELECT TO memfleet_sweep USING (true);
CREATE POLICY every_tenant ON audit TO memfleet_sweep USING (true);

-- Whose key it is cannot be known before it is found. Who asks has its secret.
CREATE FUNCTION find_key(hash bytea)
    RETURNS TABLE (tenant text, id uuid, label text, rights smallint, spaces text, operator boolean, calls_per_minute bigint,
        created_at bigint, expires_at bigint, last_used_at bigint, revoked_at bigint, replaced_by uuid)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = memfleet, pg_temp
AS $$
    SELECT k.tenant, k.id, k.label, k.rights, k.spaces, k.operator, k.calls_per_minute,
        k.created_at, k.expires_at, k.last_used_at, k.revoked_at, k.replaced_by
    FROM keys k WHERE k.hash = $1
$$;

-- Whether there ever was a key.
CREATE FUNCTION has_keys() RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = memfleet, pg_temp
AS $$ SELECT EXISTS (SELECT FROM keys) $$;

-- Names of tenants, for operators.
CREATE FUNCTION tenants_after(after text, most bigint) RETURNS TABLE (tenant text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = memfleet, pg_temp
AS $$
    SELECT t.tenant FROM (
        SELECT k.tenant FROM keys k UNION SELECT q.tenant FROM quotas q
        UNION SELECT s.tenant FROM spaces s WHERE s.name IS NOT NULL) t
    WHERE t.tenant > $1 ORDER BY t.tenant LIMIT $2
$$;

-- Removes as many of the records that are older, and more of the same instant.
CREATE FUNCTION expire_audit(before bigint, most bigint) RETURNS bigint
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = memfleet, pg_temp
AS $$
    WITH oldest AS (SELECT max(o.at) AS at FROM (SELECT at FROM audit WHERE at < $1 ORDER BY at LIMIT $2) o),
        gone AS (DELETE FROM audit a WHERE a.at <= (SELECT at FROM oldest) RETURNING 1)
    SELECT count(*) FROM gone
$$;

REVOKE ALL ON FUNCTION find_key, has_keys, tenants_after, expire_audit FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_key, has_keys, tenants_after, expire_audit TO memfleet_app;
GRANT CREATE ON SCHEMA memfleet TO memfleet_sweep;
ALTER FUNCTION find_key OWNER TO memfleet_sweep;
ALTER FUNCTION has_keys OWNER TO memfleet_sweep;
ALTER FUNCTION tenants_after OWNER TO memfleet_sweep;
ALTER FUNCTION expire_audit OWNER TO memfleet_sweep;
REVOKE CREATE ON SCHEMA memfleet FROM memfleet_sweep;
