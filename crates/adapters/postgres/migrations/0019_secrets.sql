-- Keys of the digests of messages, one a space; without the name of a space, of what a tenant does in several.
CREATE TABLE secrets (
    tenant text  COLLATE "C" NOT NULL,
    space  text  COLLATE "C" NOT NULL, -- empty: of none
    secret bytea NOT NULL,
    PRIMARY KEY (tenant, space)
);
ALTER TABLE secrets ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON secrets
    USING (tenant = nullif(current_setting('memfleet.tenant', true), ''));
GRANT SELECT, INSERT, UPDATE, DELETE ON secrets TO memfleet_app;
