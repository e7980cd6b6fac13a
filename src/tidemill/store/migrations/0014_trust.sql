-- Trust: results that the house checks, the key that opens private results for that, and how many results of each owner
-- were verified.

-- Results that a house node executes again. An audit is a task of its own, with a row among the tasks and in the queue, so
-- that nothing tells it from any other task. Its job is the audited attempt, so no customer's job counts it. The lease of
-- the audited attempt does not run out: it waits until the audit's task has ended.
CREATE TABLE audit (
    -- The attempt whose result it is.
    id          uuid NOT NULL PRIMARY KEY,
    -- Of which task, whose, and the hash of that result.
    of_task_id  uuid NOT NULL,
    owner_id    uuid NOT NULL,
    -- The customer of that task, whose turn the audit takes.
    account_id  uuid NOT NULL,
    claimed     bytea NOT NULL,
    -- The audit's own task, and the hash of what the house came to.
    task_id     uuid NOT NULL,
    found       bytea,
    -- The hash of what the house came to before, where it had to execute the task twice to see whether its result repeats.
    first_found bytea,
    verdict     text CHECK (verdict IN ('pass', 'review', 'fail')),
    begun_at    timestamptz NOT NULL,
    -- When its task ended, and when the result was judged by it.
    ended_at    timestamptz,
    judged_at   timestamptz,
    -- A right result whose times cannot be true, and that the house could not execute: since when an operator is asked
    -- whether it is paid, why, and what was decided, by whom and why.
    asked_at    timestamptz,
    doubt       text,
    decided     text CHECK (decided IN ('pass', 'fail')),
    decided_by  text,
    decided_for text,
    CHECK ((verdict IS NULL) = (judged_at IS NULL)),
    CHECK ((asked_at IS NULL) = (doubt IS NULL)),
    CHECK (num_nulls(decided, decided_by, decided_for) IN (0, 3) AND (decided IS NULL OR asked_at IS NOT NULL))
) PARTITION BY RANGE (id);
CREATE INDEX audit_of_task ON audit (of_task_id);
CREATE INDEX audit_task ON audit (task_id);
CREATE INDEX audit_open ON audit (begun_at) WHERE ended_at IS NULL;
CREATE INDEX audit_ended ON audit (id) WHERE ended_at IS NOT NULL AND judged_at IS NULL;

CREATE INDEX audit_asked ON audit (id) WHERE asked_at IS NOT NULL AND decided IS NULL;

INSERT INTO partitioned_table (name) VALUES ('audit');

-- The pool's verification opens private results with this key. Nodes seal them to its public half. It is made once and kept
-- for ever, because nothing else opens what was sealed to it.
CREATE TABLE verification_key (
    id           uuid PRIMARY KEY,
    only_one     boolean NOT NULL UNIQUE DEFAULT true CHECK (only_one),
    private      bytea NOT NULL,
    private_key  uuid GENERATED ALWAYS AS (data_key_of(private)) STORED REFERENCES data_key,
    made_at      timestamptz NOT NULL
);
CREATE INDEX verification_key_private_key ON verification_key (private_key);

-- What each owner's attempts came to: how many were verified, were late, failed, were declined after they had been accepted,
-- or were wrong. They are counted in the transaction that ends them, because they are too many to be counted later.
CREATE TABLE owner_record (
    owner_id        uuid PRIMARY KEY,
    verified        bigint NOT NULL,
    late            bigint NOT NULL,
    crashed         bigint NOT NULL,
    broke_its_word  bigint NOT NULL,
    wrong           bigint NOT NULL
) WITH (fillfactor = 50);
