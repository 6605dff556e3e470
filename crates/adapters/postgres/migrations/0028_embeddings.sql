-- Vectors of at most two embedding spaces a memory space, in two places. Those of `spaces.embedding` stand in `passages` and
-- `token_vectors`, those of `spaces.second_embedding` in `second_vectors`. Searches use one of them. A memory space that a
-- build of before makes meanwhile has no name for its first place: it is of the embedding space of its newest turn.
ALTER TABLE spaces
    ADD COLUMN embedding bigint,                               -- hash, as in `turns`
    ADD COLUMN second_embedding bigint,
    ADD COLUMN serves_second boolean NOT NULL DEFAULT false,
    ADD COLUMN is_other_whole boolean NOT NULL DEFAULT false,
    -- For each place: the change up to which nothing lacks vectors in it. Absent where nothing lacks any.
    ADD COLUMN embedded bigint,
    ADD COLUMN second_embedded bigint,
    -- Whether the vectors of the second place, or of the first, are being removed; neither where it is absent.
    ADD COLUMN emptying boolean,
    ADD COLUMN comparison text;                                -- what a comparison of the two said, as JSON
CREATE INDEX spaces_unembedded ON spaces (embedding) WHERE embedded IS NOT NULL;
CREATE INDEX spaces_second_unembedded ON spaces (second_embedding) WHERE second_embedded IS NOT NULL;
CREATE INDEX spaces_with_second ON spaces (tenant, id) WHERE second_embedding IS NOT NULL;

-- Names of embedding spaces by their hashes; of no tenant.
CREATE TABLE embedding_spaces (
    key  bigint PRIMARY KEY,
    name text   NOT NULL -- JSON
);
ALTER TABLE embedding_spaces ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_no_tenant ON embedding_spaces USING (true);
GRANT SELECT, INSERT ON embedding_spaces TO memfleet_app;

CREATE TABLE second_vectors (
    tenant   text    COLLATE "C" NOT NULL,
    space    bigint  NOT NULL,
    passage  integer NOT NULL,
    pieces   bytea   NOT NULL,
    sentence halfvec,
    vectors  bytea   NOT NULL,
    PRIMARY KEY (tenant, space, passage)
) PARTITION BY HASH (tenant);
ALTER TABLE second_vectors ALTER COLUMN vectors SET STORAGE EXTERNAL;
DO $$
DECLARE
    part      integer;
    protected text;
