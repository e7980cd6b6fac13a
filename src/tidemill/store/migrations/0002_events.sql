-- Events: the log of everything that happened, and the audit trail of those that security depends on.

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
    -- Whoever appends the event says whether it is audited. So a process also chains kinds that it does not know yet.
    audited      boolean NOT NULL DEFAULT false,
    PRIMARY KEY (id)
) PARTITION BY RANGE (id);
CREATE INDEX event_order ON event (generation, transaction, number);
CREATE INDEX event_audited ON event (generation, transaction, number) WHERE audited;
CREATE INDEX event_head_published ON event (generation, transaction, number) WHERE kind = 'audit.head_published';
-- What happened to a node, newest first.
CREATE INDEX event_of_node ON event (subject, generation, transaction, number) WHERE subject LIKE 'node:%';
INSERT INTO partitioned_table (name) VALUES ('event');

-- The audit trail: every audited event once more, each row chained to the one before by its hash. Rows are only ever
-- added, at the end. Whoever changes one must change every later one, too, and then no published head fits.
CREATE TABLE audit_trail (
    number        bigint PRIMARY KEY CHECK (number > 0),
    -- The event's place in the log. The search for the next audited event begins behind the last row's.
    generation    bigint NOT NULL,
    transaction   bigint NOT NULL,
    event_number  bigint NOT NULL,
    at            timestamptz NOT NULL,
    event_id      uuid NOT NULL UNIQUE,
    kind          text NOT NULL CHECK (strpos(kind, E'\n') = 0),
    subject       text NOT NULL,
    -- JSON exactly as it was hashed, on one line.
    body          text NOT NULL CHECK (strpos(body, E'\n') = 0),
    previous      bytea NOT NULL UNIQUE,
    sha256        bytea NOT NULL UNIQUE
);
CREATE INDEX audit_trail_kind ON audit_trail (kind, number);
CREATE INDEX audit_trail_subject ON audit_trail (subject, number);

-- The hash of a row, over all that it says. The program computes the same; a test compares them.
CREATE FUNCTION audit_trail_sha256(one audit_trail) RETURNS bytea
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT sha256(convert_to(concat_ws(E'\n',
        'tidemill audit trail 1', one.number, encode(one.previous, 'hex'),
        concat_ws('.', one.generation, one.transaction, one.event_number),
        (extract(epoch FROM one.at) * 1000000)::bigint, one.event_id, one.kind, one.subject, one.body
    ), 'UTF8'))
$$;

-- A row goes behind the last one, and nowhere else. When two are added at once, the unique keys refuse one of them.
CREATE FUNCTION check_audit_trail() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    last  audit_trail;
BEGIN
    SELECT * INTO last FROM audit_trail ORDER BY number DESC LIMIT 1;
    IF NEW.number <> coalesce(last.number, 0) + 1
        OR NEW.previous <> coalesce(last.sha256, decode(repeat('00', 32), 'hex'))
        OR (NEW.generation, NEW.transaction, NEW.event_number)
            <= (coalesce(last.generation, 0), coalesce(last.transaction, 0), coalesce(last.event_number, 0))
        OR NEW.sha256 <> audit_trail_sha256(NEW)
    THEN
        RAISE EXCEPTION 'this row does not continue the audit trail' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER continues_the_trail BEFORE INSERT ON audit_trail
    FOR EACH ROW EXECUTE FUNCTION check_audit_trail();

-- Refuses every change, also by the owner of the schema, who has every right and makes mistakes.
CREATE FUNCTION refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit trail is never changed' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_trail
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
