-- Derived memory: what agents made of turns, in versions. Documents are JSON, which escapes the zero that a column of text refuses;
-- the keys of claims, which may hold it and may be long, are hashes.

-- The current version is the one whose `known_until` is absent.
CREATE TABLE derivations (
    tenant       text     COLLATE "C" NOT NULL,
    space        bigint   NOT NULL,
    id           uuid     NOT NULL,
    first        bigint   NOT NULL, -- change sequence of the space with which its first version came: the order of listings
    change       bigint   NOT NULL, -- that with which this version came, or became current again
    known_from   bigint   NOT NULL,
    known_until  bigint,
    valid_from   bigint,
    valid_until  bigint,
    subject      bigint,            -- of a fact's claim
    attribute    bigint,
    written_by   uuid     NOT NULL, -- the change in `changes`
    succeeded_by uuid,
    version      integer  NOT NULL,
    passage      integer  NOT NULL, -- what it is found by
    kind         smallint NOT NULL,
    document     text     NOT NULL, -- JSON
    PRIMARY KEY (tenant, space, id, version)
) PARTITION BY HASH (tenant);
CREATE INDEX derivations_in_order ON derivations (tenant, space, first);
CREATE INDEX derivations_by_change ON derivations (tenant, space, change);
CREATE INDEX derivations_by_claim ON derivations (tenant, space, subject, attribute) WHERE subject IS NOT NULL;
CREATE INDEX derivations_by_writer ON derivations (tenant, space, written_by);
CREATE INDEX derivations_by_successor ON derivations (tenant, space, succeeded_by) WHERE succeeded_by IS NOT NULL;

-- Lineage: every turn that a derivation draws on.
CREATE TABLE derivation_turns (
    tenant     text   COLLATE "C" NOT NULL,
    space      bigint NOT NULL,
    turn       uuid   NOT NULL,
    derivation uuid   NOT NULL,
    PRIMARY KEY (tenant, space, turn, derivation)
) PARTITION BY HASH (tenant);
CREATE INDEX derivation_turns_by_derivation ON derivation_turns (tenant, space, derivation);

-- Numbered in the order of commits: who writes one holds the lock of the space.
CREATE TABLE changes (
    tenant      text   COLLATE "C" NOT NULL,
    space       bigint NOT NULL,
    id          uuid   NOT NULL,
    number      bigint GENERATED ALWAYS AS IDENTITY,
    reverted_by uuid,
    document    text   NOT NULL, -- JSON
    PRIMARY KEY (tenant, space, id)
);
CREATE INDEX changes_in_order ON changes (tenant, space, number);

CREATE TABLE conflicts (
    tenant   text     COLLATE "C" NOT NULL,
    space    bigint   NOT NULL,
    id       uuid     NOT NULL,
    number   bigint   GENERATED ALWAYS AS IDENTITY,
    older    uuid     NOT NULL,
    newer    uuid     NOT NULL,
    status   smallint NOT NULL,
    document text     NOT NULL, -- JSON
    PRIMARY KEY (tenant, space, id)
);
CREATE INDEX conflicts_in_order ON conflicts (tenant, space, number);
CREATE INDEX conflicts_by_older ON conflicts (tenant, space, older);
CREATE INDEX conflicts_by_newer ON conflicts (tenant, space, newer);
CREATE INDEX conflicts_unsettled ON conflicts (tenant, space, number) WHERE status = 0;

-- How far each agent has come in a space, and until when one worker has it. The index holds the few spaces that an agent is behind
-- in, and none of those where nothing happens: who looks for work reads no more rows than it finds.
CREATE TABLE progress (
    tenant       text   COLLATE "C" NOT NULL,
    space        bigint NOT NULL,
    stage        text   COLLATE "C" NOT NULL,
    reached      bigint NOT NULL DEFAULT 0,
    leased_until bigint,
    behind_since bigint, -- absent where it has reached the head of the space
    goal         bigint, -- of a rebuild, whose row ends with it
    PRIMARY KEY (tenant, space, stage)
) WITH (fillfactor = 80);
CREATE INDEX progress_behind ON progress (stage, behind_since) WHERE behind_since IS NOT NULL;

