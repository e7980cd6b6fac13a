-- What attempts print, piece by piece, as their nodes tell it. A piece is written once; the pool keeps so much of each
-- attempt and no more. Read like the log of events: behind a cursor, and never beyond an open transaction.
CREATE SEQUENCE attempt_log_number;

CREATE TABLE attempt_log (
    id           uuid NOT NULL PRIMARY KEY,
    job_id       uuid NOT NULL,
    attempt_id   uuid NOT NULL,
    task         integer NOT NULL,
    stream       text NOT NULL CHECK (stream IN ('out', 'err', 'pool')),
    text         text NOT NULL CHECK (length(text) BETWEEN 1 AND 65536),
    at           timestamptz NOT NULL,
    generation   bigint NOT NULL,
    transaction  xid8 NOT NULL DEFAULT pg_current_xact_id(),
    number       bigint NOT NULL DEFAULT nextval('attempt_log_number')
) PARTITION BY RANGE (id);
CREATE INDEX attempt_log_job ON attempt_log (job_id, generation, transaction, number);

INSERT INTO partitioned_table (name) VALUES ('attempt_log');
