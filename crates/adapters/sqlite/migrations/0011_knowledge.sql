-- Versions of facts and episodes. The current one is the one whose `known_until` is absent.
CREATE TABLE derivations (
    key          INTEGER PRIMARY KEY,
    space        INTEGER NOT NULL,
    id           BLOB    NOT NULL,
    version      INTEGER NOT NULL,
    kind         INTEGER NOT NULL,
    first        INTEGER NOT NULL, -- change sequence of the space with which its first version came: the order of listings
    change       INTEGER NOT NULL, -- that with which this version came, or became current again
    written_by   BLOB    NOT NULL, -- the change in `changes`
    subject      TEXT,             -- keys of a fact's claim
    attribute    TEXT,
    valid_from   INTEGER,
    valid_until  INTEGER,
    known_from   INTEGER NOT NULL,
    known_until  INTEGER,
    succeeded_by BLOB,
    passage      INTEGER NOT NULL, -- what it is found by
    document     TEXT    NOT NULL, -- JSON
    UNIQUE (space, id, version)
) STRICT;
CREATE INDEX derivations_in_order ON derivations (space, first);
CREATE INDEX derivations_by_change ON derivations (space, change);
CREATE INDEX derivations_by_claim ON derivations (space, subject, attribute) WHERE subject IS NOT NULL;
CREATE INDEX derivations_by_writer ON derivations (space, written_by);
CREATE INDEX derivations_by_successor ON derivations (space, succeeded_by) WHERE succeeded_by IS NOT NULL;

-- Lineage: every turn that a derivation draws on.
CREATE TABLE derivation_turns (
    space      INTEGER NOT NULL,
    turn       BLOB    NOT NULL,
    derivation BLOB    NOT NULL,
    PRIMARY KEY (space, turn, derivation)
) STRICT, WITHOUT ROWID;
CREATE INDEX derivation_turns_by_derivation ON derivation_turns (space, derivation);

CREATE TABLE changes (
    key         INTEGER PRIMARY KEY,
    space       INTEGER NOT NULL,
    id          BLOB    NOT NULL,
    reverted_by BLOB,
    document    TEXT    NOT NULL, -- JSON
    UNIQUE (space, id)
) STRICT;

CREATE TABLE conflicts (
    key      INTEGER PRIMARY KEY,
    space    INTEGER NOT NULL,
    id       BLOB    NOT NULL,
    older    BLOB    NOT NULL,
    newer    BLOB    NOT NULL,
    status   INTEGER NOT NULL,
    document TEXT    NOT NULL, -- JSON
    UNIQUE (space, id)
) STRICT;
CREATE INDEX conflicts_by_status ON conflicts (status, space, key);
CREATE INDEX conflicts_by_older ON conflicts (space, older);
CREATE INDEX conflicts_by_newer ON conflicts (space, newer);

-- How far each agent has come in a space, and until when one worker has it.
CREATE TABLE progress (
    space        INTEGER NOT NULL,
    stage        TEXT    NOT NULL,
    reached      INTEGER NOT NULL,
    leased_until INTEGER,
    goal         INTEGER,          -- of a rebuild: the row ends with it
    PRIMARY KEY (space, stage)
) STRICT, WITHOUT ROWID;

-- What a rebuild found and is not in use yet.
CREATE TABLE staged (
    space    INTEGER NOT NULL,
    id       BLOB    NOT NULL,
    passage  INTEGER,          -- absent: the fact is in use, and was derived again
    document TEXT,             -- JSON
    PRIMARY KEY (space, id)
) STRICT, WITHOUT ROWID;

-- What language models cost a tenant on a day (days of the common era, UTC), reservations included.
CREATE TABLE model_use (
    tenant TEXT    NOT NULL,
    day    INTEGER NOT NULL,
    calls  INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    micros INTEGER NOT NULL,
    PRIMARY KEY (tenant, day)
) STRICT, WITHOUT ROWID;
