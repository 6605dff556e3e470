-- Of a space that was forgotten while a graph beside the store had something of it: its name, which goes when the graph is clear of it, and
-- until when the worker has it that was writing to the graph, or that clears it.
ALTER TABLE spaces ADD COLUMN left_over text COLLATE "C";
ALTER TABLE spaces ADD COLUMN left_over_until bigint;
CREATE INDEX spaces_left_over ON spaces (tenant, id) WHERE left_over IS NOT NULL;

GRANT SELECT (left_over) ON spaces TO memfleet_sweep;
CREATE FUNCTION left_over_spaces(most bigint) RETURNS TABLE (tenant text, name text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = memfleet, pg_temp
AS $$
    SELECT s.tenant, s.left_over FROM spaces s WHERE s.left_over IS NOT NULL ORDER BY s.tenant, s.id LIMIT $1
$$;
REVOKE ALL ON FUNCTION left_over_spaces FROM PUBLIC;
GRANT EXECUTE ON FUNCTION left_over_spaces TO memfleet_app;
GRANT CREATE ON SCHEMA memfleet TO memfleet_sweep;
ALTER FUNCTION left_over_spaces OWNER TO memfleet_sweep;
REVOKE CREATE ON SCHEMA memfleet FROM memfleet_sweep;
