-- Secrets: the data keys that seal values in other tables. They lie here wrapped by a master key, which is never here.

CREATE TABLE data_key (
    id          uuid PRIMARY KEY,
    wrapped     bytea NOT NULL,
    -- Which master key wrapped it: the first bytes of a hash of it.
    master_id   text NOT NULL,
    made_at     timestamptz NOT NULL,
    -- A retired key only opens what it once sealed.
    retired_at  timestamptz
);
-- At most one key seals.
CREATE UNIQUE INDEX data_key_current ON data_key ((retired_at IS NULL)) WHERE retired_at IS NULL;

-- The data key that a sealed value names. A table with a sealed column `secret` also has
--     secret_key uuid GENERATED ALWAYS AS (data_key_of(secret)) STORED REFERENCES data_key
-- and an index on it, so that no data key is deleted while it seals something, and nothing is written that was sealed
-- with a key that is gone.
CREATE FUNCTION data_key_of(sealed bytea) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN length(sealed) > 17 THEN encode(substring(sealed FROM 2 FOR 16), 'hex')::uuid END
$$;
