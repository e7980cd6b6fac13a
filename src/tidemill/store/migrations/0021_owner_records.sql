-- How many results of each owner were verified. It is counted when they are paid: attempts are too many to be counted later.
CREATE TABLE owner_record (
    owner_id  uuid PRIMARY KEY,
    verified  bigint NOT NULL CHECK (verified > 0)
) WITH (fillfactor = 50);

INSERT INTO owner_record (owner_id, verified)
SELECT owner_id, count(*) FROM attempt WHERE verdict = 'pass' AND paid_uc > 0 GROUP BY owner_id;
