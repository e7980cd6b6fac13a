-- An attempt that was given up may still deliver first: on which terms it was placed is then wanted again.
ALTER TABLE attempt ADD COLUMN hourly_uc bigint NOT NULL DEFAULT 0, ADD COLUMN quoted_ms bigint NOT NULL DEFAULT 0;
