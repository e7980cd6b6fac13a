-- Private results: the key that the pool's verification opens them with, and which jobs they are of.

-- Nodes seal results to its public half. Made once and kept for ever: what was sealed to it opens with nothing else.
CREATE TABLE verification_key (
    id           uuid PRIMARY KEY,
    only_one     boolean NOT NULL UNIQUE DEFAULT true CHECK (only_one),
    private      bytea NOT NULL,
    private_key  uuid GENERATED ALWAYS AS (data_key_of(private)) STORED REFERENCES data_key,
    made_at      timestamptz NOT NULL
);
CREATE INDEX verification_key_private_key ON verification_key (private_key);

-- Whoever takes a receipt learns from its job whether the result must be sealed, without reading any task.
ALTER TABLE job ADD COLUMN private boolean NOT NULL GENERATED ALWAYS AS ((asked ->> 'result_key') IS NOT NULL) STORED;
