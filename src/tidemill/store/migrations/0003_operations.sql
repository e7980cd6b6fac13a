-- Operations: the processes that run the pool, their duties, the operators' switches, the critical settings, and what
-- processes must know of each other's requests: the answers given and the quotas used.

CREATE TABLE process (
    id           uuid PRIMARY KEY,
    host         text NOT NULL,
    pid          integer NOT NULL,
    version      text NOT NULL,
    -- Processes of one pool must agree on its settings; this is how they notice when they do not.
    settings     text NOT NULL,
    started_at   timestamptz NOT NULL,
    seen_at      timestamptz NOT NULL,
    state        text NOT NULL CHECK (state IN ('running', 'stopped', 'lost'))
);
CREATE INDEX process_running ON process (seen_at) WHERE state = 'running';

-- A duty is work that one process at a time does now and then. The token grows with every holder.
CREATE TABLE duty (
    name        text PRIMARY KEY,
    token       bigint NOT NULL,
    holder      uuid NOT NULL,
    expires_at  timestamptz,
    done_at     timestamptz
);

-- An operator's stop for a part of the pool.
CREATE TABLE switch (
    name        text PRIMARY KEY,
    stopped     boolean NOT NULL,
    reason      text NOT NULL CHECK (reason <> ''),
    changed_by  text NOT NULL,
    changed_at  timestamptz NOT NULL
);

-- The value of each critical setting that the pool has accepted, and the changes that wait. The role that owns the schema
-- writes both when a process starts. The program's role can only write down an operator's decision on a change.
CREATE TABLE critical_setting (
    name         text PRIMARY KEY,
    value        text NOT NULL,
    accepted_at  timestamptz NOT NULL
);

CREATE TABLE critical_change (
    name         text PRIMARY KEY REFERENCES critical_setting,
    value        text NOT NULL,
    proposed_by  text NOT NULL CHECK (proposed_by <> ''),
    proposed_at  timestamptz NOT NULL,
    state        text NOT NULL CHECK (state IN ('pending', 'approved', 'rejected')),
    decided_by   text,
    decided_at   timestamptz,
    reason       text,
    vouched_by   text CHECK (vouched_by LIKE 'account:%'),
    CHECK ((state = 'pending') = (decided_by IS NULL)),
    CHECK ((decided_by IS NULL) = (decided_at IS NULL) AND (decided_by IS NULL) = (reason IS NULL)),
    -- Two people, each with an account: whoever starts a process may be anybody.
    CHECK (state <> 'approved' OR
        (vouched_by IS NOT NULL AND decided_by <> vouched_by AND decided_by LIKE 'account:%'))
);

-- The answer to a request with an Idempotency-Key, written in the transaction of its effect, so that the same request gets
-- the same answer again.
CREATE TABLE answer (
    caller       text NOT NULL,
    route        text NOT NULL,
    key          text NOT NULL,
    body_sha256  bytea NOT NULL,
    status       smallint,
    content      bytea,
    given_at     timestamptz NOT NULL,
    PRIMARY KEY (caller, route, key)
);
CREATE INDEX answer_age ON answer (given_at);

-- How much of each limit is used up, shared by all processes. Not logged: a lease then waits for no disk, and a crash of
-- the server only leaves every bucket full. A full bucket means the same as no row, so such rows are deleted. There is no
-- second index, so that changing a row touches no index at all.
CREATE UNLOGGED TABLE quota (
    key         text PRIMARY KEY,
    -- When the bucket will be full again, in microseconds since 1970: leases calculate with it, in exact integers.
    full_at_us  bigint NOT NULL,
    -- The last lease: by which limit it was asked for, and how many tokens it got.
    count       bigint NOT NULL CHECK (count > 0),
    per_us      bigint NOT NULL CHECK (per_us > 0),
    granted     bigint NOT NULL CHECK (granted >= 0)
) WITH (fillfactor = 70);
