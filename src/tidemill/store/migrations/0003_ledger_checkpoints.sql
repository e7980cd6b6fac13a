-- Checkpoints and archives: sums that need not be made again, and history that need not be kept at hand.

-- What was posted to an account up to a number. Accounts without a floor get one now and then, every account that moved
-- gets one when a month is archived. Its balance is its newest checkpoint and what was posted since.
CREATE TABLE ledger_checkpoint (
    account_id  uuid NOT NULL REFERENCES ledger_account,
    number      bigint NOT NULL,
    at          timestamptz NOT NULL,
    posted_uc   bigint NOT NULL,
    PRIMARY KEY (account_id, number)
);

-- A month of entries that was written to a file and is no longer in the tables. Its number is that of its checkpoints:
-- they stand for the transfers of the month.
CREATE TABLE ledger_archive (
    month        text PRIMARY KEY,
    archived_at  timestamptz NOT NULL,
    number       bigint NOT NULL UNIQUE,
    -- Ids before this are archived.
    end_id       uuid NOT NULL,
    -- When the last of its transfers was posted: balances before that are in the file.
    last_at      timestamptz,
    file         text NOT NULL,
    sha256       text NOT NULL,
    entries      bigint NOT NULL
);

-- The ids of archived entries, so that the same id gets the same answer for ever: some hundred a row, in order, 16 bytes
-- each, with the fingerprint of each entry, and those that were refused with why, by their place.
CREATE TABLE archived_entries (
    first_id      uuid PRIMARY KEY,
    last_id       uuid NOT NULL,
    ids           bytea NOT NULL,
    fingerprints  bytea NOT NULL,
    refusals      jsonb NOT NULL,
    CHECK (length(ids) = length(fingerprints) AND length(ids) % 16 = 0)
);

-- What was posted to an account up to a number: from its newest checkpoint before that, and what came after.
CREATE FUNCTION posted_until(account uuid, until bigint) RETURNS bigint
-- Volatile: it must look again after it has waited for a month to be archived.
LANGUAGE sql VOLATILE SET search_path = public, pg_temp AS $$
    WITH base AS (
        SELECT number, posted_uc FROM ledger_checkpoint WHERE account_id = account AND number <= until
        UNION ALL
        SELECT -1, 0
        ORDER BY number DESC LIMIT 1
    )
    SELECT (b.posted_uc
        + coalesce((SELECT sum(amount_uc) FROM transfer WHERE credit_id = account AND number > b.number AND number <= until), 0)
        - coalesce((SELECT sum(amount_uc) FROM transfer WHERE debit_id = account AND number > b.number AND number <= until), 0)
    )::bigint
    FROM base AS b
$$;

-- Writes a checkpoint for each account without a floor that moved since its last one. Answers how many. The lock is held
-- only to learn the number: everything up to it is then committed, and each statement here sees that.
CREATE FUNCTION write_checkpoints(now timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    until    bigint;
    last_at  timestamptz;
    written  bigint;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'a checkpoint must see what was committed: use a read committed transaction';
    END IF;
    PERFORM pg_advisory_lock(7521, 1);
    SELECT n.last_value, timestamptz 'epoch' + a.last_value * interval '1 microsecond'
    INTO until, last_at
    FROM ledger_number AS n, ledger_at AS a;
    PERFORM pg_advisory_unlock(7521, 1);
    INSERT INTO ledger_checkpoint (account_id, number, at, posted_uc)
    SELECT a.id, until, greatest(now, last_at), posted_until(a.id, until)
    FROM ledger_account AS a,
         LATERAL (SELECT coalesce(max(c.number), -1) AS number FROM ledger_checkpoint AS c WHERE c.account_id = a.id) AS last
    WHERE NOT a.floored AND (
        EXISTS (SELECT FROM transfer AS t WHERE t.credit_id = a.id AND t.number > last.number AND t.number <= until)
        OR EXISTS (SELECT FROM transfer AS t WHERE t.debit_id = a.id AND t.number > last.number AND t.number <= until)
    )
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS written = ROW_COUNT;
    RETURN written;
END $$;

-- Takes one month of a table out of the database, for good. Not for the program: only the owner of the schema may.
CREATE FUNCTION drop_month(parent text, month text) RETURNS void
LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    EXECUTE format('DROP TABLE IF EXISTS %I', parent || '_' || replace(month, '-', '_'));
    UPDATE partitioned_table SET closed_until = month WHERE name = parent;
END $$;
