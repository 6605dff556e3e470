-- As in 0010, with the stages in which a language model binds fragments and puts narratives together.
CREATE OR REPLACE FUNCTION fall_behind() RETURNS trigger LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO memfleet.progress AS p (tenant, space, stage, behind_since)
    SELECT NEW.tenant, NEW.id, each.stage, (extract(epoch FROM clock_timestamp()) * 1e6)::bigint
    FROM unnest(ARRAY['derive', 'episodes', 'refine', 'retell', 'bind', 'consolidate', 'rebind', 'replot', 'relate', 'judge', 'compare', 'settle', 'review']) AS each(stage)
    WHERE NOT EXISTS (
        SELECT FROM memfleet.progress b
        WHERE b.tenant = NEW.tenant AND b.space = NEW.id AND b.stage = each.stage AND b.behind_since IS NOT NULL)
    ON CONFLICT (tenant, space, stage) DO UPDATE SET behind_since = excluded.behind_since;
    RETURN NULL;
END $$;
