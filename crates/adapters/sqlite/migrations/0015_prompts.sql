-- Documents of tenants in versions, of which none is changed.
CREATE TABLE settings (
    tenant  TEXT    NOT NULL,
    kind    TEXT    NOT NULL,
    space   TEXT    NOT NULL, -- empty where it is for all of the tenant's
    name    TEXT    NOT NULL,
    version INTEGER NOT NULL,
    author  TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    body    TEXT              -- absent where this version removed it
) STRICT;
CREATE UNIQUE INDEX settings_in_order ON settings (tenant, kind, space, name, version);
CREATE INDEX settings_by_space ON settings (tenant, space);

-- How often the settings of a tenant were changed.
CREATE TABLE setting_revisions (
    tenant   TEXT PRIMARY KEY,
    revision INTEGER NOT NULL
) STRICT;

-- What gateways know of exchanges under way.
CREATE TABLE exchanges (
    id         INTEGER PRIMARY KEY,
    tenant     TEXT    NOT NULL,
    session    TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    tokens     INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    forgotten  INTEGER NOT NULL,
    turns      TEXT    NOT NULL, -- JSON
    state      TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX exchanges_by_name ON exchanges (tenant, session, name);
CREATE INDEX exchanges_by_end ON exchanges (expires_at);

-- Whose words the states hold.
CREATE TABLE exchange_turns (
    tenant   TEXT    NOT NULL,
    space    TEXT    NOT NULL,
    turn     BLOB    NOT NULL,
    exchange INTEGER NOT NULL REFERENCES exchanges ON DELETE CASCADE,
    PRIMARY KEY (tenant, space, turn, exchange)
) STRICT, WITHOUT ROWID;
CREATE INDEX exchange_turns_by_exchange ON exchange_turns (exchange);

-- What entered which prompt.
CREATE TABLE injections (
    key        INTEGER PRIMARY KEY,
    tenant     TEXT    NOT NULL,
    id         BLOB    NOT NULL,
    at         INTEGER NOT NULL,
    expires_at INTEGER,
    forgotten  INTEGER NOT NULL,
    caller     TEXT    NOT NULL,
    request_id TEXT    NOT NULL,
    session    TEXT,
    exchange   TEXT,
    decision   TEXT    NOT NULL,
    spaces     TEXT    NOT NULL, -- JSON
    turns      TEXT    NOT NULL, -- JSON
    block_hash BLOB,
    block      TEXT,
    record     TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX injections_by_id ON injections (tenant, id);
CREATE INDEX injections_in_order ON injections (tenant, at, id);
CREATE INDEX injections_by_session ON injections (tenant, session, at, id) WHERE session IS NOT NULL;
CREATE INDEX injections_by_end ON injections (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE injection_spaces (
    tenant    TEXT    NOT NULL,
    space     TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    id        BLOB    NOT NULL,
    injection INTEGER NOT NULL REFERENCES injections ON DELETE CASCADE,
    PRIMARY KEY (tenant, space, at, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX injection_spaces_by_injection ON injection_spaces (injection);

CREATE TABLE injection_turns (
    tenant    TEXT    NOT NULL,
    space     TEXT    NOT NULL,
    turn      BLOB    NOT NULL,
    at        INTEGER NOT NULL,
    id        BLOB    NOT NULL,
    injection INTEGER NOT NULL REFERENCES injections ON DELETE CASCADE,
    PRIMARY KEY (tenant, space, turn, at, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX injection_turns_by_injection ON injection_turns (injection);
