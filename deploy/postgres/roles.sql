-- Who does what in the database of a fleet. For a superuser, in the database that memfleet will use; it may be run again:
--
--   MEMFLEET_OWNER_PASSWORD=… MEMFLEET_FLEET_PASSWORD=… psql -d memfleet -f roles.sql
--
-- The images of PostgreSQL run it by themselves when they find it in /docker-entrypoint-initdb.d.
--
--   memfleet_owner   logs in for migrations and owns all tables
--   memfleet_fleet   logs in for the roles of the fleet; owns nothing and acts as memfleet_app
--   memfleet_app     what a transaction acts as; row-level security binds it to one tenant
--   memfleet_sweep   what two functions act as that find work across tenants; nobody logs in as it
\set ON_ERROR_STOP on
\getenv owner_password MEMFLEET_OWNER_PASSWORD
\getenv fleet_password MEMFLEET_FLEET_PASSWORD

-- Roles belong to the server, not to the database: those that are there stay as they are, passwords included.
SELECT format('CREATE ROLE %I %s NOSUPERUSER NOBYPASSRLS', name, attributes)
FROM (VALUES
    ('memfleet_app', 'NOLOGIN'),
    ('memfleet_sweep', 'NOLOGIN'),
    ('memfleet_owner', format('LOGIN PASSWORD %L', :'owner_password')),
    ('memfleet_fleet', format('LOGIN PASSWORD %L', :'fleet_password'))
) AS wanted (name, attributes)
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec
GRANT memfleet_app, memfleet_sweep TO memfleet_owner;
GRANT memfleet_app TO memfleet_fleet;

SELECT format('ALTER DATABASE %I OWNER TO memfleet_owner', current_database()) \gexec
SELECT format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database()) \gexec
SELECT format('GRANT CONNECT ON DATABASE %I TO memfleet_fleet', current_database()) \gexec

-- Needs a superuser, or a provider that lists `vector` among the extensions it allows.
CREATE EXTENSION IF NOT EXISTS vector;
