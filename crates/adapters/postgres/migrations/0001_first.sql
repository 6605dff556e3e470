-- All times: microseconds since 1970, UTC. Ids of turns and batches: uuid. Texts of turns are bytes, since a column of text
-- refuses the zero that a turn may hold; every other name is free of it.

-- The row of an erased space stays without its name: its change sequence and passage numbers must not start again.
CREATE TABLE spaces (
    tenant            text   COLLATE "C" NOT NULL,
    id                bigint GENERATED ALWAYS AS IDENTITY,
    key               bytea  NOT NULL,           -- hash of tenant and name
    name              text   COLLATE "C",
    settings          text   NOT NULL,           -- JSON
    retention_days    bigint,                    -- of the settings
    language          text,                      -- that its first turns were analysed in
    created_at        bigint NOT NULL,
    head              bigint NOT NULL DEFAULT 0,
    next_passage      bigint NOT NULL DEFAULT 0,
    erased            bigint NOT NULL DEFAULT 0, -- head when it was last forgotten as a whole
    erased_acceptance bigint,                    -- last position of acceptance by then
    accepted          bigint NOT NULL DEFAULT 0, -- highest position of acceptance that a row of the space has
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, key)
) WITH (fillfactor = 70);
CREATE INDEX spaces_by_name ON spaces (tenant, name);
CREATE INDEX spaces_by_retention ON spaces (tenant, id) WHERE retention_days IS NOT NULL;

CREATE TABLE sessions (
    tenant     text   COLLATE "C" NOT NULL,
    space      bigint NOT NULL,
    id         bigint GENERATED ALWAYS AS IDENTITY,
    name       text   COLLATE "C" NOT NULL,
    turns      bigint NOT NULL,
    started_at bigint NOT NULL, -- earliest recorded time
    first_at   bigint NOT NULL, -- earliest and latest event time (else recorded time)
    last_at    bigint NOT NULL,
    PRIMARY KEY (tenant, space, id),
    UNIQUE (tenant, space, name),
    FOREIGN KEY (tenant, space) REFERENCES spaces
) WITH (fillfactor = 80);
CREATE INDEX sessions_by_start ON sessions (tenant, space, started_at, id);
CREATE INDEX sessions_by_first ON sessions (tenant, space, first_at, id);

CREATE TABLE turns (
    tenant        text     COLLATE "C" NOT NULL,
    space         bigint   NOT NULL,
    id            uuid     NOT NULL,
    session       bigint   NOT NULL,
    acceptance    bigint   NOT NULL,
    position      bigint   NOT NULL,
    change        bigint   NOT NULL,
    event_time    bigint,
    recorded_at   bigint   NOT NULL,
    replaced_at   bigint,
    embedding     bigint,            -- hash of the embedding space; absent while a passage has no vectors
    ordinal       integer  NOT NULL,
    first_passage integer  NOT NULL,
    passages      integer  NOT NULL,
    role          smallint NOT NULL,
    trust         smallint NOT NULL,
    replaces      uuid,
    replaced_by   uuid,
    content_hash  bytea    NOT NULL,
    lengths       bytea    NOT NULL, -- of each passage: bytes and words
    external_id   text,
    speaker       text     COLLATE "C" NOT NULL,
    text          bytea    NOT NULL, -- UTF-8
    media         text,              -- JSON, absent where there is none
    metadata      text,              -- JSON, absent where there is none
    PRIMARY KEY (tenant, space, id),
    FOREIGN KEY (tenant, space, session) REFERENCES sessions
) PARTITION BY HASH (tenant);
CREATE INDEX turns_in_order ON turns (tenant, space, session, acceptance, ordinal);
CREATE INDEX turns_by_acceptance ON turns (tenant, space, acceptance, ordinal);
CREATE INDEX turns_by_change ON turns (tenant, space, change);
CREATE INDEX turns_by_replaced ON turns (tenant, space, replaces) WHERE replaces IS NOT NULL;
CREATE INDEX turns_by_embedding ON turns (embedding);
CREATE INDEX turns_without_embedding ON turns (tenant, space) WHERE embedding IS NULL;

