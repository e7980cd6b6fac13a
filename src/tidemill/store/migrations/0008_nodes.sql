-- Nodes: the key agents know the pool by, the tokens they join with, the machines, which process hears them, how they are,
-- and what they keep in their caches.

-- The pool's own key pair, by which agents know it. Made once and kept for ever; of the two only the seed is needed.
CREATE TABLE pool_identity (
    id        uuid PRIMARY KEY,
    only_one  boolean NOT NULL UNIQUE DEFAULT true CHECK (only_one),
    seed      bytea NOT NULL,
    seed_key  uuid GENERATED ALWAYS AS (data_key_of(seed)) STORED REFERENCES data_key,
    made_at   timestamptz NOT NULL
);
CREATE INDEX pool_identity_seed_key ON pool_identity (seed_key);

-- Of a token only its hash is kept. What it gives is bounded: so many machines, until then, for this owner.
CREATE TABLE join_token (
    id          uuid PRIMARY KEY,
    account_id  uuid NOT NULL REFERENCES account,
    name        text NOT NULL,
    sha256      bytea NOT NULL UNIQUE,
    -- The operator's own machines, which the pool trusts.
    house       boolean NOT NULL,
    labels      text[] NOT NULL,
    uses_max    integer NOT NULL CHECK (uses_max > 0),
    uses        integer NOT NULL DEFAULT 0 CHECK (uses BETWEEN 0 AND uses_max),
    made_at     timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    revoked_at  timestamptz,
    -- When its owner last got a letter about a machine that joined with it.
    letter_at   timestamptz
);
CREATE INDEX join_token_owner ON join_token (account_id, id);

CREATE TABLE node (
    id                uuid PRIMARY KEY,
    account_id        uuid NOT NULL REFERENCES account,
    -- Kept for ever: the key of a removed node never comes back.
    key               bytea NOT NULL UNIQUE CHECK (length(key) = 32),
    join_token_id     uuid NOT NULL REFERENCES join_token,
    name              text NOT NULL CHECK (name <> ''),
    house             boolean NOT NULL,
    life              text NOT NULL CHECK (life IN ('registered', 'active', 'inactive', 'deregistered')),
    agent             text NOT NULL,
    -- The agent of which it was last told that it is too old, so that it is told once for each.
    refused_agent     text,
    -- When it was last told that another machine showed its identity.
    cloned_at         timestamptz,
    -- What the machine said of itself last (core.hardware.Machine), and the rules of its owner (core.nodes.rule_book).
    machine           jsonb,
    -- How many cores and how much memory its last passed challenge showed; nothing before the first.
    measured_cores    integer,
    measured_mib      bigint,
    -- What it can carry out (core.nodes.carries.Carries).
    carries           jsonb,
    rules             jsonb NOT NULL DEFAULT '{}',
    utc_offset_s      integer NOT NULL DEFAULT 0,
    suspended_reason  text CHECK (suspended_reason <> ''),
    -- Grows with everything that the node has to be told; compared with presence.told.
    wishes            bigint NOT NULL DEFAULT 0,
    joined_at         timestamptz NOT NULL,
    removed_at        timestamptz,
    removed_reason    text,
    CHECK ((life = 'deregistered') = (removed_at IS NOT NULL)),
    CHECK ((removed_at IS NULL) = (removed_reason IS NULL))
);
CREATE INDEX node_owner ON node (account_id, id);
CREATE INDEX node_end ON node (right(id::text, 8));
CREATE INDEX node_name ON node (name, account_id) WHERE removed_at IS NULL;
CREATE INDEX node_join_token ON node (join_token_id);

CREATE TABLE device (
    node_id             uuid NOT NULL REFERENCES node,
    index               smallint NOT NULL,
    kind                text NOT NULL CHECK (kind IN ('nvidia', 'amd', 'cpu')),
    name                text NOT NULL,
    uuid                text NOT NULL,
    -- The catalogue's name; none for a CPU and for what the catalogue does not know.
    model               text,
    memory_mib          bigint NOT NULL,
    driver              text NOT NULL,
    cuda                text,
    power_limit_w       integer,
    ecc                 boolean,
    failing             text,
    -- What its last passed challenge showed; nothing before the first.
    measured_mib        bigint,
    measured_ops_per_s  bigint,
    nvlink_ppm          integer,
    measured_at         timestamptz,
    PRIMARY KEY (node_id, index)
);
CREATE INDEX device_uuid ON device (uuid) WHERE uuid <> '';

