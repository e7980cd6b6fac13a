-- The foundation: the pool itself, its events, its processes, its duties and switches, and answers already given.

CREATE TABLE pool (
    id          uuid PRIMARY KEY,
    only_one    boolean NOT NULL DEFAULT true UNIQUE CHECK (only_one),
    created_at  timestamptz NOT NULL,
    -- A restored backup begins a new generation of events.
    generation  bigint NOT NULL CHECK (generation > 0)
);

-- Partitions are ranges of UUIDv7, one calendar month (UTC) each, so a row's id names its partition.

CREATE FUNCTION first_id_at(at timestamptz) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7000' || '8000000000000000')::uuid;

CREATE TABLE partitioned_table (
    name          text PRIMARY KEY,
    -- The last month (YYYY-MM) that was taken out of the database for good; neither it nor an older one comes back.
    closed_until  text NOT NULL DEFAULT ''
);

-- The program's role owns no table, so it makes partitions through this function, which runs as the owner.
CREATE FUNCTION create_partitions(since timestamptz, until timestamptz) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    parent  text;
    closed  text;
    month   timestamp;
    child   text;
BEGIN
    IF until - since >= interval '20 years' THEN
        RAISE EXCEPTION 'partitions are made for years, not for ages';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('create_partitions', 0));
    FOR parent, closed IN SELECT name, closed_until FROM partitioned_table ORDER BY name LOOP
        month := date_trunc('month', since AT TIME ZONE 'UTC');
        WHILE month <= until AT TIME ZONE 'UTC' LOOP
            child := format('%s_%s', parent, to_char(month, 'YYYY_MM'));
            IF to_char(month, 'YYYY-MM') > closed AND to_regclass(format('%I', child)) IS NULL THEN
                EXECUTE format(
                    'CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)', child, parent,
                    first_id_at(month AT TIME ZONE 'UTC'),
                    first_id_at((month + interval '1 month') AT TIME ZONE 'UTC'));
                RETURN NEXT child;
            END IF;
            month := month + interval '1 month';
        END LOOP;
    END LOOP;
END $$;

CREATE SEQUENCE event_number;

CREATE TABLE event (
    id           uuid NOT NULL,
    generation   bigint NOT NULL,
    -- Readers follow the order of transactions, never past one that is still open: see events/read.sql.
    transaction  xid8 NOT NULL DEFAULT pg_current_xact_id(),
    number       bigint NOT NULL DEFAULT nextval('event_number'),
    at           timestamptz NOT NULL,
    kind         text NOT NULL,
    subject      text NOT NULL,
    body         jsonb NOT NULL,
    public       boolean NOT NULL,
    accounts     uuid[] NOT NULL,
    PRIMARY KEY (id)
) PARTITION BY RANGE (id);
CREATE INDEX event_order ON event (generation, transaction, number);
INSERT INTO partitioned_table (name) VALUES ('event');

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

CREATE TABLE switch (
    name        text PRIMARY KEY,
    stopped     boolean NOT NULL,
    reason      text NOT NULL CHECK (reason <> ''),
    changed_by  text NOT NULL,
    changed_at  timestamptz NOT NULL
);

-- An answer once given to a request with an Idempotency-Key, written in the transaction of its effect.
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
