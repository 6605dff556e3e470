-- Plans of the functions that expire rows. Servers before version 18 plan them without the values of
-- their parameters, expect a third of the table, and read all of it instead of the index of ends.
SET LOCAL ROLE memfleet_sweep;
ALTER FUNCTION expire_exchanges SET enable_seqscan = off;
ALTER FUNCTION expire_injections SET enable_seqscan = off;
ALTER FUNCTION expire_conversations SET enable_seqscan = off;
SET LOCAL ROLE NONE;
