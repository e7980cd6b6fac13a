-- Critical settings: the value of each that the pool has accepted, and the changes that wait. Both are written by the
-- role that owns the schema when a process starts; the program's role can only say an operator's word to a change.

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
    CHECK ((state = 'pending') = (decided_by IS NULL)),
    CHECK ((decided_by IS NULL) = (decided_at IS NULL) AND (decided_by IS NULL) = (reason IS NULL)),
    CHECK (state <> 'approved' OR decided_by <> proposed_by)
);
