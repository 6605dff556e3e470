-- A row for every removal whose text may still lie in unused bytes of the files.
CREATE TABLE waiting (
    id INTEGER PRIMARY KEY AUTOINCREMENT
) STRICT;
INSERT INTO waiting (id) SELECT id FROM unscrubbed;
DROP TABLE unscrubbed;
ALTER TABLE waiting RENAME TO unscrubbed;
