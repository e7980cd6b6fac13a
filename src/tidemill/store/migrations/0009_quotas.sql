-- Quotas: how much of each limit is used up, shared by all processes.

-- Not logged: a lease then waits for no disk, and a crash of the server only leaves every bucket full. A row that is full
-- means the same as no row and is forgotten. There is no second index, so that changing a row touches no index at all.
CREATE UNLOGGED TABLE quota (
    key         text PRIMARY KEY,
    -- When the bucket will be full again, in microseconds since 1970: leases calculate with it, in exact integers.
    full_at_us  bigint NOT NULL,
    -- The last lease: by which limit it was asked for, and how many tokens it got.
    count       bigint NOT NULL CHECK (count > 0),
    per_us      bigint NOT NULL CHECK (per_us > 0),
    granted     bigint NOT NULL CHECK (granted >= 0)
) WITH (fillfactor = 70);