BEGIN
    FOR part IN 0..7 LOOP
        EXECUTE format('CREATE TABLE second_vectors_%1$s PARTITION OF second_vectors FOR VALUES WITH (MODULUS 8, REMAINDER %1$s)', part);
    END LOOP;
    FOR protected IN
        SELECT relname FROM pg_class WHERE relnamespace = 'memfleet'::regnamespace AND relname ~ '^second_vectors(_[0-7])?$'
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', protected);
        EXECUTE format('CREATE POLICY own_tenant ON %I
            USING (tenant = nullif(current_setting(''memfleet.tenant'', true), ''''))', protected);
    END LOOP;
END $$;
GRANT SELECT, INSERT, UPDATE, DELETE ON second_vectors TO memfleet_app;

-- The nearest vectors of a model's length in the second place; see `index_vectors`.
CREATE FUNCTION index_second_vectors(dimensions integer) RETURNS void
    LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
BEGIN
    EXECUTE format('CREATE INDEX IF NOT EXISTS second_vectors_near_%1$s ON second_vectors
        USING hnsw ((sentence::halfvec(%1$s)) halfvec_ip_ops)
        WHERE passage >= 16384 AND vector_dims(sentence) = %1$s', dimensions);
END $$;
REVOKE ALL ON FUNCTION index_second_vectors FROM PUBLIC;
SELECT index_second_vectors(384);

-- Spaces where something may lack vectors in an embedding space: up to which change nothing does, whether it is about the second place,
-- and whether searches use that place. Builds of before leave turns without vectors and do not say so in `spaces`: these are looked up
-- space by space.
GRANT SELECT (change) ON turns TO memfleet_sweep;
GRANT SELECT (embedding, second_embedding, embedded, second_embedded, serves_second) ON spaces TO memfleet_sweep;
CREATE FUNCTION spaces_unembedded(embedding bigint)
    RETURNS TABLE (tenant text, name text, after bigint, is_second boolean, is_served boolean)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = memfleet, pg_temp SET enable_seqscan = off
AS $$
    WITH RECURSIVE waiting AS (
        (SELECT t.tenant, t.space FROM turns t WHERE t.embedding IS NULL ORDER BY t.tenant, t.space LIMIT 1)
        UNION ALL SELECT n.tenant, n.space FROM waiting w CROSS JOIN LATERAL (
            SELECT t.tenant, t.space FROM turns t
            WHERE t.embedding IS NULL AND (t.tenant, t.space) > (w.tenant, w.space) ORDER BY t.tenant, t.space LIMIT 1) n)
    SELECT p.tenant, p.name, p.embedded, false, NOT p.serves_second FROM spaces p
    WHERE p.embedded IS NOT NULL AND p.name IS NOT NULL
        AND (p.embedding = $1 OR (p.embedding IS NULL AND p.second_embedding IS NULL))
    UNION ALL SELECT p.tenant, p.name, p.second_embedded, true, p.serves_second FROM spaces p
    WHERE p.second_embedded IS NOT NULL AND p.name IS NOT NULL AND p.second_embedding = $1
    UNION ALL SELECT p.tenant, p.name, (
        SELECT min(t.change) - 1 FROM turns t WHERE t.tenant = p.tenant AND t.space = p.id AND t.embedding IS NULL), false, NOT p.serves_second
    FROM waiting w JOIN spaces p ON p.tenant = w.tenant AND p.id = w.space
    WHERE p.embedded IS NULL AND p.name IS NOT NULL
        AND (p.embedding = $1 OR (p.embedding IS NULL AND p.second_embedding IS NULL))
$$;
REVOKE ALL ON FUNCTION spaces_unembedded FROM PUBLIC;
GRANT EXECUTE ON FUNCTION spaces_unembedded TO memfleet_app;
GRANT CREATE ON SCHEMA memfleet TO memfleet_sweep;
ALTER FUNCTION spaces_unembedded OWNER TO memfleet_sweep;
REVOKE CREATE ON SCHEMA memfleet FROM memfleet_sweep;

-- A change of the embedding model: what the operator wants, as JSON; of no tenant.
CREATE TABLE model_switch (
    id       integer PRIMARY KEY CHECK (id = 1),
    document text    NOT NULL
);
ALTER TABLE model_switch ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_no_tenant ON model_switch USING (true);
GRANT SELECT, INSERT, UPDATE ON model_switch TO memfleet_app;

-- Builds of before read the first place alone: once a change of the model is ordered they are refused, until the order is to go back
-- and to drop the vectors of the other model.
CREATE OR REPLACE FUNCTION compatible_since() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN EXISTS (SELECT FROM memfleet.model_switch o
        WHERE NOT (o.document::json ->> 'goal' = 'roll_back' AND (o.document::json ->> 'drops')::boolean)) THEN 28::bigint ELSE 1 END
$$;

-- The next step of a space in a change of the model: 0 takes vectors of the target, 1 compares them, 2 serves them, 3 goes back, 4 drops
-- what is not served. `builds`: the target is wanted; `serves`: searches are to use it; `drops`: what they do not use is to go.
CREATE FUNCTION switch_step(p spaces, target bigint, builds boolean, serves boolean, drops boolean)
    RETURNS integer LANGUAGE sql STABLE SET search_path = memfleet, pg_temp
AS $$
    SELECT CASE
        WHEN p.emptying IS NOT NULL THEN 4
        WHEN serves AND p.is_other_whole AND s.other = target THEN 2
        WHEN NOT builds AND p.is_other_whole AND s.served = target THEN 3
        WHEN builds AND NOT p.is_other_whole AND s.other = target AND s.since IS NULL THEN 1
        WHEN builds AND s.served <> target AND s.other IS NULL THEN 0
        WHEN drops AND s.other IS NOT NULL AND NOT (builds AND s.other = target) THEN 4
    END
    FROM (SELECT
        CASE WHEN p.serves_second THEN p.second_embedding ELSE p.embedding END AS served,
        CASE WHEN p.serves_second THEN p.embedding ELSE p.second_embedding END AS other,
        CASE WHEN p.serves_second THEN p.embedded ELSE p.second_embedded END AS since) s
$$;
