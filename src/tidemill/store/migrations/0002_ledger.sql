-- The ledger. The program cannot write these tables: it opens accounts and posts entries through two functions, which
-- change transfers, holds and balances together. No sequence of its statements can make the books disagree.

CREATE TABLE ledger_account (
    id         uuid PRIMARY KEY,
    kind       text NOT NULL,
    owner_id   uuid,
    name       text NOT NULL,
    currency   text NOT NULL CHECK (currency <> ''),
    -- Never below zero. Only such an account has a row in ledger_balance: nobody has to wait for the others.
    floored    boolean NOT NULL,
    frozen     boolean NOT NULL DEFAULT false,
    opened_at  timestamptz NOT NULL,
    UNIQUE NULLS NOT DISTINCT (kind, owner_id, name, currency)
);
CREATE INDEX ledger_account_owner ON ledger_account (owner_id) WHERE owner_id IS NOT NULL;

CREATE TABLE ledger_balance (
    account_id  uuid PRIMARY KEY REFERENCES ledger_account,
    posted_uc   bigint NOT NULL DEFAULT 0,
    held_uc     bigint NOT NULL DEFAULT 0 CHECK (held_uc >= 0),
    CONSTRAINT never_below_zero CHECK (posted_uc >= held_uc)
) WITH (fillfactor = 40);

CREATE TABLE transfer (
    id         uuid NOT NULL PRIMARY KEY,
    debit_id   uuid NOT NULL,
    credit_id  uuid NOT NULL,
    amount_uc  bigint NOT NULL CHECK (amount_uc > 0),
    currency   text NOT NULL,
    kind       text NOT NULL CHECK (kind <> ''),
    cause      text NOT NULL CHECK (cause <> ''),
    hold_id    uuid,
    at         timestamptz NOT NULL,
    CHECK (debit_id <> credit_id)
) PARTITION BY RANGE (id);
CREATE INDEX transfer_debit ON transfer (debit_id, id);
CREATE INDEX transfer_credit ON transfer (credit_id, id);

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

INSERT INTO partitioned_table VALUES ('transfer'), ('hold'), ('hold_release'), ('refused_entry');

-- Opens accounts; one that is open already stays as it is. Answers how many were new.
CREATE FUNCTION open_accounts(
    ids uuid[], kinds text[], owner_ids uuid[], names text[], currencies text[], floors boolean[], now timestamptz
) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    WITH opened AS (
        INSERT INTO ledger_account (id, kind, owner_id, name, currency, floored, opened_at)
        SELECT a.id, a.kind, a.owner_id, a.name, a.currency, a.floored, now
        FROM unnest(ids, kinds, owner_ids, names, currencies, floors)
             AS a (id, kind, owner_id, name, currency, floored)
        ON CONFLICT DO NOTHING
        RETURNING id, floored
    ), balanced AS (
        INSERT INTO ledger_balance (account_id) SELECT id FROM opened WHERE floored
    )
    SELECT count(*) FROM opened
$$;

