-- Two logins for one database: the owner migrates, the roles of the fleet connect as `memfleet_app`, which owns nothing, so that
-- row-level security binds it. For a superuser, in the database that memfleet will use; it may be run again:
--
--   MEMFLEET_OWNER_PASSWORD=… MEMFLEET_APP_PASSWORD=… psql -d memfleet -f roles.sql
--
-- The images of PostgreSQL run it by themselves when they find it in /docker-entrypoint-initdb.d.
\set ON_ERROR_STOP on
\getenv owner_password MEMFLEET_OWNER_PASSWORD
\getenv app_password MEMFLEET_APP_PASSWORD

-- Logins belong to the server, not to the database: those that are there keep their passwords.
SELECT format('CREATE ROLE memfleet_owner LOGIN PASSWORD %L NOSUPERUSER NOBYPASSRLS', :'owner_password')
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'memfleet_owner') \gexec
SELECT format('CREATE ROLE memfleet_app LOGIN PASSWORD %L NOSUPERUSER NOBYPASSRLS', :'app_password')
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'memfleet_app') \gexec

SELECT format('ALTER DATABASE %I OWNER TO memfleet_owner', current_database()) \gexec
SELECT format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database()) \gexec
SELECT format('GRANT CONNECT ON DATABASE %I TO memfleet_app', current_database()) \gexec
ALTER SCHEMA public OWNER TO memfleet_owner;
GRANT USAGE ON SCHEMA public TO memfleet_app;

-- Needs a superuser, or a provider that lists `vector` among the extensions it allows.
CREATE EXTENSION IF NOT EXISTS vector;

-- Whatever a migration makes, the fleet may use and not change.
ALTER DEFAULT PRIVILEGES FOR ROLE memfleet_owner GRANT USAGE ON SCHEMAS TO memfleet_app;
ALTER DEFAULT PRIVILEGES FOR ROLE memfleet_owner GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO memfleet_app;
ALTER DEFAULT PRIVILEGES FOR ROLE memfleet_owner GRANT USAGE, SELECT ON SEQUENCES TO memfleet_app;
ALTER DEFAULT PRIVILEGES FOR ROLE memfleet_owner GRANT EXECUTE ON FUNCTIONS TO memfleet_app;
