-- What happened and has not been told yet, written in the transaction in which it happened. Within a space numbers follow commits,
-- since whoever writes one holds the lock of the space. No row says what was said.
CREATE TABLE outbox (
    number      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant      text   COLLATE "C" NOT NULL,
    space       text   COLLATE "C" NOT NULL,   -- its name: the row of a space that was forgotten has none
    kind        text   COLLATE "C" NOT NULL,
    after       bigint NOT NULL,               -- change sequence of the space before …
    change      bigint NOT NULL,               -- … and with it
    happened_at bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1e6)::bigint
);

ALTER TABLE outbox ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON outbox USING (tenant = nullif(current_setting('memfleet.tenant', true), ''));
GRANT INSERT ON outbox TO memfleet_app;

-- The relay tells of all tenants, and sees nothing else of them.
GRANT SELECT, DELETE ON outbox TO memfleet_sweep;
CREATE POLICY every_tenant ON outbox TO memfleet_sweep USING (true);

-- The oldest of what has not been told.
CREATE FUNCTION outbox_waiting(most bigint)
    RETURNS TABLE (number bigint, tenant text, space text, kind text, after bigint, change bigint, happened_at bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = memfleet, pg_temp
AS $$
    SELECT o.number, o.tenant, o.space, o.kind, o.after, o.change, o.happened_at FROM outbox o ORDER BY o.number LIMIT $1
$$;

-- Takes out what was told.
CREATE FUNCTION outbox_told(numbers bigint[]) RETURNS void
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = memfleet, pg_temp
AS $$
    DELETE FROM outbox o WHERE o.number = ANY ($1)
$$;

-- How much waits, and since when.
CREATE FUNCTION outbox_backlog() RETURNS TABLE (events bigint, oldest bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = memfleet, pg_temp
AS $$
    SELECT count(*), min(o.happened_at) FROM outbox o
$$;

REVOKE ALL ON FUNCTION outbox_waiting, outbox_told, outbox_backlog FROM PUBLIC;
GRANT EXECUTE ON FUNCTION outbox_waiting, outbox_told, outbox_backlog TO memfleet_app;
GRANT CREATE ON SCHEMA memfleet TO memfleet_sweep;
ALTER FUNCTION outbox_waiting OWNER TO memfleet_sweep;
ALTER FUNCTION outbox_told OWNER TO memfleet_sweep;
ALTER FUNCTION outbox_backlog OWNER TO memfleet_sweep;
REVOKE CREATE ON SCHEMA memfleet FROM memfleet_sweep;
