-- Jobs, their tasks, and the attempts at them. Whatever is open lives in two small tables whose rows come and go: the queue
-- of tasks that wait for a node, and the leases of attempts that are at work or being judged. A task is in one of them or
-- has ended. Tasks and attempts themselves are written once, and closed once.

CREATE TABLE job (
    id                uuid NOT NULL PRIMARY KEY,
    account_id        uuid NOT NULL REFERENCES account,
    state             text NOT NULL
                      CHECK (state IN ('draft', 'quoted', 'queued', 'running', 'completed', 'failed', 'cancelled', 'expired')),
    closing           text CHECK (closing IN ('called_off', 'out_of_time', 'out_of_budget')),
    kind              text NOT NULL,
    -- As the customer sent it, and as it was understood and priced.
    asked             jsonb NOT NULL,
    quote             jsonb,
    quote_expires_at  timestamptz,
    budget_uc         bigint CHECK (budget_uc > 0),
    hold_id           uuid,
    tasks             integer NOT NULL DEFAULT 0,
    completed         integer NOT NULL DEFAULT 0,
    failed            integer NOT NULL DEFAULT 0,
    cancelled         integer NOT NULL DEFAULT 0,
    spent_uc          bigint NOT NULL DEFAULT 0,
    made_at           timestamptz NOT NULL,
    confirmed_at      timestamptz,
    deadline_at       timestamptz,
    ended_at          timestamptz,
    -- Whoever takes a receipt learns here whether the result must be sealed, without reading any task.
    private           boolean NOT NULL GENERATED ALWAYS AS ((asked ->> 'result_key') IS NOT NULL) STORED,
    -- What the customer calls it, for looking it up.
    name              text NOT NULL GENERATED ALWAYS AS (coalesce(asked ->> 'name', '')) STORED,
    CHECK (completed + failed + cancelled <= tasks)
) PARTITION BY RANGE (id);
CREATE INDEX job_account ON job (account_id, id);
-- By the end of the id and by the name, as people write them.
CREATE INDEX job_end ON job (right(id::text, 8));
CREATE INDEX job_name ON job (name, account_id, id) WHERE name <> '';
-- Jobs that were never confirmed are counted for each account, and deleted when they are old.
CREATE INDEX job_unconfirmed ON job (account_id) WHERE confirmed_at IS NULL;
CREATE INDEX job_unconfirmed_age ON job (quote_expires_at) WHERE confirmed_at IS NULL;
CREATE INDEX job_closing ON job (id) WHERE closing IS NOT NULL AND ended_at IS NULL;

-- Deletes jobs that nobody confirmed and whose quotes expired before an instant. The program's role deletes no jobs, so it
-- does this through a function that runs as the owner and cannot delete a job that was confirmed. One that is being
-- confirmed or quoted anew is locked, and skipped.
CREATE FUNCTION forget_unconfirmed_jobs(before timestamptz, most bigint) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    WITH old AS (
        SELECT id FROM job WHERE confirmed_at IS NULL AND quote_expires_at < before
        ORDER BY quote_expires_at LIMIT most FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM job WHERE id IN (SELECT id FROM old) RETURNING id
    )
    SELECT count(*) FROM gone
$$;

-- What tasks demand of a node, each once: its id is the first bits of the hash of its body. The thousands of tasks of a job
-- often differ in nothing that placement asks for. It is deleted when no open task has had it for a day.
CREATE TABLE demand (
    id       uuid PRIMARY KEY,
    body     jsonb NOT NULL,
    -- When a job was last confirmed whose tasks demand it, to the hour.
    used_at  timestamptz NOT NULL
);

CREATE TABLE task (
    id           uuid NOT NULL PRIMARY KEY,
    job_id       uuid NOT NULL,
    number       integer NOT NULL,
    -- What a node is told (core.jobs.kinds), what it demands of a node, the result that the customer expects, and the most
    -- that it may cost.
    body         bytea NOT NULL,
    demand_id    uuid NOT NULL,
    expected     bytea CHECK (length(expected) = 32),
    cost_max_uc  bigint NOT NULL CHECK (cost_max_uc > 0),
    -- None while it is in the queue or has a lease.
    ended        text CHECK (ended IN ('completed', 'failed', 'cancelled')),
    attempt_id   uuid,
    ended_at     timestamptz,
    CHECK ((ended IS NULL) = (ended_at IS NULL))
) PARTITION BY RANGE (id);
CREATE INDEX task_job ON task (job_id, number);

