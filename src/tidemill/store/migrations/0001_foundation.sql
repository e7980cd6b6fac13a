-- The foundation: the pool itself, and the partitions of the tables that grow. The table `migration` is not made here: the
-- program makes it, because it must be there before the first of these files is applied.

CREATE TABLE pool (
    id             uuid PRIMARY KEY,
    only_one       boolean NOT NULL DEFAULT true UNIQUE CHECK (only_one),
    created_at     timestamptz NOT NULL,
    -- A restored backup begins a new generation of events.
    generation     bigint NOT NULL CHECK (generation > 0),
    -- The first operator sets the pool up, once, with a link of which only the hash is kept.
    set_up_at      timestamptz,
    set_up_sha256  bytea,
    -- A demonstration stays one for ever.
    demonstration  boolean NOT NULL DEFAULT false
);

-- A partition is a range of UUIDv7, so a row's id names its partition. It is one calendar month (UTC), or one day where a
-- table is kept for days only.

CREATE FUNCTION first_id_at(at timestamptz) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7000' || '8000000000000000')::uuid;

CREATE TABLE partitioned_table (
    name          text PRIMARY KEY,
    -- The last month (YYYY-MM) or day (YYYY-MM-DD) that was taken out of the database for good. Neither it nor an older
    -- one comes back.
    closed_until  text NOT NULL DEFAULT '',
    span          text NOT NULL DEFAULT 'month' CHECK (span IN ('month', 'day'))
);

-- Makes the partitions that are missing. The program's role owns no table, so it makes them through this function, which
-- runs as the owner. Months are made between the two instants. Days are made from yesterday to a week ahead of now: they
-- are many, they are made every hour, and no new row has an older id. A partition is made beside its table and then
-- attached, so that neither readers nor writers wait for it.
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
-- days have such partitions, so the program cannot drop a record with it. It waits for a lock only for a moment: a reader,
-- such as a backup, finishes undisturbed, and writers do not queue up behind us.
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

-- Takes one month of a table out of the database, for good. Not for the program: only the owner of the schema may.
CREATE FUNCTION drop_month(parent text, month text) RETURNS void
LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    EXECUTE format('DROP TABLE IF EXISTS %I', parent || '_' || replace(month, '-', '_'));
    UPDATE partitioned_table SET closed_until = month WHERE name = parent;
END $$;