-- The hot row of a node: who hears it, how much of what it said has arrived, and how it was at its last beat. A message
-- of an old generation changes nothing. Rows are written in batches, many times an hour, so pages have room for new
-- versions, and no column that changes with a beat is in an index.
CREATE TABLE presence (
    node_id            uuid PRIMARY KEY REFERENCES node,
    generation         bigint NOT NULL DEFAULT 0,
    -- The run of the agent that holds the identity: a clone is another run.
    instance           uuid,
    received           bigint NOT NULL DEFAULT 0,
    told               bigint NOT NULL DEFAULT 0,
    -- The process that holds its link, and since when; none while it has no link.
    process_id         uuid,
    linked_at          timestamptz,
    heard_at           timestamptz,
    -- How long the pool had been listening when it was heard last: see listening.
    heard_listened_us  bigint NOT NULL DEFAULT 0,
    offline_since      timestamptz,
    -- When it was last heard again after having been offline: what it proved before that counts no more.
    back_online_at     timestamptz,
    -- What the node itself may tell about its changes is bounded: see core.nodes.reports.
    told_until         timestamptz,
    -- The newest of the beats that it told later: only newer ones are kept, so that they are bounded too.
    past_until         timestamptz,
    -- Its last beat, as in telemetry; nothing before the first.
    beat_at            timestamptz,
    cpu_pct            smallint,
    memory_used_mib    bigint,
    disk_free_mib      bigint,
    round_trip_ms      bigint,
    utilisation_pct    smallint[],
    device_used_mib    bigint[],
    temperature_c      smallint[],
    power_w            bigint[],
    CHECK ((process_id IS NULL) = (linked_at IS NULL))
) WITH (fillfactor = 50);
CREATE INDEX presence_process ON presence (process_id) WHERE process_id IS NOT NULL;

-- How long the pool has been able to hear its nodes, all its processes together. Our own outage adds nothing.
CREATE TABLE listening (
    only_one     boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    listened_us  bigint NOT NULL DEFAULT 0,
    -- The last tick, and the first of those that came without a gap.
    at           timestamptz,
    since        timestamptz,
    -- Since when nobody at all is heard, though many should be; none while we hear.
    deaf_since   timestamptz
);
INSERT INTO listening DEFAULT VALUES;

-- Something about a node that its owner should see to. It is there as long as it lasts.
CREATE TABLE node_alert (
    node_id   uuid NOT NULL REFERENCES node,
    kind      text NOT NULL,
    -- The device it speaks of; -1 is the whole node.
    device    smallint NOT NULL,
    sentence  text NOT NULL,
    since     timestamptz NOT NULL,
    PRIMARY KEY (node_id, kind, device)
);

-- How nodes were, beat by beat. It grows quickly and is kept for days, so its partitions are days. A row's id says when
-- it arrived, `at` when it was so: a node that was cut off tells later.
CREATE TABLE telemetry (
    id               uuid NOT NULL,
    node_id          uuid NOT NULL,
    at               timestamptz NOT NULL,
    cpu_pct          smallint NOT NULL,
    memory_used_mib  bigint NOT NULL,
    disk_free_mib    bigint NOT NULL,
    round_trip_ms    bigint,
    -- One value a device, in the order of their numbers; null where the device does not say.
    utilisation_pct  smallint[] NOT NULL,
    device_used_mib  bigint[] NOT NULL,
    temperature_c    smallint[] NOT NULL,
    power_w          bigint[] NOT NULL
) PARTITION BY RANGE (id);
CREATE INDEX telemetry_node ON telemetry (node_id, at);
INSERT INTO partitioned_table (name, span) VALUES ('telemetry', 'day');

-- Which artefacts nodes say they have: a hint for placement. A node has few rows, and its report replaces them all.
CREATE TABLE node_cache (
    node_id  uuid NOT NULL REFERENCES node,
    digest   text NOT NULL CHECK (digest ~ '^[0-9a-f]{64}$'),
    PRIMARY KEY (node_id, digest)
);
CREATE INDEX node_cache_digest ON node_cache (digest);
