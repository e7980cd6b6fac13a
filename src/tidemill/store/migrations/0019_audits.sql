-- Results that a house node executes again. An audit is a task of its own, with a row among the tasks and in the queue like
-- any other, so that nothing tells it from one; its job is the audited attempt, so no customer's job counts it. The lease
-- of the audited attempt waits for ever, until the audit's task has ended.
CREATE TABLE audit (
    -- The attempt whose result it is.
    id          uuid NOT NULL PRIMARY KEY,
    -- Of which task, whose, and the hash of that result.
    of_task_id  uuid NOT NULL,
    owner_id    uuid NOT NULL,
    claimed     bytea NOT NULL,
    -- The audit's own task, and the hash of what the house came to.
    task_id     uuid NOT NULL,
    found       bytea,
    verdict     text CHECK (verdict IN ('pass', 'review', 'fail')),
    begun_at    timestamptz NOT NULL,
    -- When its task ended, and when the result was judged by it.
    ended_at    timestamptz,
    judged_at   timestamptz,
    CHECK ((verdict IS NULL) = (judged_at IS NULL))
) PARTITION BY RANGE (id);
CREATE INDEX audit_of_task ON audit (of_task_id);
CREATE INDEX audit_task ON audit (task_id);
CREATE INDEX audit_open ON audit (begun_at) WHERE ended_at IS NULL;
CREATE INDEX audit_ended ON audit (id) WHERE ended_at IS NOT NULL AND judged_at IS NULL;

INSERT INTO partitioned_table (name) VALUES ('audit');
