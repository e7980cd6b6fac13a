-- Accounts: who may come in, how they show who they are, and what was tried at the door.

CREATE TABLE account (
    id              uuid PRIMARY KEY,
    -- As its owner writes it, and as it is compared; a deleted account keeps neither.
    address         text NOT NULL,
    address_key     text NOT NULL,
    password_hash   text NOT NULL,
    password_at     timestamptz NOT NULL,
    roles           text[] NOT NULL
        CHECK (roles <@ ARRAY['customer', 'provider', 'data_centre', 'operator'] AND cardinality(roles) > 0),
    -- Where two operators have to agree, a new one's word does not count at once.
    operator_since  timestamptz,
    language        text NOT NULL CHECK (language IN ('en', 'ru', 'zh')),
    kyc             text NOT NULL DEFAULT 'none' CHECK (kyc IN ('none', 'submitted', 'verified', 'rejected')),
    kyc_reason      text NOT NULL DEFAULT '',
    blocked_reason  text CHECK (blocked_reason <> ''),
    created_at      timestamptz NOT NULL,
    deleted_at      timestamptz,
    CHECK (deleted_at IS NULL OR (address = '' AND password_hash = '')),
    CHECK ((operator_since IS NOT NULL) = ('operator' = ANY (roles)))
);
-- By the end of the id, as people write it.
CREATE INDEX account_end ON account (right(id::text, 8));
CREATE UNIQUE INDEX account_address ON account (address_key) WHERE deleted_at IS NULL;

-- The link and the code of a letter; either proves once that somebody reads the address's mail. The code is short and could
-- be guessed from its hash, so it is sealed. The link is long, so its hash is enough.
CREATE TABLE mailed_token (
    id             uuid PRIMARY KEY,
    purpose        text NOT NULL CHECK (purpose IN ('register', 'reset', 'new_address')),
    address        text NOT NULL,
    address_key    text NOT NULL,
    account_id     uuid REFERENCES account,
    link_sha256    bytea NOT NULL UNIQUE,
    code           bytea NOT NULL,
    code_key       uuid GENERATED ALWAYS AS (data_key_of(code)) STORED REFERENCES data_key,
    tries          integer NOT NULL DEFAULT 0,
    expires_at     timestamptz NOT NULL,
    -- For a registration: the account that is made when it is confirmed.
    password_hash  text,
    roles          text[],
    language       text,
    CHECK ((purpose = 'register') = (account_id IS NULL)),
    CHECK ((purpose = 'register') = (password_hash IS NOT NULL AND roles IS NOT NULL AND language IS NOT NULL))
);
CREATE INDEX mailed_token_address ON mailed_token (address_key, purpose);
CREATE INDEX mailed_token_age ON mailed_token (expires_at);
CREATE INDEX mailed_token_key ON mailed_token (code_key);

CREATE TABLE account_totp (
    account_id  uuid PRIMARY KEY REFERENCES account,
    secret      bytea NOT NULL,
    secret_key  uuid GENERATED ALWAYS AS (data_key_of(secret)) STORED REFERENCES data_key,
    -- The time step of the last code that was used: none is good twice.
    used_step   bigint NOT NULL DEFAULT 0,
    on_since    timestamptz
);
CREATE INDEX account_totp_key ON account_totp (secret_key);

CREATE TABLE recovery_code (
    account_id  uuid NOT NULL REFERENCES account,
    sha256      bytea NOT NULL,
    PRIMARY KEY (account_id, sha256)
);

CREATE TABLE session (
    id             uuid PRIMARY KEY,
    account_id     uuid NOT NULL REFERENCES account,
    began_at       timestamptz NOT NULL,
    seen_at        timestamptz NOT NULL,
    -- When its owner last typed the password.
    fresh_at       timestamptz NOT NULL,
    expires_at     timestamptz NOT NULL,
    address        text NOT NULL,
    user_agent     text NOT NULL,
    remember       boolean NOT NULL,
    second_factor  boolean NOT NULL,
    ended_at       timestamptz,
    ended_why      text,
    CHECK ((ended_at IS NULL) = (ended_why IS NULL))
);
CREATE INDEX session_account ON session (account_id, id);
CREATE INDEX session_age ON session (expires_at);

-- Every refresh token of a session, as a hash; all but the newest have been used.
CREATE TABLE refresh_token (
    sha256      bytea PRIMARY KEY,
    session_id  uuid NOT NULL REFERENCES session ON DELETE CASCADE,
    used        boolean NOT NULL DEFAULT false
);
CREATE UNIQUE INDEX refresh_token_newest ON refresh_token (session_id) WHERE NOT used;
CREATE INDEX refresh_token_session ON refresh_token (session_id);

CREATE TABLE signing_key (
    id           uuid PRIMARY KEY,
    private      bytea NOT NULL,
    private_key  uuid GENERATED ALWAYS AS (data_key_of(private)) STORED REFERENCES data_key,
    public       bytea NOT NULL,
    made_at      timestamptz NOT NULL
);
CREATE INDEX signing_key_key ON signing_key (private_key);

CREATE TABLE api_key (
    id               uuid PRIMARY KEY,
    account_id       uuid NOT NULL REFERENCES account,
    name             text NOT NULL,
    role             text NOT NULL,
    scopes           text[] NOT NULL CHECK (cardinality(scopes) > 0),
    prefix           text NOT NULL,
    sha256           bytea NOT NULL UNIQUE,
    networks         text[] NOT NULL,
    spending_cap_uc  bigint CHECK (spending_cap_uc >= 0),
    spent_uc         bigint NOT NULL DEFAULT 0 CHECK (spent_uc >= 0 AND spent_uc <= coalesce(spending_cap_uc, spent_uc)),
    made_at          timestamptz NOT NULL,
    expires_at       timestamptz,
    last_used_at     timestamptz,
    -- In the future for a key that was rotated: until then both work.
    revoked_at       timestamptz,
    successor_id     uuid REFERENCES api_key,
    -- The first of the keys that took over from one another: what all of them spent is counted there.
    first_id         uuid NOT NULL REFERENCES api_key
);
CREATE INDEX api_key_account ON api_key (account_id, id);

-- Every try at the door, for the owner to see. `account_id` is null when there is no such account.
CREATE TABLE login_attempt (
    id              uuid PRIMARY KEY,
    account_id      uuid REFERENCES account,
    -- A hash, since people type passwords where addresses belong, and addresses that are nobody's business.
    address_sha256  bytea NOT NULL,
    at              timestamptz NOT NULL,
    network         text NOT NULL,
    address         text NOT NULL,
    user_agent      text NOT NULL,
    result          text NOT NULL
        CHECK (result IN ('ok', 'failed', 'code_missing', 'code_wrong', 'blocked', 'locked', 'reset'))
);
CREATE INDEX login_attempt_account ON login_attempt (account_id, id);
CREATE INDEX login_attempt_failures ON login_attempt (address_sha256, at) WHERE result IN ('failed', 'code_wrong');
CREATE INDEX login_attempt_used ON login_attempt (account_id, network, at) WHERE result IN ('ok', 'reset');
CREATE INDEX login_attempt_age ON login_attempt (at);
CREATE INDEX login_attempt_nobodys ON login_attempt (at) WHERE account_id IS NULL;
