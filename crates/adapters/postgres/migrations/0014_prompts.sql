-- Documents of tenants in versions, of which none is changed.
CREATE TABLE settings (
    tenant  text   COLLATE "C" NOT NULL,
    kind    text   COLLATE "C" NOT NULL,
    space   text   COLLATE "C" NOT NULL, -- empty where it is for all of the tenant's
    name    text   COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    at      bigint NOT NULL,
    author  text   NOT NULL,
    body    bytea,                       -- UTF-8; absent where this version removed it
    PRIMARY KEY (tenant, kind, space, name, version)
);
CREATE INDEX settings_by_space ON settings (tenant, space);

-- How often the settings of a tenant were changed. Who changes them holds the row, so that versions follow each other.
CREATE TABLE setting_revisions (
    tenant   text   COLLATE "C" PRIMARY KEY,
    revision bigint NOT NULL
);

-- What gateways know of exchanges under way.
CREATE TABLE exchanges (
    tenant     text    COLLATE "C" NOT NULL,
    id         bigint  GENERATED ALWAYS AS IDENTITY,
    session    text    COLLATE "C" NOT NULL,
    name       text    COLLATE "C" NOT NULL,
    version    bigint  NOT NULL,
    tokens     bigint  NOT NULL,
    updated_at bigint  NOT NULL,
    expires_at bigint  NOT NULL,
    forgotten  boolean NOT NULL,
    turns      text    NOT NULL, -- JSON
    state      bytea   NOT NULL, -- UTF-8
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, session, name)
) WITH (fillfactor = 70);
CREATE INDEX exchanges_by_end ON exchanges (expires_at);

-- Whose words the states hold.
CREATE TABLE exchange_turns (
    tenant   text   COLLATE "C" NOT NULL,
    space    text   COLLATE "C" NOT NULL,
    turn     uuid   NOT NULL,
    exchange bigint NOT NULL,
    PRIMARY KEY (tenant, space, turn, exchange)
);
CREATE INDEX exchange_turns_by_exchange ON exchange_turns (tenant, exchange);

