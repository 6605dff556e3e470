-- Hash of the batch as it was published: a letter holds only the turns that failed. Absent where a part was forgotten.
ALTER TABLE dead_letters ADD COLUMN payload_hash BLOB;