-- Numbered in their space.
CREATE TABLE passages (
    tenant   text    COLLATE "C" NOT NULL,
    space    bigint  NOT NULL,
    passage  integer NOT NULL,
    start    integer NOT NULL,
    length   integer NOT NULL,
    terms    bytea   NOT NULL,
    features bytea   NOT NULL,
    pieces   bytea   NOT NULL,
    sentence halfvec,
    PRIMARY KEY (tenant, space, passage)
) PARTITION BY HASH (tenant);

CREATE TABLE token_vectors (
    tenant  text    COLLATE "C" NOT NULL,
    space   bigint  NOT NULL,
    passage integer NOT NULL,
    vectors bytea   NOT NULL,
    PRIMARY KEY (tenant, space, passage)
) PARTITION BY HASH (tenant);
-- They do not get smaller.
ALTER TABLE token_vectors ALTER COLUMN vectors SET STORAGE EXTERNAL;

-- Where a term is, three bytes a passage, in blocks of 2,048 passages; `term` is a hash of it.
CREATE TABLE postings (
    space    bigint  NOT NULL,
    term     bigint  NOT NULL,
    block    integer NOT NULL,
    tenant   text    COLLATE "C" NOT NULL,
    passages bytea   NOT NULL,
    PRIMARY KEY (tenant, space, term, block)
) PARTITION BY HASH (tenant);

-- One row a label of a turn; `label` is a hash of key and value.
CREATE TABLE labels (
    tenant text   COLLATE "C" NOT NULL,
    space  bigint NOT NULL,
    label  bigint NOT NULL,
    turn   uuid   NOT NULL,
    PRIMARY KEY (tenant, space, label, turn)
) PARTITION BY HASH (tenant);

CREATE TABLE batches (
    tenant       text   COLLATE "C" NOT NULL,
    space        bigint NOT NULL,
    id           uuid   NOT NULL,
    change       bigint NOT NULL,
    payload_hash bytea,
    receipts     bytea  NOT NULL,
    PRIMARY KEY (tenant, space, id)
);

-- What was forgotten. `acceptance` is the last position given out by then: a delivery from before does not bring it back.
CREATE TABLE forgotten (
    tenant     text   COLLATE "C" NOT NULL,
    space      bigint NOT NULL,
    id         uuid   NOT NULL,
    change     bigint NOT NULL,
    acceptance bigint NOT NULL,
    PRIMARY KEY (tenant, space, id)
);
CREATE INDEX forgotten_by_change ON forgotten (tenant, space, change);

DO $$
DECLARE
    large text;
    part  integer;
BEGIN
    FOREACH large IN ARRAY ARRAY['turns', 'passages', 'token_vectors', 'postings', 'labels'] LOOP
        FOR part IN 0..7 LOOP
            EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS 8, REMAINDER %s)',
                large || '_' || part, large, part);
            -- Blocks are appended to: the newer state finds room beside the older.
            IF large = 'postings' THEN
                EXECUTE format('ALTER TABLE %I SET (fillfactor = 80)', large || '_' || part);
            END IF;
        END LOOP;
    END LOOP;
END $$;

-- The nearest vectors of a model's length. The first 16,384 passages of a space are compared one by one, and most spaces have no
-- more: they are not in it, and cost it nothing.
CREATE FUNCTION index_vectors(dimensions integer) RETURNS void
    LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