-- What a rebuild found and is not in use yet.
CREATE TABLE staged (
    tenant   text    COLLATE "C" NOT NULL,
    space    bigint  NOT NULL,
    id       uuid    NOT NULL,
    passage  integer,          -- absent: the fact is in use, and was derived again
    document text,             -- JSON
    PRIMARY KEY (tenant, space, id)
);
CREATE INDEX staged_new ON staged (tenant, space) WHERE document IS NOT NULL;

-- What language models cost a tenant on a day (days of the common era, UTC), reservations included.
CREATE TABLE model_use (
    tenant text    COLLATE "C" NOT NULL,
    day    integer NOT NULL,
    calls  bigint  NOT NULL,
    tokens bigint  NOT NULL,
    micros bigint  NOT NULL,
    PRIMARY KEY (tenant, day)
);

-- Whoever moves the head of a space on leaves its agents behind, the version of the program before this one included. Where they are
-- behind already nothing is written.
CREATE FUNCTION fall_behind() RETURNS trigger LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO memfleet.progress AS p (tenant, space, stage, behind_since)
    SELECT NEW.tenant, NEW.id, each.stage, (extract(epoch FROM clock_timestamp()) * 1e6)::bigint
    FROM unnest(ARRAY['derive', 'episodes', 'refine', 'judge', 'settle']) AS each(stage)
    WHERE NOT EXISTS (
        SELECT FROM memfleet.progress b
        WHERE b.tenant = NEW.tenant AND b.space = NEW.id AND b.stage = each.stage AND b.behind_since IS NOT NULL)
    ON CONFLICT (tenant, space, stage) DO UPDATE SET behind_since = excluded.behind_since;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION fall_behind FROM PUBLIC;
CREATE TRIGGER head_moved AFTER UPDATE OF head ON spaces FOR EACH ROW
    WHEN (NEW.head > OLD.head AND NEW.name IS NOT NULL) EXECUTE FUNCTION fall_behind();

DO $$
DECLARE
    large     text;
    part      integer;
    protected text;
BEGIN
    FOREACH large IN ARRAY ARRAY['derivations', 'derivation_turns'] LOOP
        FOR part IN 0..7 LOOP
            EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS 8, REMAINDER %s)',
                large || '_' || part, large, part);
        END LOOP;
    END LOOP;
    FOR protected IN
        SELECT relname FROM pg_class
        WHERE relnamespace = 'memfleet'::regnamespace AND relkind IN ('r', 'p')
            AND (relname ~ '^(derivations|derivation_turns)(_[0-7])?$' OR relname IN ('changes', 'conflicts', 'progress', 'staged', 'model_use'))
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', protected);
        EXECUTE format('CREATE POLICY own_tenant ON %I
            USING (tenant = nullif(current_setting(''memfleet.tenant'', true), ''''))', protected);
    END LOOP;
END $$;

GRANT SELECT, INSERT, UPDATE, DELETE ON derivations, derivation_turns, changes, conflicts, progress, staged, model_use TO memfleet_app;

GRANT SELECT (tenant, space, stage, behind_since) ON progress TO memfleet_sweep;
CREATE POLICY every_tenant ON progress FOR SELECT TO memfleet_sweep USING (true);

-- Spaces that an agent is behind in, those that wait longest first. Each is found by itself, whatever the planner expects.
CREATE FUNCTION spaces_behind(stage text, most bigint) RETURNS TABLE (tenant text, name text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = memfleet, pg_temp
AS $$
    SELECT s.tenant, s.name FROM progress p CROSS JOIN LATERAL (
        SELECT o.tenant, o.name FROM spaces o WHERE o.tenant = p.tenant AND o.id = p.space AND o.name IS NOT NULL LIMIT 1) s
    WHERE p.stage = $1 AND p.behind_since IS NOT NULL ORDER BY p.behind_since LIMIT $2
$$;

REVOKE ALL ON FUNCTION spaces_behind FROM PUBLIC;
GRANT EXECUTE ON FUNCTION spaces_behind TO memfleet_app;
GRANT CREATE ON SCHEMA memfleet TO memfleet_sweep;
ALTER FUNCTION spaces_behind OWNER TO memfleet_sweep;
REVOKE CREATE ON SCHEMA memfleet FROM memfleet_sweep;
