-- Nodes: the key agents know the pool by, the tokens they join with, the machines, and which process hears them.

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

-- What happened to a node, newest first.
CREATE INDEX event_of_node ON event (subject, generation, transaction, number) WHERE subject LIKE 'node:%';

-- Partitions are months, or days where a table is kept for days only.
ALTER TABLE partitioned_table ADD COLUMN span text NOT NULL DEFAULT 'month' CHECK (span IN ('month', 'day'));
INSERT INTO partitioned_table (name) VALUES ('telemetry');
UPDATE partitioned_table SET span = 'day' WHERE name = 'telemetry';

-- Days are made from yesterday to a week ahead: they are many, made again every hour, and no row of theirs is older. A
-- partition is made beside its table and then attached, so that neither readers nor writers wait for it.
DROP FUNCTION create_partitions(timestamptz, timestamptz);
CREATE FUNCTION create_partitions(since timestamptz, until timestamptz, now timestamptz) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    parent  partitioned_table;
    step    interval;
    named   text;
    begins  timestamp;
    ends    timestamp;
    child   text;
BEGIN
    IF until - since >= interval '20 years' THEN
        RAISE EXCEPTION 'partitions are made for years, not for ages';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('create_partitions', 0));
    FOR parent IN SELECT * FROM partitioned_table ORDER BY name LOOP
        step := ('1 ' || parent.span)::interval;
        named := CASE parent.span WHEN 'day' THEN 'YYYY-MM-DD' ELSE 'YYYY-MM' END;
        begins := date_trunc('month', since AT TIME ZONE 'UTC');
        ends := until AT TIME ZONE 'UTC';
        IF parent.span = 'day' THEN
            begins := date_trunc('day', now AT TIME ZONE 'UTC') - interval '1 day';
            ends := begins + interval '8 days';
        END IF;
        WHILE begins <= ends LOOP
            child := format('%s_%s', parent.name, replace(to_char(begins, named), '-', '_'));
            IF to_char(begins, named) > parent.closed_until AND to_regclass(format('%I', child)) IS NULL THEN
                EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', child, parent.name);
                EXECUTE format(
                    'ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent.name, child,
                    first_id_at(begins AT TIME ZONE 'UTC'), first_id_at((begins + step) AT TIME ZONE 'UTC'));
                RETURN NEXT child;
            END IF;
            begins := begins + step;
        END LOOP;
    END LOOP;
END $$;

-- Takes the days of a table that ended before an instant out of the database, for good. Only tables that are kept for
-- days have such partitions, so the program can drop no record with it. It waits for nobody: who reads, such as a
-- backup, is let finish, and writers are not held up behind us.
CREATE FUNCTION drop_days(parent text, before timestamptz) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    child  text;
    day    text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('create_partitions', 0));
    IF NOT EXISTS (SELECT FROM partitioned_table WHERE name = parent AND span = 'day') THEN
        RAISE EXCEPTION '% is not kept by the day', parent;
    END IF;
    FOR child, day IN
        SELECT c.relname, replace(right(c.relname, 10), '_', '-')
        FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
        WHERE i.inhparent = parent::regclass
          -- As texts: a planner may look at names of other tables first, which are no dates.
          AND right(c.relname, 10) < to_char(before AT TIME ZONE 'UTC', 'YYYY_MM_DD')
        ORDER BY 1
    LOOP
        EXECUTE format('DROP TABLE %I', child);
        UPDATE partitioned_table SET closed_until = greatest(closed_until, day) WHERE name = parent;
        RETURN NEXT child;
    END LOOP;
END $$;
