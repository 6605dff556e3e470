-- Exchanges and injections whose turns are not listed in exchange_turns and injection_turns yet: many are listed at once, in the order of
-- these tables, since each turn has a place of its own in them.
CREATE TABLE unlisted_exchanges (
    exchange INTEGER PRIMARY KEY REFERENCES exchanges ON DELETE CASCADE
) STRICT;
CREATE TABLE unlisted_injections (
    injection INTEGER PRIMARY KEY REFERENCES injections ON DELETE CASCADE
) STRICT;
