-- The ledger. The program cannot write these tables: it opens and freezes accounts, settles adjustments, posts entries and
-- writes checkpoints through functions, which change transfers, holds and balances together. No sequence of its statements
-- can make the books disagree.

CREATE TABLE ledger_account (
    id         uuid PRIMARY KEY,
    kind       text NOT NULL,
    owner_id   uuid,
    name       text NOT NULL,
    currency   text NOT NULL,
    -- Never below zero. Only such an account keeps its balance here. The others have no row that everybody would wait for.
    floored    boolean NOT NULL,
    frozen     boolean NOT NULL DEFAULT false,
    opened_at  timestamptz NOT NULL,
    posted_uc  bigint NOT NULL DEFAULT 0,
    held_uc    bigint NOT NULL DEFAULT 0,
    UNIQUE NULLS NOT DISTINCT (kind, owner_id, name, currency),
    -- One constraint instead of four, because each one is checked for every row of every batch.
    CONSTRAINT never_below_zero
        CHECK (posted_uc >= held_uc AND held_uc >= 0 AND (floored OR posted_uc = 0) AND currency <> '')
) WITH (fillfactor = 40);
CREATE INDEX ledger_account_end ON ledger_account (right(id::text, 8));
CREATE INDEX ledger_account_opened ON ledger_account (opened_at DESC, id);
CREATE INDEX ledger_account_owner ON ledger_account (owner_id) WHERE owner_id IS NOT NULL;

-- An account's id follows from what it is: the first bits of a hash, as a UUIDv8. The program computes the same.
CREATE FUNCTION ledger_account_id(kind text, owner_id uuid, name text, currency text) RETURNS uuid
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT encode(set_byte(set_byte(h, 6, get_byte(h, 6) & 15 | 128), 8, get_byte(h, 8) & 63 | 128), 'hex')::uuid
    FROM substring(
        sha256(convert_to(concat_ws(E'\x1f', kind, coalesce(owner_id::text, ''), name, currency), 'UTF8')) FROM 1 FOR 16
    ) AS h
$$;

-- Opens accounts; one that is open already stays as it is. Answers how many were new. Which kinds have no floor stands
-- here and in the program's table of kinds; a test compares them.
CREATE FUNCTION open_accounts(
    kinds text[], owner_ids uuid[], names text[], currencies text[], now timestamptz
) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    WITH opened AS (
        INSERT INTO ledger_account (id, kind, owner_id, name, currency, floored, opened_at)
        SELECT ledger_account_id(a.kind, a.owner_id, a.name, a.currency), a.kind, a.owner_id, a.name, a.currency,
               a.kind NOT IN ('commission', 'burn', 'issuance', 'external'), now
        FROM unnest(kinds, owner_ids, names, currencies) AS a (kind, owner_id, name, currency)
        ON CONFLICT DO NOTHING
        RETURNING id
    )
    SELECT count(*) FROM opened
$$;

CREATE TABLE transfer (
    id         uuid NOT NULL PRIMARY KEY,
    debit_id   uuid NOT NULL,
    credit_id  uuid NOT NULL,
    amount_uc  bigint NOT NULL,
    currency   text NOT NULL,
    kind       text NOT NULL,
    cause      text NOT NULL,
    hold_id    uuid,
    at         timestamptz NOT NULL,
    -- The order of posting, which is not the order of ids: an entry may be posted long after its id was made.
    number     bigint NOT NULL,
    CHECK (amount_uc > 0 AND debit_id <> credit_id AND kind <> '' AND cause <> '')
) PARTITION BY RANGE (id);
-- Statements are read by stretches of a million transfers. An index in the order of accounts alone has a page to change
-- for every account, and these pages are too many for memory once there is a history. In the order of stretches only the
-- pages of the newest stretch change, and the rest is read when somebody asks. A search for one account skips from stretch
-- to stretch, which PostgreSQL can do from version 18 on.
CREATE INDEX transfer_debit ON transfer (((number >> 20)::integer), debit_id, number);
CREATE INDEX transfer_credit ON transfer (((number >> 20)::integer), credit_id, number);

