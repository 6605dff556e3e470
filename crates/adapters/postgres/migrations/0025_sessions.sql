-- no-transaction

-- The first and the last time of a session, looked for when a turn at its edge goes.
CREATE INDEX CONCURRENTLY turns_by_session_time ON turns (tenant, space, session, coalesce(event_time, recorded_at));

CREATE INDEX CONCURRENTLY turns_by_session_record ON turns (tenant, space, session, recorded_at);
