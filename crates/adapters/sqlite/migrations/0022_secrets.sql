-- Keys of the digests of messages, one a space; without the name of a space, of what a tenant does in several.
CREATE TABLE secrets (
    tenant TEXT NOT NULL,
    space  TEXT NOT NULL, -- empty: of none
    secret BLOB NOT NULL,
    PRIMARY KEY (tenant, space)
) STRICT, WITHOUT ROWID;

-- These digests had no key. They are written with one when the conversation is heard of again.
UPDATE conversations SET opening = '';
