-- Of the settings, beside `retention_days`.
ALTER TABLE spaces ADD COLUMN retention_turns bigint;
ALTER TABLE spaces ADD COLUMN retention_superseded_days bigint;
-- Since when a space is on legal hold, and why; absent where it is not.
ALTER TABLE spaces ADD COLUMN held_since bigint;
ALTER TABLE spaces ADD COLUMN held_reason text;
CREATE INDEX spaces_by_policy ON spaces (tenant, id)
    WHERE retention_days IS NOT NULL OR retention_turns IS NOT NULL OR retention_superseded_days IS NOT NULL;

-- Facts and episodes that retention removed, so that indexes let go of them.
CREATE TABLE removed_derivations (
    tenant text   COLLATE "C" NOT NULL,
    space  bigint NOT NULL,
    id     uuid   NOT NULL,
    change bigint NOT NULL,
    PRIMARY KEY (tenant, space, id)
);
CREATE INDEX removed_derivations_by_change ON removed_derivations (tenant, space, change);
ALTER TABLE removed_derivations ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON removed_derivations USING (tenant = nullif(current_setting('memfleet.tenant', true), ''));
GRANT SELECT, INSERT, UPDATE, DELETE ON removed_derivations TO memfleet_app;

GRANT SELECT (retention_turns, retention_superseded_days, held_since) ON spaces TO memfleet_sweep;
GRANT SELECT (turns) ON sessions TO memfleet_sweep;

-- Spaces with a retention and without a legal hold, the instant of their oldest turn and how many turns they have.
CREATE FUNCTION spaces_to_expire()
    RETURNS TABLE (tenant text, name text, retention_days bigint, retention_turns bigint, retention_superseded_days bigint,
        oldest bigint, turns bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = memfleet, pg_temp
AS $$
    SELECT p.tenant, p.name, p.retention_days, p.retention_turns, p.retention_superseded_days, s.oldest, s.turns
    FROM spaces p CROSS JOIN LATERAL (
        SELECT min(o.first_at), coalesce(sum(o.turns), 0)::bigint FROM sessions o
        WHERE o.tenant = p.tenant AND o.space = p.id) s(oldest, turns)
    WHERE (p.retention_days IS NOT NULL OR p.retention_turns IS NOT NULL OR p.retention_superseded_days IS NOT NULL)
        AND p.name IS NOT NULL AND p.held_since IS NULL
    ORDER BY p.tenant, p.name
$$;

-- The version of the program before this one asks here, and knows of no hold.
CREATE OR REPLACE FUNCTION spaces_with_retention()
    RETURNS TABLE (tenant text, name text, retention_days bigint, oldest bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = memfleet, pg_temp
AS $$
    SELECT e.tenant, e.name, e.retention_days, e.oldest FROM spaces_to_expire() e WHERE e.retention_days IS NOT NULL
$$;

REVOKE ALL ON FUNCTION spaces_to_expire FROM PUBLIC;
GRANT EXECUTE ON FUNCTION spaces_to_expire TO memfleet_app;
GRANT CREATE ON SCHEMA memfleet TO memfleet_sweep;
ALTER FUNCTION spaces_to_expire OWNER TO memfleet_sweep;
REVOKE CREATE ON SCHEMA memfleet FROM memfleet_sweep;
