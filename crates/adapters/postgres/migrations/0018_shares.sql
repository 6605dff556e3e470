-- Number of spaces that a tenant may have.
ALTER TABLE quotas ADD COLUMN spaces bigint;

GRANT SELECT (at) ON injections TO memfleet_sweep;
GRANT CREATE ON SCHEMA memfleet TO memfleet_sweep;
SET LOCAL ROLE memfleet_sweep;

-- Spaces that an agent is behind in: of each tenant the one that waits longest, then the second of each, so that the spaces of one
-- tenant, however many, hold up no other's. Each is found by itself, whatever the planner expects.
CREATE OR REPLACE FUNCTION spaces_behind(stage text, most bigint) RETURNS TABLE (tenant text, name text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = memfleet, pg_temp
AS $$
    SELECT s.tenant, s.name FROM (
        SELECT b.tenant, b.space, b.behind_since, row_number() OVER (PARTITION BY b.tenant ORDER BY b.behind_since) AS place
        FROM progress b WHERE b.stage = $1 AND b.behind_since IS NOT NULL) p
    CROSS JOIN LATERAL (
        SELECT o.tenant, o.name FROM spaces o WHERE o.tenant = p.tenant AND o.id = p.space AND o.name IS NOT NULL LIMIT 1) s
    ORDER BY p.place, p.behind_since LIMIT $2
$$;

-- Removes exchanges of the tenant of the transaction beyond a number, those that end first, but for those that are written to meanwhile.
CREATE FUNCTION bound_exchanges(kept bigint) RETURNS bigint
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = memfleet, pg_temp
AS $$
    WITH beyond AS (SELECT e.id, e.expires_at FROM exchanges e WHERE e.tenant = current_setting('memfleet.tenant') AND e.expires_at <= (
                SELECT l.expires_at FROM exchanges l WHERE l.tenant = current_setting('memfleet.tenant') ORDER BY l.expires_at DESC OFFSET $1 LIMIT 1)
            ORDER BY e.expires_at LIMIT 1000),
        gone AS (DELETE FROM exchanges e USING beyond b
            WHERE e.tenant = current_setting('memfleet.tenant') AND e.id = b.id AND e.expires_at = b.expires_at RETURNING e.id),
        named AS (DELETE FROM exchange_turns t USING gone g WHERE t.tenant = current_setting('memfleet.tenant') AND t.exchange = g.id)
    SELECT count(*) FROM gone
$$;

-- The same of conversations.
CREATE FUNCTION bound_conversations(kept bigint) RETURNS bigint
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = memfleet, pg_temp
AS $$
    WITH beyond AS (SELECT c.session, c.expires_at FROM conversations c WHERE c.tenant = current_setting('memfleet.tenant') AND c.expires_at <= (
                SELECT l.expires_at FROM conversations l WHERE l.tenant = current_setting('memfleet.tenant') ORDER BY l.expires_at DESC OFFSET $1 LIMIT 1)
            ORDER BY c.expires_at LIMIT 1000),
        gone AS (DELETE FROM conversations c USING beyond b
            WHERE c.tenant = current_setting('memfleet.tenant') AND c.session = b.session AND c.expires_at = b.expires_at RETURNING c.session)
    SELECT count(*) FROM gone
$$;

-- The same of injections, the oldest first, but for those that name a space on legal hold.
CREATE FUNCTION bound_injections(kept bigint) RETURNS bigint
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = memfleet, pg_temp
AS $$
    WITH last AS (SELECT l.at FROM injections l WHERE l.tenant = current_setting('memfleet.tenant') ORDER BY l.at DESC, l.id DESC OFFSET $1 LIMIT 1),
        beyond AS (SELECT i.id FROM injections i, last WHERE i.tenant = current_setting('memfleet.tenant') AND i.at <= last.at AND NOT EXISTS (
                SELECT FROM injection_spaces n JOIN spaces s ON s.tenant = n.tenant AND s.name = n.space
                WHERE n.tenant = i.tenant AND n.id = i.id AND s.held_since IS NOT NULL)
            ORDER BY i.at, i.id LIMIT 1000),
        gone AS (DELETE FROM injections i USING beyond b WHERE i.tenant = current_setting('memfleet.tenant') AND i.id = b.id RETURNING i.id),
        placed AS (DELETE FROM injection_spaces n USING gone g WHERE n.tenant = current_setting('memfleet.tenant') AND n.id = g.id),
        named AS (DELETE FROM injection_turns t USING gone g WHERE t.tenant = current_setting('memfleet.tenant') AND t.id = g.id)
    SELECT count(*) FROM gone
$$;

REVOKE ALL ON FUNCTION bound_exchanges, bound_conversations, bound_injections FROM PUBLIC;
GRANT EXECUTE ON FUNCTION bound_exchanges, bound_conversations, bound_injections TO memfleet_app;
SET LOCAL ROLE NONE;
REVOKE CREATE ON SCHEMA memfleet FROM memfleet_sweep;