CREATE TABLE hold (
    id           uuid NOT NULL PRIMARY KEY,
    account_id   uuid NOT NULL,
    amount_uc    bigint NOT NULL CHECK (amount_uc > 0),
    currency     text NOT NULL,
    expires_at   timestamptz NOT NULL,
    cause        text NOT NULL CHECK (cause <> ''),
    at           timestamptz NOT NULL,
    captured_uc  bigint NOT NULL DEFAULT 0 CHECK (captured_uc >= 0),
    released_uc  bigint NOT NULL DEFAULT 0 CHECK (released_uc >= 0),
    CONSTRAINT never_more_than_held CHECK (captured_uc + released_uc <= amount_uc)
) PARTITION BY RANGE (id);
CREATE INDEX hold_open ON hold (account_id) WHERE captured_uc + released_uc < amount_uc;
CREATE INDEX hold_expiry ON hold (expires_at) WHERE captured_uc + released_uc < amount_uc;

CREATE TABLE hold_release (
    id         uuid NOT NULL PRIMARY KEY,
    hold_id    uuid NOT NULL,
    amount_uc  bigint NOT NULL CHECK (amount_uc > 0),
    cause      text NOT NULL CHECK (cause <> ''),
    at         timestamptz NOT NULL
) PARTITION BY RANGE (id);

-- The same id gets the same answer, also when the answer was no.
CREATE TABLE refused_entry (
    id       uuid NOT NULL PRIMARY KEY,
    entry    jsonb NOT NULL,
    refusal  text NOT NULL,
    at       timestamptz NOT NULL
) PARTITION BY RANGE (id);

INSERT INTO partitioned_table (name) VALUES ('transfer'), ('hold'), ('hold_release'), ('refused_entry');

-- A manual adjustment: proposed by one operator, approved by another. Only then may it be posted.
CREATE TABLE adjustment (
    id           uuid PRIMARY KEY,
    debit_id     uuid NOT NULL REFERENCES ledger_account,
    credit_id    uuid NOT NULL REFERENCES ledger_account,
    amount_uc    bigint NOT NULL CHECK (amount_uc > 0),
    currency     text NOT NULL,
    reason       text NOT NULL CHECK (reason <> ''),
    proposed_by  text NOT NULL CHECK (proposed_by <> ''),
    proposed_at  timestamptz NOT NULL,
    state        text NOT NULL DEFAULT 'proposed' CHECK (state IN ('proposed', 'approved', 'rejected')),
    decided_by   text,
    decided_at   timestamptz,
    CHECK ((state = 'proposed') = (decided_by IS NULL) AND (state = 'proposed') = (decided_at IS NULL)),
    -- Two people, each with an account: the home's token and users of the machine may be anybody.
    CONSTRAINT two_operators CHECK (state <> 'approved' OR
        (decided_by <> proposed_by AND decided_by LIKE 'account:%' AND proposed_by LIKE 'account:%'))
);
CREATE INDEX adjustment_waiting ON adjustment (id) WHERE state = 'proposed';