CREATE TABLE task_queue (
    -- 0 is served first.
    rank        smallint NOT NULL,
    task_id     uuid NOT NULL,
    job_id      uuid NOT NULL,
    account_id  uuid NOT NULL,
    failures    smallint NOT NULL DEFAULT 0,
    tries       smallint NOT NULL DEFAULT 0,
    since       timestamptz NOT NULL,
    PRIMARY KEY (rank, task_id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

CREATE SEQUENCE lease_number;

CREATE TABLE lease (
    attempt_id   uuid PRIMARY KEY,
    task_id      uuid NOT NULL UNIQUE,
    job_id       uuid NOT NULL,
    account_id   uuid NOT NULL,
    node_id      uuid NOT NULL,
    owner_id     uuid NOT NULL,
    rank         smallint NOT NULL,
    failures     smallint NOT NULL,
    -- Also the token: a node that names an older one holds nothing any more.
    tries        smallint NOT NULL,
    state        text NOT NULL DEFAULT 'offered' CHECK (state IN ('offered', 'accepted', 'running', 'submitted')),
    -- The receipt that waits to be judged, and who judges it until when.
    batch_id     uuid,
    place        smallint,
    judge        uuid,
    judge_until  timestamptz,
    -- The price of an hour of the task's share of the machine; the longest time that unknown work is paid for; and the
    -- time that known work is paid for, zero where it is unknown.
    hourly_uc    bigint NOT NULL,
    quoted_ms    bigint NOT NULL,
    work_ms      bigint NOT NULL,
    offered_at   timestamptz NOT NULL,
    -- When the pool learnt that the node had begun, and when it last heard of progress or output: who calls the job off
    -- pays for the time since it began, and its provider gets what was heard of.
    begun_at     timestamptz,
    heard_at     timestamptz,
    -- Whether a house node holds it, and how much of what it printed was kept.
    house        boolean NOT NULL,
    printed_bytes bigint NOT NULL DEFAULT 0,
    deadline_at  timestamptz NOT NULL,
    -- The deadline by how long the pool has listened: our own outage makes nobody late.
    due_us       bigint NOT NULL,
    -- In the order of placing, so that whoever holds a node's link finds what is new.
    number       bigint NOT NULL DEFAULT nextval('lease_number'),
    CHECK ((state = 'submitted') = (batch_id IS NOT NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX lease_node ON lease (node_id);

-- Attempts that are wanted no more, until whoever holds the node's link has told it.
CREATE TABLE call_off (
    attempt_id  uuid PRIMARY KEY,
    node_id     uuid NOT NULL,
    lease       smallint NOT NULL,
    reason      text NOT NULL,
    at          timestamptz NOT NULL
);

CREATE TABLE attempt (
    id           uuid NOT NULL PRIMARY KEY,
    task_id      uuid NOT NULL,
    job_id       uuid NOT NULL,
    node_id      uuid NOT NULL,
    owner_id     uuid NOT NULL,
    lease        smallint NOT NULL,
    state        text NOT NULL,
    verdict      text,
    reason       text NOT NULL,
    -- What its provider got, and the transfer it is part of: one pays all attempts of an owner at a job in a batch.
    paid_uc      bigint NOT NULL DEFAULT 0,
    transfer_id  uuid,
    -- Which receipt: the batch it came in, and its place there.
    batch_id     uuid,
    place        smallint,
    offered_at   timestamptz NOT NULL,
    ended_at     timestamptz NOT NULL,
    -- The terms it was placed on, as in its lease. An attempt that was given up may still deliver first, and is then paid by
    -- them.
    hourly_uc    bigint NOT NULL DEFAULT 0,
    quoted_ms    bigint NOT NULL DEFAULT 0,
    work_ms      bigint NOT NULL DEFAULT 0
) PARTITION BY RANGE (id);
CREATE INDEX attempt_task ON attempt (task_id);
-- By the day, so that only today's pages change, as with the stretches of the ledger.
CREATE INDEX attempt_node ON attempt (((ended_at AT TIME ZONE 'UTC')::date), node_id);

CREATE TABLE receipt_batch (
    id         uuid NOT NULL PRIMARY KEY,
    node_id    uuid NOT NULL,
    body       bytea NOT NULL,
    signature  bytea NOT NULL,
    at         timestamptz NOT NULL
) PARTITION BY RANGE (id);

-- What attempts print, piece by piece, as their nodes tell it. A piece is written once. The pool keeps so much of each
-- attempt and no more. It is read like the log of events: behind a cursor, and never beyond an open transaction.
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

INSERT INTO partitioned_table (name) VALUES ('job'), ('task'), ('attempt'), ('receipt_batch'), ('attempt_log');
