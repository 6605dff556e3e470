-- The semantic graph: what facts say, between entities. Lost without loss: it is derived from `derivations`.
CREATE TABLE entities (
    space INTEGER NOT NULL,
    id    BLOB    NOT NULL,
    key   TEXT    NOT NULL,
    name  TEXT    NOT NULL,
    PRIMARY KEY (space, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX entities_in_order ON entities (space, key);

CREATE TABLE triplets (
    space       INTEGER NOT NULL,
    fact        BLOB    NOT NULL,
    object      BLOB    NOT NULL,
    subject     BLOB    NOT NULL,
    valid_from  INTEGER,
    valid_until INTEGER,
    document    TEXT    NOT NULL, -- JSON
    PRIMARY KEY (space, fact, object)
) STRICT, WITHOUT ROWID;
CREATE INDEX triplets_by_subject ON triplets (space, subject, fact, object);
CREATE INDEX triplets_by_object ON triplets (space, object, fact);
