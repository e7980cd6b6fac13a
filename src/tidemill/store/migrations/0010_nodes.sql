-- Nodes: the key agents know the pool by, the tokens they join with, the machines, and which process hears them.

CREATE TABLE pool_identity (
    only_one  boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    seed      bytea NOT NULL,
    seed_key  uuid GENERATED ALWAYS AS (data_key_of(seed)) STORED REFERENCES data_key,
    key       bytea NOT NULL CHECK (length(key) = 32),
    made_at   timestamptz NOT NULL
);
CREATE INDEX pool_identity_key ON pool_identity (seed_key);

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
    revoked_at  timestamptz
);
CREATE INDEX join_token_owner ON join_token (account_id, id);

CREATE TABLE node (
    id                uuid PRIMARY KEY,
    account_id        uuid NOT NULL REFERENCES account,
    -- Kept for ever: the key of a removed node never comes back.
    key               bytea NOT NULL UNIQUE CHECK (length(key) = 32),
    join_token_id     uuid NOT NULL REFERENCES join_token,
    name              text NOT NULL,
    house             boolean NOT NULL,
    life              text NOT NULL CHECK (life IN ('registered', 'active', 'inactive', 'deregistered')),
    agent             text NOT NULL,
    -- What the machine said of itself last (core.hardware.Machine), and the rules of its owner (core.nodes.rule_book).
    machine           jsonb,
    rules             jsonb NOT NULL DEFAULT '{}',
    utc_offset_s      integer NOT NULL DEFAULT 0,
    suspended_reason  text CHECK (suspended_reason <> ''),
    -- Grows with everything that the node has to be told; compared with presence.told.
    wishes            bigint NOT NULL DEFAULT 0,
    joined_at         timestamptz NOT NULL,
    removed_at        timestamptz,
    removed_reason    text CHECK (removed_reason <> ''),
    CHECK ((life = 'deregistered') = (removed_at IS NOT NULL))
);
CREATE INDEX node_owner ON node (account_id, id);
CREATE INDEX node_join_token ON node (join_token_id);

CREATE TABLE device (
    node_id        uuid NOT NULL REFERENCES node,
    index          smallint NOT NULL,
    kind           text NOT NULL CHECK (kind IN ('nvidia', 'amd', 'cpu')),
    name           text NOT NULL,
    uuid           text NOT NULL,
    -- The catalogue's name; none for a CPU and for what the catalogue does not know.
    model          text,
    memory_mib     bigint NOT NULL,
    driver         text NOT NULL,
    cuda           text,
    power_limit_w  integer,
    ecc            boolean,
    failing        text,
    PRIMARY KEY (node_id, index)
);
CREATE INDEX device_uuid ON device (uuid) WHERE uuid <> '';

-- The hot row of a node: who hears it, and how much of what it said has arrived. A message of an old generation changes
-- nothing. Rows are written in batches, many times an hour, so pages have room for new versions.
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
    CHECK ((process_id IS NULL) = (linked_at IS NULL))
) WITH (fillfactor = 50);
CREATE INDEX presence_process ON presence (process_id) WHERE process_id IS NOT NULL;

-- How long the pool has been able to hear its nodes, all its processes together. Our own outage adds nothing.
CREATE TABLE listening (
    only_one     boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    listened_us  bigint NOT NULL DEFAULT 0,
    at           timestamptz
);
INSERT INTO listening DEFAULT VALUES;

-- Something about a node that its owner should see to. It is there as long as it lasts.
CREATE TABLE node_alert (
    node_id   uuid NOT NULL REFERENCES node,
    kind      text NOT NULL,
    -- The device it speaks of; -1 is the whole node.
    device    smallint NOT NULL DEFAULT -1,
    sentence  text NOT NULL,
    since     timestamptz NOT NULL,
    PRIMARY KEY (node_id, kind, device)
);

-- How nodes were, beat by beat. It grows quickly and is kept for days, so its partitions are days.
CREATE TABLE telemetry (
    id               uuid NOT NULL,
    node_id          uuid NOT NULL,
    at               timestamptz NOT NULL,
    cpu_pct          smallint NOT NULL,
    memory_used_mib  integer NOT NULL,
    disk_free_mib    bigint NOT NULL,
    round_trip_ms    integer,
    -- One value a device, in the order of their numbers; null where the device does not say.
    utilisation_pct  smallint[] NOT NULL,
    device_used_mib  integer[] NOT NULL,
    temperature_c    smallint[] NOT NULL,
    power_w          integer[] NOT NULL
) PARTITION BY RANGE (id);
CREATE INDEX telemetry_node ON telemetry (node_id, at);
INSERT INTO partitioned_table (name) VALUES ('telemetry');
