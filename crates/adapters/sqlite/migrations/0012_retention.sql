-- Since when a space is on legal hold, and why; absent where it is not.
ALTER TABLE spaces ADD COLUMN held_since INTEGER;
ALTER TABLE spaces ADD COLUMN held_reason TEXT;

-- What retention goes through: the turns of a space by their time, versions that are not current any more, and current ones that end.
CREATE INDEX turns_by_time ON turns (space, coalesce(event_time, recorded_at), acceptance, ordinal);
CREATE INDEX derivations_superseded ON derivations (space, known_until) WHERE known_until IS NOT NULL;
CREATE INDEX derivations_ended ON derivations (space, valid_until) WHERE known_until IS NULL AND valid_until IS NOT NULL;

-- Facts and episodes that retention removed, so that indexes let go of them.
CREATE TABLE removed_derivations (
    space  INTEGER NOT NULL,
    id     BLOB    NOT NULL,
    change INTEGER NOT NULL,
    PRIMARY KEY (space, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX removed_derivations_by_change ON removed_derivations (space, change);
