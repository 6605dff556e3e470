-- What conversations without a name are known again by. They name no words, only digests of them.
CREATE TABLE conversations (
    tenant     text   COLLATE "C" NOT NULL,
    session    text   COLLATE "C" NOT NULL,
    space      text   COLLATE "C" NOT NULL,
    caller     text   COLLATE "C" NOT NULL,
    opening    text   COLLATE "C" NOT NULL,
    key        text   COLLATE "C" NOT NULL,
    heard_at   bigint NOT NULL,
    expires_at bigint NOT NULL,
    lineage    text   NOT NULL, -- JSON
    state      text   NOT NULL, -- empty where something of the space was forgotten since
    PRIMARY KEY (tenant, session)
) WITH (fillfactor = 70);
CREATE INDEX conversations_by_key ON conversations (tenant, space, caller, key, heard_at);
CREATE INDEX conversations_by_opening ON conversations (tenant, space, caller, opening, heard_at);
CREATE INDEX conversations_in_order ON conversations (tenant, space, caller, heard_at);
CREATE INDEX conversations_by_end ON conversations (expires_at);

ALTER TABLE conversations ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON conversations
    USING (tenant = nullif(current_setting('memfleet.tenant', true), ''));
GRANT SELECT, INSERT, UPDATE, DELETE ON conversations TO memfleet_app;

GRANT SELECT (tenant, session, expires_at), DELETE ON conversations TO memfleet_sweep;
CREATE POLICY every_tenant ON conversations TO memfleet_sweep USING (true);

-- Removes as many of the conversations that have expired. One that is heard of meanwhile stays.
CREATE FUNCTION expire_conversations(now bigint, most bigint) RETURNS bigint
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = memfleet, pg_temp
AS $$
    WITH first AS (SELECT c.tenant, c.session FROM conversations c WHERE c.expires_at <= $1 ORDER BY c.expires_at LIMIT $2),
        gone AS (DELETE FROM conversations c USING first f
            WHERE c.tenant = f.tenant AND c.session = f.session AND c.expires_at <= $1 RETURNING c.session)
    SELECT count(*) FROM gone
$$;

REVOKE ALL ON FUNCTION expire_conversations FROM PUBLIC;
GRANT EXECUTE ON FUNCTION expire_conversations TO memfleet_app;
GRANT CREATE ON SCHEMA memfleet TO memfleet_sweep;
ALTER FUNCTION expire_conversations OWNER TO memfleet_sweep;
REVOKE CREATE ON SCHEMA memfleet FROM memfleet_sweep;
