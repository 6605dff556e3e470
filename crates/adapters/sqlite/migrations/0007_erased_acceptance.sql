-- Last position of acceptance given out when the space was last forgotten as a whole: a delivery from up to there stores nothing.
ALTER TABLE spaces ADD COLUMN erased_acceptance INTEGER;
