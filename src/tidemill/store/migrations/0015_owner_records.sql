-- What each owner's attempts came to, beside verified results: what was late, failed, was declined after it had been
-- accepted, or was wrong. They are counted in the transaction that ends the attempts.
ALTER TABLE owner_record DROP CONSTRAINT owner_record_verified_check;
ALTER TABLE owner_record ALTER verified SET DEFAULT 0, ADD CHECK (verified >= 0);
ALTER TABLE owner_record
    ADD late bigint NOT NULL DEFAULT 0,
    ADD crashed bigint NOT NULL DEFAULT 0,
    ADD broke_its_word bigint NOT NULL DEFAULT 0,
    ADD wrong bigint NOT NULL DEFAULT 0;
