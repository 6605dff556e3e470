-- The order in which a space is exported.
CREATE INDEX turns_by_acceptance ON turns (space, acceptance, ordinal);
