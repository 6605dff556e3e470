-- Attempts of a batch have rows of their own: counting one in the row of the batch would write its whole payload again.
CREATE TABLE queue_attempts (
    acceptance INTEGER PRIMARY KEY REFERENCES queue (acceptance) ON DELETE CASCADE,
    attempts   INTEGER NOT NULL
) STRICT;
INSERT INTO queue_attempts SELECT acceptance, attempts FROM queue WHERE attempts > 0;
ALTER TABLE queue DROP COLUMN attempts;

-- The payload of a large batch is written in parts, so that others write between them. Its row in the queue, which comes last, says which
-- parts they are, and has no payload itself.
CREATE TABLE queue_parts (
    part    INTEGER PRIMARY KEY,
    payload INTEGER NOT NULL,
    text    TEXT    NOT NULL
) STRICT;
CREATE INDEX queue_parts_by_payload ON queue_parts (payload);
ALTER TABLE queue ADD COLUMN parts INTEGER;
CREATE TRIGGER queue_parts_of_removed AFTER DELETE ON queue WHEN old.parts IS NOT NULL BEGIN
    DELETE FROM queue_parts WHERE payload = old.parts;
END;
CREATE TRIGGER queue_parts_of_rewritten AFTER UPDATE OF parts ON queue WHEN old.parts IS NOT NULL AND new.parts IS NULL BEGIN
    DELETE FROM queue_parts WHERE payload = old.parts;
END;

-- The queue with whole payloads.
CREATE VIEW queued AS
SELECT acceptance, tenant, space_key, batch, accepted_at, traceparent, request_id,
    CASE WHEN parts IS NULL THEN payload ELSE coalesce((
        SELECT group_concat(p.text, '' ORDER BY p.part) FROM queue_parts p WHERE p.payload = parts), '') END AS payload
FROM queue;
