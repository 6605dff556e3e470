-- API keys by the hashes of their secrets. Rows stay: what was revoked must not come back.
CREATE TABLE keys (
    id               BLOB    PRIMARY KEY,
    tenant           TEXT    NOT NULL,
    hash             BLOB    NOT NULL UNIQUE,
    label            TEXT    NOT NULL,
    rights           INTEGER NOT NULL, -- bits
    spaces           TEXT    NOT NULL, -- JSON
    operator         INTEGER NOT NULL,
    calls_per_minute INTEGER,
    created_at       INTEGER NOT NULL,
    expires_at       INTEGER,
    last_used_at     INTEGER,
    revoked_at       INTEGER,
    replaced_by      BLOB
) STRICT;
CREATE INDEX keys_by_age ON keys (tenant, created_at, id);

-- What tenants may use; no row means no limit.
CREATE TABLE quotas (
    tenant           TEXT PRIMARY KEY,
    calls_per_minute INTEGER,
    turns            INTEGER
) STRICT;

-- Who did what, and which turns entered which prompt: names and ids only.
CREATE TABLE audit (
    id         INTEGER PRIMARY KEY,
    tenant     TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    kind       TEXT    NOT NULL,
    caller     TEXT    NOT NULL,
    request_id TEXT    NOT NULL,
    space      TEXT,
    key        BLOB,
    turns      TEXT, -- JSON, absent where there is none
    detail     TEXT  -- JSON, absent where there is none
) STRICT;
CREATE INDEX audit_in_order ON audit (tenant, at, id);
CREATE INDEX audit_by_age ON audit (at);
