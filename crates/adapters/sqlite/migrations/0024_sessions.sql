-- The first and the last time of a session, looked for when a turn at its edge goes.
CREATE INDEX turns_by_session_time ON turns (session, coalesce(event_time, recorded_at));
CREATE INDEX turns_by_session_record ON turns (session, recorded_at);
