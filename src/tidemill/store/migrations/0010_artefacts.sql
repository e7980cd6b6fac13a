-- Artefacts: what accounts keep, the bytes behind it, uploads under way, what nodes may touch, and what tasks need.

-- How much an account keeps and has under way. Its row is locked before anything of the account is counted anew, so that
-- any number of uploads that begin at once never pass the quota together. Always locked before a content.
CREATE TABLE artefact_usage (
    account_id      uuid PRIMARY KEY REFERENCES account,
    used_bytes      bigint NOT NULL DEFAULT 0 CHECK (used_bytes >= 0),
    reserved_bytes  bigint NOT NULL DEFAULT 0 CHECK (reserved_bytes >= 0),
    -- When it was last charged for what it keeps, and since when it could not pay.
    charged_at      timestamptz,
    unpaid_since    timestamptz
);

-- Bytes in storage, held once however many artefacts refer to them. One that nothing refers to is idle, and counts for the
-- account that was the last to refer to it until it is gone from storage.
CREATE TABLE artefact_content (
    digest      text PRIMARY KEY CHECK (digest ~ '^[0-9a-f]{64}$'),
    size_bytes  bigint NOT NULL CHECK (size_bytes >= 0),
    refers      bigint NOT NULL CHECK (refers >= 0),
    idle_since  timestamptz,
    left_by     uuid,
    CHECK ((idle_since IS NULL) = (left_by IS NULL)),
    CHECK ((refers = 0) = (idle_since IS NOT NULL))
);
CREATE INDEX artefact_content_idle ON artefact_content (idle_since) WHERE idle_since IS NOT NULL;
CREATE INDEX artefact_content_left ON artefact_content (left_by) WHERE left_by IS NOT NULL;

CREATE TABLE artefact (
    id          uuid PRIMARY KEY,
    account_id  uuid NOT NULL REFERENCES account,
    digest      text NOT NULL REFERENCES artefact_content,
    size_bytes  bigint NOT NULL,
    purpose     text NOT NULL CHECK (purpose IN ('input', 'model', 'result')),
    name        text NOT NULL CHECK (name <> ''),
    made_at     timestamptz NOT NULL,
    -- The attempt whose result it is.
    attempt_id  uuid,
    CHECK ((purpose = 'result') = (attempt_id IS NOT NULL))
);
CREATE INDEX artefact_owner ON artefact (account_id, id);
CREATE INDEX artefact_end ON artefact (right(id::text, 8));
CREATE INDEX artefact_name ON artefact (name, account_id, id) WHERE purpose <> 'result';
CREATE INDEX artefact_digest ON artefact (digest);
CREATE UNIQUE INDEX artefact_attempt ON artefact (attempt_id) WHERE attempt_id IS NOT NULL;

-- An upload. When it is finished it names its artefact and is kept for a while, for a client that missed the answer.
CREATE TABLE upload (
    id            uuid PRIMARY KEY,
    account_id    uuid NOT NULL REFERENCES account,
    -- The account or the node that began it.
    begun_by      uuid NOT NULL,
    purpose       text NOT NULL CHECK (purpose IN ('input', 'model', 'result')),
    name          text NOT NULL,
    length_bytes  bigint NOT NULL CHECK (length_bytes >= 0),
    expected      text,
    attempt_id    uuid,
    expires_at    timestamptz NOT NULL,
    -- Not a reference: the artefact may be deleted before the upload is forgotten.
    artefact_id   uuid
);
CREATE INDEX upload_owner ON upload (account_id) WHERE artefact_id IS NULL;
CREATE INDEX upload_expiry ON upload (expires_at);
CREATE UNIQUE INDEX upload_attempt ON upload (attempt_id) WHERE attempt_id IS NOT NULL;

-- What a node may do for an attempt, until then: read one digest, or upload one result of at most so many bytes, which
-- will be the account's. Written and removed in batches, by the thousand; so nothing is referred to.
CREATE TABLE artefact_grant (
    attempt_id      uuid NOT NULL,
    node_id         uuid NOT NULL,
    account_id      uuid NOT NULL,
    access          text NOT NULL CHECK (access IN ('read', 'write')),
    digest          text,
    size_max_bytes  bigint NOT NULL,
    until           timestamptz NOT NULL,
    CHECK ((access = 'read') = (digest IS NOT NULL)),
    UNIQUE NULLS NOT DISTINCT (attempt_id, digest)
);
CREATE INDEX artefact_grant_node ON artefact_grant (node_id, digest);
CREATE INDEX artefact_grant_until ON artefact_grant (until);

-- Which unfinished task needs which artefact: such a one is not deleted.
CREATE TABLE artefact_use (
    task_id      uuid NOT NULL,
    artefact_id  uuid NOT NULL REFERENCES artefact,
    PRIMARY KEY (task_id, artefact_id)
);
CREATE INDEX artefact_use_artefact ON artefact_use (artefact_id);
