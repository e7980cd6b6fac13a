-- Which artefacts nodes say they have: a hint for placement. A node has few rows, and its report replaces them all.
CREATE TABLE node_cache (
    node_id  uuid NOT NULL REFERENCES node,
    digest   text NOT NULL CHECK (digest ~ '^[0-9a-f]{64}$'),
    PRIMARY KEY (node_id, digest)
);
CREATE INDEX node_cache_digest ON node_cache (digest);
