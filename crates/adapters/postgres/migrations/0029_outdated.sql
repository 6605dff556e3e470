-- no-transaction

-- Where a database has vectors of several embedding spaces, those that are not of the newest of their memory space go, and so do those
-- of derived memory, of which nothing says whose they are. The owner of the tables sees the rows of the tenant that it names, as
-- everybody does. Tenant by tenant and space by space, so that writers wait for no more than that.
DO $$
DECLARE
    owner text;
    mixed record;
    outdated integer[];
BEGIN
    FOR owner IN SELECT t.tenant FROM memfleet.tenants_after('', 9223372036854775807) t LOOP
        PERFORM set_config('memfleet.tenant', owner, true);
        FOR mixed IN
            SELECT t.space, (array_agg(t.embedding ORDER BY t.change DESC))[1] AS newest FROM memfleet.turns t
            WHERE t.tenant = owner AND t.embedding IS NOT NULL
            GROUP BY t.space HAVING min(t.embedding) <> max(t.embedding)
        LOOP
            outdated := ARRAY(
                SELECT g.passage FROM memfleet.turns t JOIN memfleet.passages g ON g.tenant = t.tenant AND g.space = t.space
                    AND g.passage >= t.first_passage AND g.passage < t.first_passage + t.passages
                WHERE t.tenant = owner AND t.space = mixed.space AND t.embedding <> mixed.newest
                UNION SELECT d.passage FROM memfleet.derivations d WHERE d.tenant = owner AND d.space = mixed.space
                UNION SELECT s.passage FROM memfleet.staged s
                    WHERE s.tenant = owner AND s.space = mixed.space AND s.passage IS NOT NULL);
            UPDATE memfleet.passages g SET sentence = NULL, pieces = ''
            WHERE g.tenant = owner AND g.space = mixed.space AND g.passage = ANY (outdated);
            DELETE FROM memfleet.token_vectors v
            WHERE v.tenant = owner AND v.space = mixed.space AND v.passage = ANY (outdated);
            UPDATE memfleet.turns t SET embedding = NULL
            WHERE t.tenant = owner AND t.space = mixed.space AND t.embedding <> mixed.newest;
            UPDATE memfleet.spaces p SET embedding = mixed.newest, embedded = 0 WHERE p.tenant = owner AND p.id = mixed.space;
        END LOOP;
        COMMIT;
    END LOOP;
END $$;
