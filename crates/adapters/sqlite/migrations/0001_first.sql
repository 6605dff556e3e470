-- Spaces. The row of an erased space stays without its names: its change sequence and passage numbers must not start again.
CREATE TABLE spaces (
    id           INTEGER PRIMARY KEY,
    key          BLOB    NOT NULL UNIQUE, -- hash of tenant and name
    tenant       TEXT,
    name         TEXT,
    settings     TEXT    NOT NULL,        -- JSON
    created_at   INTEGER NOT NULL,        -- all times: microseconds since 1970, UTC
    head         INTEGER NOT NULL DEFAULT 0,
    next_passage INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX spaces_by_name ON spaces (tenant, name);

CREATE TABLE sessions (
    id         INTEGER PRIMARY KEY,
    space      INTEGER NOT NULL REFERENCES spaces,
    name       TEXT    NOT NULL,
    turns      INTEGER NOT NULL,
    started_at INTEGER NOT NULL, -- earliest recorded time
    first_at   INTEGER NOT NULL, -- earliest and latest event time (else recorded time)
    last_at    INTEGER NOT NULL,
    UNIQUE (space, name)
) STRICT;
CREATE INDEX sessions_by_start ON sessions (space, started_at, id);
CREATE INDEX sessions_by_first ON sessions (space, first_at, id);

CREATE TABLE embedding_spaces (
    id   INTEGER PRIMARY KEY,
    name TEXT    NOT NULL UNIQUE -- JSON
) STRICT;

CREATE TABLE turns (
    key           INTEGER PRIMARY KEY,
    space         INTEGER NOT NULL,
    id            BLOB    NOT NULL,
    session       INTEGER NOT NULL REFERENCES sessions,
    acceptance    INTEGER NOT NULL,
    ordinal       INTEGER NOT NULL,
    position      INTEGER NOT NULL,
    change        INTEGER NOT NULL,
    external_id   TEXT,
    speaker       TEXT    NOT NULL,
    role          INTEGER NOT NULL,
    trust         INTEGER NOT NULL,
    text          TEXT    NOT NULL,
    media         TEXT,              -- JSON, absent where there is none
    metadata      TEXT,              -- JSON, absent where there is none
    event_time    INTEGER,
    recorded_at   INTEGER NOT NULL,
    content_hash  BLOB    NOT NULL,
    replaces      BLOB,
    replaced_by   BLOB,
    replaced_at   INTEGER,
    first_passage INTEGER NOT NULL,
    passages      INTEGER NOT NULL,
    embedding     INTEGER REFERENCES embedding_spaces, -- absent while a passage has no vectors
    UNIQUE (space, id)
) STRICT;
CREATE INDEX turns_in_order ON turns (session, acceptance, ordinal);
CREATE INDEX turns_by_change ON turns (space, change);
CREATE INDEX turns_by_replaced ON turns (space, replaces) WHERE replaces IS NOT NULL;
CREATE INDEX turns_by_embedding ON turns (embedding);

-- Passages of a space are neighbours: key = space << 32 | number in the space.
CREATE TABLE passages (
    key      INTEGER PRIMARY KEY,
    start    INTEGER NOT NULL,
    length   INTEGER NOT NULL,
    terms    BLOB    NOT NULL,
    features BLOB    NOT NULL,
    pieces   BLOB    NOT NULL,
    sentence BLOB
) STRICT;

CREATE TABLE token_vectors (
    key     INTEGER PRIMARY KEY,
    vectors BLOB    NOT NULL
) STRICT;

-- One row a label of a turn; `label` is a hash of key and value.
CREATE TABLE labels (
    space INTEGER NOT NULL,
    label INTEGER NOT NULL,
    turn  INTEGER NOT NULL,
    PRIMARY KEY (space, label, turn)
) STRICT, WITHOUT ROWID;

CREATE TABLE batches (
    space        INTEGER NOT NULL,
    id           BLOB    NOT NULL,
    change       INTEGER NOT NULL,
    payload_hash BLOB,
    receipts     BLOB    NOT NULL,
    PRIMARY KEY (space, id)
) STRICT, WITHOUT ROWID;

-- What was forgotten. `acceptance` is the last position given out by then: a delivery from before does not bring it back.
CREATE TABLE forgotten (
    space      INTEGER NOT NULL,
    id         BLOB    NOT NULL,
    change     INTEGER NOT NULL,
    acceptance INTEGER NOT NULL,
    PRIMARY KEY (space, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX forgotten_by_change ON forgotten (space, change);

CREATE TABLE queue (
    acceptance   INTEGER PRIMARY KEY AUTOINCREMENT,
    space_key    BLOB    NOT NULL,
    batch        BLOB    NOT NULL,
    turns        INTEGER NOT NULL,
    accepted_at  INTEGER NOT NULL,
    attempts     INTEGER NOT NULL DEFAULT 0,
    payload_hash BLOB,
    payload      TEXT    NOT NULL, -- JSON
    UNIQUE (space_key, batch)
) STRICT;
CREATE INDEX queue_depth ON queue (accepted_at, turns);

CREATE TABLE dead_letters (
    acceptance INTEGER PRIMARY KEY,
    space_key  BLOB    NOT NULL,
    batch      BLOB    NOT NULL,
    payload    TEXT    NOT NULL, -- JSON
    reason     TEXT    NOT NULL,
    failed_at  INTEGER NOT NULL,
    attempts   INTEGER NOT NULL
) STRICT;
CREATE INDEX dead_letters_by_batch ON dead_letters (space_key, batch);

-- A row while text of forgotten turns may still lie in unused bytes of the files.
CREATE TABLE unscrubbed (
    id INTEGER PRIMARY KEY CHECK (id = 1)
) STRICT;
