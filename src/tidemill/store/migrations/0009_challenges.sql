-- Hardware challenges: rounds of an owner's nodes, what each node was asked and said, and what came of it.

-- When a node is challenged next, and how it stands. A node without a row has never been challenged.
CREATE TABLE node_challenge (
    node_id    uuid PRIMARY KEY REFERENCES node,
    due_at     timestamptz NOT NULL,
    begun_at   timestamptz NOT NULL,
    -- How often it was late, one time after the other.
    late       integer NOT NULL DEFAULT 0,
    -- When it last showed what it claims; none as long as it could not.
    passed_at  timestamptz,
    -- Why it could not, in sentences for its owner.
    refused    text
);

-- All nodes of an owner that are online are challenged at once, so that nothing can be shown twice.
CREATE TABLE challenge_round (
    id                 uuid PRIMARY KEY,
    account_id         uuid NOT NULL REFERENCES account,
    made_at            timestamptz NOT NULL,
    commit_by          timestamptz NOT NULL,
    -- How long the pool had listened when the round began, and when places were drawn: see listening.
    made_listened_us   bigint NOT NULL,
    drawn_at           timestamptz,
    open_by            timestamptz,
    drawn_listened_us  bigint,
    -- We could not hear for a while, so nobody is blamed for anything.
    deaf               boolean NOT NULL DEFAULT false,
    closed_at          timestamptz,
    CHECK ((drawn_at IS NULL) = (open_by IS NULL) AND (drawn_at IS NULL) = (drawn_listened_us IS NULL))
);
CREATE UNIQUE INDEX challenge_round_open ON challenge_round (account_id) WHERE closed_at IS NULL;
CREATE INDEX challenge_round_owner ON challenge_round (account_id, closed_at);
CREATE INDEX challenge_round_closed ON challenge_round (closed_at) WHERE closed_at IS NOT NULL;

CREATE TABLE challenge (
    id            uuid PRIMARY KEY,
    round_id      uuid NOT NULL REFERENCES challenge_round ON DELETE CASCADE,
    node_id       uuid NOT NULL REFERENCES node,
    state         text NOT NULL
                  CHECK (state IN ('asked', 'committed', 'drawn', 'opened', 'passed', 'failed', 'expired', 'cannot')),
    -- Claims and tasks (core.challenge.sizing.Asked), as JSON.
    asked         text NOT NULL,
    -- When the tasks were first handed to whoever holds the node's link: the clock of the multiplication starts here.
    sent_at       timestamptz,
    -- The random bytes that places are drawn by, once they are.
    draw          bytea,
    lease_token   uuid,
    leased_until  timestamptz,
    concluded_at  timestamptz,
    UNIQUE (round_id, node_id)
);
CREATE INDEX challenge_node ON challenge (node_id) WHERE concluded_at IS NULL;

-- What nodes said, until it was judged. The first of each counts: a commitment cannot be changed.
CREATE TABLE challenge_answer (
    challenge_id  uuid NOT NULL REFERENCES challenge ON DELETE CASCADE,
    device        smallint NOT NULL,
    step          text NOT NULL,
    part          text NOT NULL,
    place         bigint NOT NULL,
    body          bytea NOT NULL,
    received_at   timestamptz NOT NULL,
    PRIMARY KEY (challenge_id, device, step, part, place)
);
