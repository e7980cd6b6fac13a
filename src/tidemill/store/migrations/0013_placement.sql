-- Placement: why tasks went where they went, and why others wait. Both are bounded: only the newest explanations are kept,
-- and what is said of a task that waits is deleted when it waits no more.

CREATE TABLE explanation (
    id          uuid PRIMARY KEY,
    job_id      uuid NOT NULL,
    -- When it was decided: attempts that were offered then, at these tasks, are what it explains.
    at          timestamptz NOT NULL,
    kind        text NOT NULL,
    policy      text NOT NULL,
    lower_wins  boolean NOT NULL,
    nodes       integer NOT NULL,
    task_ids    uuid[] NOT NULL CHECK (cardinality(task_ids) BETWEEN 1 AND 100),
    -- The candidates that were looked at, the chosen one first; and what was said of each, in the same order.
    node_ids    uuid[] NOT NULL CHECK (cardinality(node_ids) BETWEEN 1 AND 20),
    weighed     jsonb NOT NULL
);
CREATE INDEX explanation_job ON explanation (job_id, at);

CREATE TABLE waiting_for (
    job_id   uuid NOT NULL,
    -- One that waits, for all of the job that ask the same.
    task_id  uuid NOT NULL,
    at       timestamptz NOT NULL,
    nodes    integer NOT NULL,
    looked   integer NOT NULL,
    soon     integer NOT NULL,
    counts   jsonb NOT NULL,
    PRIMARY KEY (job_id, task_id)
);
