-- Vectors of at most two embedding spaces a memory space, in two places. Those of `spaces.embedding` stand in `passages` and
-- `token_vectors`, those of `spaces.second_embedding` in `second_vectors`. Searches use one of them.
ALTER TABLE spaces ADD COLUMN embedding INTEGER;
ALTER TABLE spaces ADD COLUMN second_embedding INTEGER;
ALTER TABLE spaces ADD COLUMN serves_second INTEGER NOT NULL DEFAULT 0;
ALTER TABLE spaces ADD COLUMN is_other_whole INTEGER NOT NULL DEFAULT 0;
-- For each place: the change up to which nothing lacks vectors in it. Absent where nothing lacks any.
ALTER TABLE spaces ADD COLUMN embedded INTEGER;
ALTER TABLE spaces ADD COLUMN second_embedded INTEGER;
-- The place whose vectors are being removed: 0 the first, 1 the second. What a comparison of the two said, as JSON.
ALTER TABLE spaces ADD COLUMN emptying INTEGER;
ALTER TABLE spaces ADD COLUMN comparison TEXT;
CREATE INDEX spaces_unembedded ON spaces (embedding) WHERE embedded IS NOT NULL;
CREATE INDEX spaces_second_unembedded ON spaces (second_embedding) WHERE second_embedded IS NOT NULL;
CREATE INDEX spaces_with_second ON spaces (second_embedding) WHERE second_embedding IS NOT NULL;

CREATE TABLE second_vectors (
    key      INTEGER PRIMARY KEY, -- as in `passages`
    pieces   BLOB    NOT NULL,
    sentence BLOB    NOT NULL,
    vectors  BLOB    NOT NULL
) STRICT;

-- The embedding space of what is there: the newest of each memory space. Vectors of earlier ones go.
UPDATE spaces SET embedding = (
    SELECT t.embedding FROM turns t WHERE t.space = spaces.id AND t.embedding IS NOT NULL ORDER BY t.change DESC LIMIT 1);
CREATE TEMP TABLE outdated AS
    SELECT g.key FROM turns t JOIN spaces p ON p.id = t.space
    JOIN passages g ON g.key >= (t.space << 32) + t.first_passage AND g.key < (t.space << 32) + t.first_passage + t.passages
    WHERE t.embedding <> p.embedding
    -- Nothing says which model the vectors of derived memory are of.
    UNION SELECT (space << 32) + passage FROM derivations WHERE (SELECT count(*) FROM embedding_spaces) > 1
    UNION SELECT (space << 32) + passage FROM staged
        WHERE passage IS NOT NULL AND (SELECT count(*) FROM embedding_spaces) > 1;
UPDATE spaces SET embedded = 0
WHERE id IN (SELECT space FROM turns WHERE embedding IS NULL) OR id IN (SELECT key >> 32 FROM outdated);
UPDATE passages SET sentence = NULL, pieces = x'' WHERE key IN (SELECT key FROM outdated);
DELETE FROM token_vectors WHERE key IN (SELECT key FROM outdated);
DROP TABLE outdated;
DROP INDEX turns_by_embedding;

-- A change of the embedding model: what the operator wants, as JSON.
CREATE TABLE model_switch (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    document TEXT    NOT NULL
) STRICT;