-- What entered which prompt.
CREATE TABLE injections (
    tenant     text    COLLATE "C" NOT NULL,
    id         uuid    NOT NULL,
    at         bigint  NOT NULL,
    expires_at bigint,
    forgotten  boolean NOT NULL,
    caller     text    NOT NULL,
    request_id text    NOT NULL,
    session    text    COLLATE "C",
    exchange   text    COLLATE "C",
    decision   text    NOT NULL,
    spaces     text    NOT NULL, -- JSON
    turns      text    NOT NULL, -- JSON
    block_hash bytea,
    block      bytea,            -- UTF-8
    record     bytea   NOT NULL, -- UTF-8
    PRIMARY KEY (tenant, id)
);
CREATE INDEX injections_in_order ON injections (tenant, at, id);
CREATE INDEX injections_by_session ON injections (tenant, session, at, id) WHERE session IS NOT NULL;
CREATE INDEX injections_by_end ON injections (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE injection_spaces (
    tenant text   COLLATE "C" NOT NULL,
    space  text   COLLATE "C" NOT NULL,
    at     bigint NOT NULL,
    id     uuid   NOT NULL,
    PRIMARY KEY (tenant, space, at, id)
);
CREATE INDEX injection_spaces_by_injection ON injection_spaces (tenant, id);

CREATE TABLE injection_turns (
    tenant text   COLLATE "C" NOT NULL,
    space  text   COLLATE "C" NOT NULL,
    turn   uuid   NOT NULL,
    at     bigint NOT NULL,
    id     uuid   NOT NULL,
    PRIMARY KEY (tenant, space, turn, at, id)
);
CREATE INDEX injection_turns_by_injection ON injection_turns (tenant, id);

-- Few are: what expires looks here first.
CREATE INDEX spaces_held ON spaces (tenant, name) WHERE held_since IS NOT NULL;

DO $$
DECLARE
    protected text;
BEGIN
    FOREACH protected IN ARRAY ARRAY['settings', 'setting_revisions', 'exchanges', 'exchange_turns',
            'injections', 'injection_spaces', 'injection_turns'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', protected);
        EXECUTE format('CREATE POLICY own_tenant ON %I
            USING (tenant = nullif(current_setting(''memfleet.tenant'', true), ''''))', protected);
    END LOOP;
END $$;

-- Nobody changes a version; a space that is forgotten takes its own along.
GRANT SELECT, INSERT, DELETE ON settings TO memfleet_app;
GRANT SELECT, INSERT, UPDATE ON setting_revisions, exchanges TO memfleet_app;
GRANT SELECT, INSERT, DELETE ON exchange_turns TO memfleet_app;
-- Nobody changes what entered a prompt, but that its words may be forgotten.
GRANT SELECT, INSERT ON injections, injection_spaces, injection_turns TO memfleet_app;
GRANT UPDATE (block, block_hash, forgotten) ON injections TO memfleet_app;

GRANT SELECT (tenant, id, expires_at), DELETE ON exchanges TO memfleet_sweep;
GRANT SELECT (tenant, exchange), DELETE ON exchange_turns TO memfleet_sweep;
GRANT SELECT (tenant, id, expires_at), DELETE ON injections TO memfleet_sweep;
GRANT SELECT (tenant, space, id), DELETE ON injection_spaces TO memfleet_sweep;
GRANT SELECT (tenant, id), DELETE ON injection_turns TO memfleet_sweep;
CREATE POLICY every_tenant ON exchanges TO memfleet_sweep USING (true);
CREATE POLICY every_tenant ON exchange_turns TO memfleet_sweep USING (true);
CREATE POLICY every_tenant ON injections TO memfleet_sweep USING (true);
CREATE POLICY every_tenant ON injection_spaces TO memfleet_sweep USING (true);
CREATE POLICY every_tenant ON injection_turns TO memfleet_sweep USING (true);

-- Removes as many of the exchanges that have expired. One that is written to meanwhile stays.
CREATE FUNCTION expire_exchanges(now bigint, most bigint) RETURNS bigint
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = memfleet, pg_temp
AS $$
    WITH first AS (SELECT e.tenant, e.id FROM exchanges e WHERE e.expires_at <= $1 ORDER BY e.expires_at LIMIT $2),
        gone AS (DELETE FROM exchanges e USING first f
            WHERE e.tenant = f.tenant AND e.id = f.id AND e.expires_at <= $1 RETURNING e.tenant, e.id),
        named AS (DELETE FROM exchange_turns t USING gone g WHERE t.tenant = g.tenant AND t.exchange = g.id)
    SELECT count(*) FROM gone
$$;

-- The same of injections, but for those that name a space on legal hold.
CREATE FUNCTION expire_injections(now bigint, most bigint) RETURNS bigint
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = memfleet, pg_temp
AS $$
    WITH first AS (SELECT i.tenant, i.id FROM injections i
            WHERE i.expires_at <= $1 AND NOT EXISTS (
                SELECT FROM injection_spaces n JOIN spaces s ON s.tenant = n.tenant AND s.name = n.space
                WHERE n.tenant = i.tenant AND n.id = i.id AND s.held_since IS NOT NULL)
            ORDER BY i.expires_at LIMIT $2),
        gone AS (DELETE FROM injections i USING first f WHERE i.tenant = f.tenant AND i.id = f.id RETURNING i.tenant, i.id),
        placed AS (DELETE FROM injection_spaces n USING gone g WHERE n.tenant = g.tenant AND n.id = g.id),
        named AS (DELETE FROM injection_turns t USING gone g WHERE t.tenant = g.tenant AND t.id = g.id)
    SELECT count(*) FROM gone
$$;

REVOKE ALL ON FUNCTION expire_exchanges, expire_injections FROM PUBLIC;
GRANT EXECUTE ON FUNCTION expire_exchanges, expire_injections TO memfleet_app;
GRANT CREATE ON SCHEMA memfleet TO memfleet_sweep;
ALTER FUNCTION expire_exchanges OWNER TO memfleet_sweep;
ALTER FUNCTION expire_injections OWNER TO memfleet_sweep;
REVOKE CREATE ON SCHEMA memfleet FROM memfleet_sweep;
