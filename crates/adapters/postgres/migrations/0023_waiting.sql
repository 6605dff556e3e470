-- no-transaction

-- Spaces from before a stage wait for it. A few hundred at a time, so that their writers wait for
-- no more than that. The owner of the tables sees the rows of the tenant that it names, as
-- everybody does.
DO $$
DECLARE
    owner text;
    past  bigint;
    until bigint;
BEGIN
    FOR owner IN SELECT t.tenant FROM memfleet.tenants_after('', 9223372036854775807) t LOOP
        past := 0;
        LOOP
            PERFORM set_config('memfleet.tenant', owner, true);
            SELECT max(page.id) INTO until FROM (
                SELECT s.id FROM memfleet.spaces s WHERE s.tenant = owner AND s.id > past ORDER BY s.id LIMIT 500) page;
            EXIT WHEN until IS NULL;
            INSERT INTO memfleet.progress (tenant, space, stage, behind_since)
            SELECT s.tenant, s.id, each.stage, 0
            FROM memfleet.spaces s CROSS JOIN unnest(ARRAY['derive', 'episodes', 'refine', 'retell', 'bind', 'consolidate', 'rebind', 'replot', 'semanticize', 'relate', 'judge', 'compare', 'settle', 'review']) AS each(stage)
            WHERE s.tenant = owner AND s.id > past AND s.id <= until AND s.name IS NOT NULL
            ON CONFLICT DO NOTHING;
            past := until;
            COMMIT;
        END LOOP;
    END LOOP;
END $$;