-- Approves or rejects an adjustment, once. Answers whether it was still to be decided. Only who became an operator before
-- an instant approves.
CREATE FUNCTION settle_adjustment(
    adjustment_id uuid, verdict text, operator text, operator_before timestamptz, now timestamptz
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF verdict = 'approved' AND NOT EXISTS (
        SELECT FROM account WHERE 'account:' || id::text = operator AND operator_since <= operator_before
    ) THEN
        RAISE EXCEPTION 'whoever approves is no operator, or a new one' USING ERRCODE = 'check_violation';
    END IF;
    UPDATE adjustment SET state = verdict, decided_by = operator, decided_at = now
    WHERE id = adjustment_id AND state = 'proposed';
    RETURN FOUND;
END $$;

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

-- The ids of archived entries, so that the same id gets the same answer for ever. A row has some hundred of them, in order,
-- 16 bytes each, with the fingerprint of each entry. `refusals` says, by their places, which were refused and why.
CREATE TABLE archived_entries (
    first_id      uuid PRIMARY KEY,
    last_id       uuid NOT NULL,
    ids           bytea NOT NULL,
    fingerprints  bytea NOT NULL,
    refusals      jsonb NOT NULL,
    CHECK (length(ids) = length(fingerprints) AND length(ids) % 16 = 0)
);

-- The number of the last transfer posted. It is changed only under the ledger's lock, which is held until the transaction
-- ends. So the books do not change while somebody holds the lock, and have not changed when somebody sees the same number
-- again.
CREATE SEQUENCE ledger_number MINVALUE 0;
SELECT setval('ledger_number', 0);

-- The first half of the newest id answered so far, as a signed number. No id that is newer has been answered.
CREATE SEQUENCE ledger_newest MINVALUE -9223372036854775808;
SELECT setval('ledger_newest', 0);

-- When the last transfer was posted, in microseconds since 1970.
CREATE SEQUENCE ledger_at MINVALUE 0;
SELECT setval('ledger_at', 0);

-- One batch at a time, in one order for everybody. Faster than waiting for each row, and no two batches ever deadlock.
CREATE FUNCTION lock_ledger() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    -- Only then does every statement after this see what was committed before it.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'the ledger is written in read committed transactions only';
    END IF;
    PERFORM pg_advisory_xact_lock(7521, 1);
    RETURN (SELECT last_value FROM ledger_number);
END $$;

-- The first half of an id, which has its time, as a number.
CREATE FUNCTION first_half(id uuid) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT ('x' || left(replace(id::text, '-', ''), 16))::bit(64)::bigint
$$;

-- Freezes or unfreezes an account: nothing moves on a frozen one, except what is given back to it. Answers whether that
-- changed anything. The number moves on, so whoever remembers the account looks again.
CREATE FUNCTION set_frozen(account_id uuid, freezing boolean) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM setval('ledger_number', lock_ledger() + 1);
    UPDATE ledger_account SET frozen = freezing WHERE id = account_id AND frozen <> freezing;
    RETURN FOUND;
END $$;

-- Posts what was decided: all of it, or nothing. The decision took care of the order inside the batch. Here only the books
-- after the whole batch count, and they are checked: every account known, one currency, none frozen, nothing below its
-- floor, no hold captured beyond what it has. Answers the number of the last transfer. A decision is good for the books it
-- was made on: if the number is not the one it saw, or an id was answered before, nothing is done, and the answer is null.
CREATE FUNCTION post_entries(
    seen_number bigint, now timestamptz,
    transfer_ids uuid[], debit_ids uuid[], credit_ids uuid[], amounts_uc bigint[], currencies text[], kinds text[],
    causes text[], hold_ids uuid[], unfloored_ids uuid[],
    placed_ids uuid[], placed_account_ids uuid[], placed_amounts_uc bigint[], placed_currencies text[],
    placed_until_us bigint[], placed_causes text[],
    release_ids uuid[], released_hold_ids uuid[], release_causes text[],
    refused_ids uuid[], refused_entries jsonb[], refusals text[],
    event_id uuid, event_kind text, event_subject text, event_body jsonb, event_public boolean
) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
-- Everything here is found by its key. One plan serves batches of every size; making one costs more than a small batch.
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    ids                uuid[];
    first_id           uuid;
    last_id            uuid;
    newest_before      bigint;
    -- Never before the last: the order of numbers is the order of time. A clock that was far ahead does not count.
    posted_at          timestamptz;
    transfers          bigint := cardinality(transfer_ids);
    placed             bigint := cardinality(placed_ids);
    all_sides          bigint := 2 * transfers + placed + cardinality(release_ids);
    found              bigint;
    given_account_ids  uuid[];
    given_currencies   text[];
    given_amounts_uc   bigint[];
BEGIN
    IF num_nulls(
        seen_number, now, transfer_ids, debit_ids, credit_ids, amounts_uc, currencies, kinds, causes, hold_ids,
        unfloored_ids, placed_ids, placed_account_ids, placed_amounts_uc, placed_currencies, placed_until_us, placed_causes,
        release_ids, released_hold_ids, release_causes, refused_ids, refused_entries, refusals
    ) > 0 OR (
        transfers, transfers, transfers, transfers, transfers, transfers,
        placed, placed, placed, placed, placed, cardinality(release_ids), cardinality(release_ids),
        cardinality(refused_ids), cardinality(refused_ids)
    ) <> (
        cardinality(debit_ids), cardinality(credit_ids), cardinality(amounts_uc), cardinality(currencies),
        cardinality(kinds), cardinality(causes), cardinality(placed_account_ids), cardinality(placed_amounts_uc),
        cardinality(placed_currencies), cardinality(placed_until_us), cardinality(placed_causes),
        cardinality(released_hold_ids), cardinality(release_causes), cardinality(refused_entries), cardinality(refusals)
    ) OR cardinality(hold_ids) NOT IN (0, transfers) THEN
        RAISE EXCEPTION 'the columns of a batch are incomplete' USING ERRCODE = 'integrity_constraint_violation';
    END IF;

    IF lock_ledger() <> seen_number THEN
        RETURN NULL;
    END IF;
    ids := transfer_ids || placed_ids || release_ids || refused_ids;
    SELECT i.last_value, greatest(now, CASE WHEN t.at < now + interval '1 hour' THEN t.at END),
           (SELECT id FROM unnest(ids) AS id ORDER BY id LIMIT 1), (SELECT id FROM unnest(ids) AS id ORDER BY id DESC LIMIT 1)
    INTO newest_before, posted_at, first_id, last_id
    FROM ledger_newest AS i, (SELECT timestamptz 'epoch' + last_value * interval '1 microsecond' AS at FROM ledger_at) AS t;
    IF first_half(first_id) <= newest_before THEN
        IF EXISTS (SELECT FROM ledger_archive AS a WHERE a.end_id > first_id) THEN
            RAISE EXCEPTION 'an id belongs to an archived month' USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        IF EXISTS (
            SELECT FROM transfer WHERE id = ANY (ids)
            UNION ALL SELECT FROM hold WHERE id = ANY (ids)
            UNION ALL SELECT FROM hold_release WHERE id = ANY (ids)
            UNION ALL SELECT FROM refused_entry WHERE id = ANY (ids)
        ) THEN
            RETURN NULL;
        END IF;
    END IF;

    IF 'adjustment' = ANY (kinds) THEN
        IF EXISTS (
            SELECT FROM unnest(transfer_ids, debit_ids, credit_ids, amounts_uc, currencies, kinds)
                        AS t (id, debit_id, credit_id, amount_uc, currency, kind)
            WHERE t.kind = 'adjustment' AND NOT EXISTS (
                SELECT FROM adjustment AS a
                WHERE (a.id, a.debit_id, a.credit_id, a.amount_uc, a.currency, a.state)
                    = (t.id, t.debit_id, t.credit_id, t.amount_uc, t.currency, 'approved')
            )
        ) THEN
            RAISE EXCEPTION 'an adjustment was not approved' USING ERRCODE = 'integrity_constraint_violation';
        END IF;
    END IF;

    IF cardinality(refused_ids) > 0 THEN
        INSERT INTO refused_entry (id, entry, refusal, at)
        SELECT r.*, now FROM unnest(refused_ids, refused_entries, refusals) AS r;
    END IF;

    IF cardinality(placed_ids) > 0 THEN
        INSERT INTO hold (id, account_id, amount_uc, currency, expires_at, cause, at)
        SELECT h.id, h.account_id, h.amount_uc, h.currency, timestamptz 'epoch' + h.until_us * interval '1 microsecond',
               h.cause, now
        FROM unnest(placed_ids, placed_account_ids, placed_amounts_uc, placed_currencies, placed_until_us, placed_causes)
             AS h (id, account_id, amount_uc, currency, until_us, cause);
    END IF;

    IF cardinality(hold_ids) > 0 THEN
        UPDATE hold AS h SET captured_uc = h.captured_uc + m.captured_uc
        FROM (
            SELECT t.hold_id, t.debit_id, sum(t.amount_uc) AS captured_uc
            FROM unnest(hold_ids, debit_ids, amounts_uc) AS t (hold_id, debit_id, amount_uc)
            WHERE t.hold_id IS NOT NULL
            GROUP BY t.hold_id, t.debit_id
        ) AS m
        WHERE h.id = m.hold_id AND h.account_id = m.debit_id AND h.expires_at > now;
        GET DIAGNOSTICS found = ROW_COUNT;
        IF found <> (
            SELECT count(DISTINCT (t.hold_id, t.debit_id)) FROM unnest(hold_ids, debit_ids) AS t (hold_id, debit_id)
            WHERE t.hold_id IS NOT NULL
        ) THEN
            RAISE EXCEPTION 'a capture names no open hold of its account'
            USING ERRCODE = 'integrity_constraint_violation';
        END IF;
    END IF;

    IF cardinality(release_ids) > 0 THEN
        INSERT INTO hold_release (id, hold_id, amount_uc, cause, at)
        SELECT r.id, r.hold_id, h.amount_uc - h.captured_uc - h.released_uc, r.cause, now
        FROM unnest(release_ids, released_hold_ids, release_causes) AS r (id, hold_id, cause)
        JOIN hold AS h ON h.id = r.hold_id;
        GET DIAGNOSTICS found = ROW_COUNT;
        IF found <> cardinality(release_ids) THEN
            RAISE EXCEPTION 'a release names no hold' USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        WITH given_back AS (
            UPDATE hold AS h SET released_uc = h.amount_uc - h.captured_uc
            FROM hold_release AS r
            WHERE r.id = ANY (release_ids) AND h.id = r.hold_id
            RETURNING h.account_id, h.currency, r.amount_uc
        )
        SELECT array_agg(account_id), array_agg(currency), array_agg(amount_uc)
        INTO given_account_ids, given_currencies, given_amounts_uc
        FROM given_back;
    END IF;

    -- Each side of each entry must find its account: known, not frozen, of its currency, and with a floor where money is
    -- held. Balances change by the sum of their sides.
    WITH posted AS (
        INSERT INTO transfer (id, debit_id, credit_id, amount_uc, currency, kind, cause, hold_id, number, at)
        SELECT t.id, t.debit_id, t.credit_id, t.amount_uc, t.currency, t.kind, t.cause, t.hold_id,
               seen_number + t.position, posted_at
        FROM unnest(transfer_ids, debit_ids, credit_ids, amounts_uc, currencies, kinds, causes, hold_ids)
             WITH ORDINALITY AS t (id, debit_id, credit_id, amount_uc, currency, kind, cause, hold_id, position)
    ), told AS (
        INSERT INTO event (id, generation, at, kind, subject, body, public, accounts)
        SELECT event_id, pool.generation, now, event_kind, event_subject, event_body, event_public, '{}' FROM pool
    ), move AS MATERIALIZED (
        SELECT account_id, currency, sum(posted_uc)::bigint AS posted_uc, sum(held_uc)::bigint AS held_uc,
               bool_and(given_back) AS given_back, bool_and(held_uc = 0) AS unheld, count(*) AS sides
        FROM (
            SELECT t.debit_id AS account_id, t.currency, -t.amount_uc AS posted_uc,
                   CASE WHEN t.hold_id IS NULL THEN 0 ELSE -t.amount_uc END AS held_uc, false AS given_back
            FROM unnest(debit_ids, currencies, amounts_uc, hold_ids) AS t (debit_id, currency, amount_uc, hold_id)
            UNION ALL
            SELECT t.credit_id, t.currency, t.amount_uc, 0, false
            FROM unnest(credit_ids, currencies, amounts_uc) AS t (credit_id, currency, amount_uc)
            UNION ALL
            SELECT p.account_id, p.currency, 0, p.amount_uc, false
            FROM unnest(placed_account_ids, placed_currencies, placed_amounts_uc) AS p (account_id, currency, amount_uc)
            UNION ALL
            SELECT g.account_id, g.currency, 0, -g.amount_uc, true
            FROM unnest(given_account_ids, given_currencies, given_amounts_uc) AS g (account_id, currency, amount_uc)
        ) AS side
        GROUP BY account_id, currency
    ), changed_account AS (
        UPDATE ledger_account AS a SET posted_uc = a.posted_uc + m.posted_uc, held_uc = a.held_uc + m.held_uc
        FROM move AS m
        WHERE a.id = m.account_id AND a.currency = m.currency AND a.floored AND (m.given_back OR NOT a.frozen)
        RETURNING m.sides
    )
    SELECT (SELECT coalesce(sum(sides), 0) FROM changed_account)
         + (SELECT coalesce(sum(m.sides), 0)
            FROM ledger_account AS a
            JOIN move AS m ON m.account_id = a.id AND m.currency = a.currency
            WHERE a.id = ANY (unfloored_ids) AND NOT a.floored AND NOT a.frozen AND m.unheld)
    INTO found;
    IF found <> all_sides THEN
        RAISE EXCEPTION 'an entry names an unknown or frozen account, another currency, or holds what has no floor'
        USING ERRCODE = 'integrity_constraint_violation';
    END IF;

    -- Beyond all numbers given out, also when nothing but holds changed: whoever saw the old one must look again.
    SELECT setval('ledger_number', seen_number + transfers + 1),
           setval('ledger_newest', greatest(first_half(last_id), newest_before)),
           setval('ledger_at', (extract(epoch FROM posted_at) * 1000000)::bigint)
    INTO found;
    RETURN found;
END $$;

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
