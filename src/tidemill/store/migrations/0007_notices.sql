-- Notices: letters to people. They are written in the transaction of their cause, sent by a loop, and deleted when they are
-- old.

CREATE TABLE mail (
    id              uuid PRIMARY KEY,
    recipient       text NOT NULL,
    kind            text NOT NULL,
    language        text NOT NULL,
    -- What the letter says, with its links and codes, and whom it is for. Sealed, and emptied once the letter is sent.
    parameters      bytea,
    parameters_key  uuid GENERATED ALWAYS AS (data_key_of(parameters)) STORED REFERENCES data_key,
    made_at         timestamptz NOT NULL,
    state           text NOT NULL CHECK (state IN ('waiting', 'sent', 'failed', 'outbox')),
    tries           integer NOT NULL,
    -- When it is tried next, and since when it counts towards giving up: an operator may have it tried anew.
    next_at         timestamptz NOT NULL,
    tried_since     timestamptz NOT NULL,
    -- Who sends it: a token that is new with every lease, and until when it holds.
    lease_token     uuid,
    leased_until    timestamptz,
    sent_at         timestamptz,
    last_error      text NOT NULL,
    CHECK (state <> 'sent' OR (parameters IS NULL AND sent_at IS NOT NULL)),
    CHECK (state <> 'waiting' OR parameters IS NOT NULL)
);
CREATE INDEX mail_waiting ON mail (next_at, id) WHERE state = 'waiting';
CREATE INDEX mail_to_empty ON mail (made_at) WHERE state IN ('failed', 'outbox') AND parameters IS NOT NULL;
CREATE INDEX mail_recipient ON mail (lower(recipient), kind, made_at);
CREATE INDEX mail_age ON mail (made_at);
CREATE INDEX mail_parameters_key ON mail (parameters_key) WHERE parameters_key IS NOT NULL;
