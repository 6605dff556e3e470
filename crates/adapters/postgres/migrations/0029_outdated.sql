-- no-transaction

-- Names the embedding space of the vectors of each memory space, and removes those that may be of an earlier model: of turns, those
-- that are not of the newest; of derived memory, of which nothing says whose they are, all, unless every turn is of what was the
-- default model so far. A few hundred rows at a time, behind the lock of the row of their space, as writers do. A space that has a name
-- is passed over when this runs again. The owner of the tables sees the rows of the tenant that it names, as everybody does.
DO $$
DECLARE
    default_model CONSTANT bigint := -2884309363647129727;
    owner    text;
    home     bigint;
    newest   bigint;
    is_old   boolean;
    outdated integer[];
    done     integer;
    past     bigint;
    until    bigint;
BEGIN
    FOR owner IN SELECT t.tenant FROM memfleet.tenants_after('', 9223372036854775807) t LOOP
        past := 0;
        LOOP
            PERFORM set_config('memfleet.tenant', owner, true);
            SELECT p.id INTO home FROM memfleet.spaces p
            WHERE p.tenant = owner AND p.id > past AND p.next_passage > 0 AND p.embedding IS NULL AND p.embedded IS NULL
            ORDER BY p.id LIMIT 1;
            EXIT WHEN NOT FOUND;
            newest := (SELECT t.embedding FROM memfleet.turns t
                WHERE t.tenant = owner AND t.space = home AND t.embedding IS NOT NULL ORDER BY t.change DESC LIMIT 1);
            is_old := newest IS DISTINCT FROM default_model OR EXISTS (
                SELECT FROM memfleet.turns t WHERE t.tenant = owner AND t.space = home AND t.embedding <> newest);
            outdated := ARRAY(
                SELECT g.passage FROM memfleet.turns t JOIN memfleet.passages g ON g.tenant = t.tenant AND g.space = t.space
                    AND g.passage >= t.first_passage AND g.passage < t.first_passage + t.passages
                WHERE is_old AND t.tenant = owner AND t.space = home AND t.embedding <> newest
                UNION SELECT d.passage FROM memfleet.derivations d WHERE is_old AND d.tenant = owner AND d.space = home
                UNION SELECT s.passage FROM memfleet.staged s
                    WHERE is_old AND s.tenant = owner AND s.space = home AND s.passage IS NOT NULL
                ORDER BY 1);
            done := 0;
            WHILE done < cardinality(outdated) LOOP
                PERFORM set_config('memfleet.tenant', owner, true), set_config('lock_timeout', '10s', true);
                PERFORM FROM memfleet.spaces p WHERE p.tenant = owner AND p.id = home FOR UPDATE;
                UPDATE memfleet.passages g SET sentence = NULL, pieces = ''
                WHERE g.tenant = owner AND g.space = home AND g.passage = ANY (outdated[done + 1:done + 200]);
                DELETE FROM memfleet.token_vectors v
                WHERE v.tenant = owner AND v.space = home AND v.passage = ANY (outdated[done + 1:done + 200]);
                done := done + 200;
                COMMIT;
            END LOOP;
            past := -1;
            WHILE is_old LOOP
                PERFORM set_config('memfleet.tenant', owner, true), set_config('lock_timeout', '10s', true);
                PERFORM FROM memfleet.spaces p WHERE p.tenant = owner AND p.id = home FOR UPDATE;
                SELECT max(page.change) INTO until FROM (
                    SELECT t.change FROM memfleet.turns t
                    WHERE t.tenant = owner AND t.space = home AND t.change > past AND t.embedding <> newest
                    ORDER BY t.change LIMIT 200) page;
                EXIT WHEN until IS NULL;
                UPDATE memfleet.turns t SET embedding = NULL
                WHERE t.tenant = owner AND t.space = home AND t.change > past AND t.change <= until AND t.embedding <> newest;
                past := until;
                COMMIT;
            END LOOP;
            PERFORM set_config('memfleet.tenant', owner, true), set_config('lock_timeout', '10s', true),
                set_config('synchronous_commit', 'off', true);
            UPDATE memfleet.spaces p SET embedding = newest, embedded = CASE WHEN is_old OR EXISTS (
                SELECT FROM memfleet.turns t WHERE t.tenant = owner AND t.space = home AND t.embedding IS NULL) THEN 0 END
            WHERE p.tenant = owner AND p.id = home;
            past := home;
            COMMIT;
        END LOOP;
        COMMIT;
    END LOOP;
END $$;