-- Posts what was decided: all of it, or nothing. The order inside a batch was the decision's business; here only the
-- books after the whole batch count, and they are checked: every account known, one currency, none frozen, nothing
-- below its floor, no hold captured beyond what it has.
CREATE FUNCTION post_entries(
    now timestamptz,
    transfer_ids uuid[], debit_ids uuid[], credit_ids uuid[], amounts_uc bigint[], currencies text[], kinds text[],
    causes text[], hold_ids uuid[],
    placed_ids uuid[], placed_account_ids uuid[], placed_amounts_uc bigint[], placed_currencies text[],
    placed_until timestamptz[], placed_causes text[],
    release_ids uuid[], released_hold_ids uuid[], release_causes text[]
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    changed  bigint;
    strange  bigint;
BEGIN
    INSERT INTO hold (id, account_id, amount_uc, currency, expires_at, cause, at)
    SELECT h.*, now
    FROM unnest(placed_ids, placed_account_ids, placed_amounts_uc, placed_currencies, placed_until, placed_causes) AS h;

    INSERT INTO transfer (id, debit_id, credit_id, amount_uc, currency, kind, cause, hold_id, at)
    SELECT t.*, now
    FROM unnest(transfer_ids, debit_ids, credit_ids, amounts_uc, currencies, kinds, causes, hold_ids) AS t;

    UPDATE hold AS h SET captured_uc = h.captured_uc + m.captured_uc
    FROM (
        SELECT t.hold_id, t.debit_id, sum(t.amount_uc) AS captured_uc
        FROM unnest(hold_ids, debit_ids, amounts_uc) AS t (hold_id, debit_id, amount_uc)
        WHERE t.hold_id IS NOT NULL
        GROUP BY t.hold_id, t.debit_id
    ) AS m
    WHERE h.id = m.hold_id AND h.account_id = m.debit_id AND h.expires_at > now;
    GET DIAGNOSTICS changed = ROW_COUNT;
    IF changed <> (SELECT count(DISTINCT t.hold_id) FROM unnest(hold_ids) AS t (hold_id) WHERE t.hold_id IS NOT NULL) THEN
        RAISE EXCEPTION 'a capture names no open hold of its account' USING ERRCODE = 'integrity_constraint_violation';
    END IF;

    INSERT INTO hold_release (id, hold_id, amount_uc, cause, at)
    SELECT r.id, r.hold_id, h.amount_uc - h.captured_uc - h.released_uc, r.cause, now
    FROM unnest(release_ids, released_hold_ids, release_causes) AS r (id, hold_id, cause)
    JOIN hold AS h ON h.id = r.hold_id;
    GET DIAGNOSTICS changed = ROW_COUNT;
    IF changed <> cardinality(release_ids) THEN
        RAISE EXCEPTION 'a release names no hold' USING ERRCODE = 'integrity_constraint_violation';
    END IF;

    -- What moves on each account, once; against that both the accounts are checked and the balances changed.
    WITH released AS (
        UPDATE hold AS h SET released_uc = h.amount_uc - h.captured_uc
        FROM hold_release AS r
        WHERE r.id = ANY (release_ids) AND h.id = r.hold_id
        RETURNING h.account_id, h.currency, r.amount_uc
    ), moves AS MATERIALIZED (
        SELECT account_id, currency, sum(posted_uc)::bigint AS posted_uc, sum(held_uc)::bigint AS held_uc,
               bool_or(held) AS held, bool_and(given_back) AS given_back
        FROM (
            SELECT t.debit_id AS account_id, t.currency, -t.amount_uc AS posted_uc,
                   CASE WHEN t.hold_id IS NULL THEN 0 ELSE -t.amount_uc END AS held_uc, false AS held, false AS given_back
            FROM unnest(debit_ids, currencies, amounts_uc, hold_ids) AS t (debit_id, currency, amount_uc, hold_id)
            UNION ALL
            SELECT t.credit_id, t.currency, t.amount_uc, 0, false, false
            FROM unnest(credit_ids, currencies, amounts_uc) AS t (credit_id, currency, amount_uc)
            UNION ALL
            SELECT p.account_id, p.currency, 0, p.amount_uc, true, false
            FROM unnest(placed_account_ids, placed_currencies, placed_amounts_uc) AS p (account_id, currency, amount_uc)
            UNION ALL
            SELECT account_id, currency, 0, -amount_uc, false, true FROM released
        ) AS sides
        GROUP BY account_id, currency
    ), changed_balances AS (
        UPDATE ledger_balance AS b SET posted_uc = b.posted_uc + m.posted_uc, held_uc = b.held_uc + m.held_uc
        FROM moves AS m
        WHERE b.account_id = m.account_id
    )
    SELECT count(*) INTO strange
    FROM moves AS m
    LEFT JOIN ledger_account AS a ON a.id = m.account_id
    WHERE (
        a.currency = m.currency AND (m.given_back OR NOT a.frozen) AND (a.floored OR NOT m.held)
    ) IS NOT TRUE;

    IF strange > 0 THEN
        RAISE EXCEPTION 'an entry names an unknown or frozen account, another currency, or holds what has no floor'
        USING ERRCODE = 'integrity_constraint_violation';
    END IF;
END $$;
