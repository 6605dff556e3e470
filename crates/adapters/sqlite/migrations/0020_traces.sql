-- The call that accepted a batch: its trace (W3C traceparent) and its name in logs.
ALTER TABLE queue ADD COLUMN traceparent TEXT;
ALTER TABLE queue ADD COLUMN request_id TEXT;
