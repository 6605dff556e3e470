-- Roles belong to the server, not to the database: another database's migration may make them at the same time. Who may not
-- make roles finds them made by somebody who may.
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['memfleet_app', 'memfleet_sweep'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
            EXCEPTION
                WHEN duplicate_object OR unique_violation THEN
                    NULL;
                WHEN insufficient_privilege THEN
                    RAISE invalid_authorization_specification USING MESSAGE = format(
                        'the role %1$I is missing, and %2$I may not make it: run `CREATE ROLE %1$I NOLOGIN` as an administrator',
                        wanted, current_user);
            END;
        END IF;
        IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
            BEGIN
                EXECUTE format('GRANT %I TO %I', wanted, current_user);
            EXCEPTION WHEN insufficient_privilege THEN
                NULL;
            END;
        END IF;
    END LOOP;
END $$;
