-- Code of the language that the space's first turns were analysed in; absent until they say enough to tell.
ALTER TABLE spaces ADD COLUMN language TEXT;