BEGIN
    EXECUTE format('CREATE INDEX IF NOT EXISTS passages_near_%1$s ON passages
        USING hnsw ((sentence::halfvec(%1$s)) halfvec_ip_ops)
        WHERE passage >= 16384 AND vector_dims(sentence) = %1$s', dimensions);
END $$;
REVOKE ALL ON FUNCTION index_vectors FROM PUBLIC;
SELECT index_vectors(384);

-- Whose row it is decides who sees it, the owner of the tables included. Partitions too: they can be named.
DO $$
DECLARE
    protected regclass;
BEGIN
    FOR protected IN
        SELECT oid FROM pg_class
        WHERE relnamespace = 'memfleet'::regnamespace AND relkind IN ('r', 'p') AND relname <> '_sqlx_migrations'
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', protected);
        EXECUTE format('CREATE POLICY own_tenant ON %s
            USING (tenant = nullif(current_setting(''memfleet.tenant'', true), ''''))', protected);
    END LOOP;
END $$;

-- The oldest schema whose builds can work with this one. A migration that breaks them replaces it.
CREATE FUNCTION compatible_since() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 1::bigint';

GRANT USAGE ON SCHEMA memfleet TO memfleet_app, memfleet_sweep;
GRANT SELECT ON _sqlx_migrations TO memfleet_app;
GRANT SELECT, INSERT, UPDATE, DELETE
    ON spaces, sessions, turns, passages, token_vectors, postings, labels, batches, forgotten TO memfleet_app;

-- Work across tenants finds out here where there is something to do, and does it tenant by tenant. The functions run as a role
-- that nobody can log in as, which sees these columns of all tenants and nothing else.
GRANT SELECT (tenant, space, id, embedding) ON turns TO memfleet_sweep;
GRANT SELECT (tenant, id, name, retention_days, accepted) ON spaces TO memfleet_sweep;
GRANT SELECT (tenant, space, first_at) ON sessions TO memfleet_sweep;
CREATE POLICY every_tenant ON turns FOR SELECT TO memfleet_sweep USING (true);
CREATE POLICY every_tenant ON spaces FOR SELECT TO memfleet_sweep USING (true);
CREATE POLICY every_tenant ON sessions FOR SELECT TO memfleet_sweep USING (true);

-- Some turns that have no vectors in an embedding space.
CREATE FUNCTION turns_without_vectors(embedding bigint, most bigint)
    RETURNS TABLE (tenant text, space bigint, id uuid)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = memfleet, pg_temp
AS $$
    SELECT t.tenant, t.space, t.id FROM turns t WHERE t.embedding IS NULL
    UNION ALL SELECT t.tenant, t.space, t.id FROM turns t WHERE t.embedding < $1
    UNION ALL SELECT t.tenant, t.space, t.id FROM turns t WHERE t.embedding > $1
    LIMIT $2
$$;

-- Spaces with a retention period, and the instant of their oldest turn.
CREATE FUNCTION spaces_with_retention()
    RETURNS TABLE (tenant text, name text, retention_days bigint, oldest bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = memfleet, pg_temp
AS $$
    SELECT p.tenant, p.name, p.retention_days,
        (SELECT min(s.first_at) FROM sessions s WHERE s.tenant = p.tenant AND s.space = p.id)
    FROM spaces p WHERE p.retention_days IS NOT NULL AND p.name IS NOT NULL
    ORDER BY p.tenant, p.name
$$;

-- The highest position of acceptance that any row has: a queue that begins anew goes on behind it.
CREATE FUNCTION highest_acceptance()
    RETURNS bigint
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = memfleet, pg_temp
AS $$
    SELECT coalesce(max(p.accepted), 0) FROM spaces p
$$;

REVOKE ALL ON FUNCTION turns_without_vectors, spaces_with_retention, highest_acceptance FROM PUBLIC;
GRANT EXECUTE ON FUNCTION turns_without_vectors, spaces_with_retention, highest_acceptance TO memfleet_app;
GRANT CREATE ON SCHEMA memfleet TO memfleet_sweep;
ALTER FUNCTION turns_without_vectors OWNER TO memfleet_sweep;
ALTER FUNCTION spaces_with_retention OWNER TO memfleet_sweep;
ALTER FUNCTION highest_acceptance OWNER TO memfleet_sweep;
REVOKE CREATE ON SCHEMA memfleet FROM memfleet_sweep;
