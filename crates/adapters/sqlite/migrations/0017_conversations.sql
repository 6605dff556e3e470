-- What conversations without a name are known again by. They name no words, only digests of them.
CREATE TABLE conversations (
    id         INTEGER PRIMARY KEY,
    tenant     TEXT    NOT NULL,
    session    TEXT    NOT NULL,
    space      TEXT    NOT NULL,
    caller     TEXT    NOT NULL,
    opening    TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    heard_at   INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    lineage    TEXT    NOT NULL, -- JSON
    state      TEXT    NOT NULL  -- empty where something of the space was forgotten since
) STRICT;
CREATE UNIQUE INDEX conversations_by_session ON conversations (tenant, session);
CREATE INDEX conversations_by_key ON conversations (tenant, space, caller, key, heard_at);
CREATE INDEX conversations_by_opening ON conversations (tenant, space, caller, opening, heard_at);
CREATE INDEX conversations_in_order ON conversations (tenant, space, caller, heard_at);
CREATE INDEX conversations_by_end ON conversations (expires_at);
