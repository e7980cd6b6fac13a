-- Models: the registry of the pool's models.

-- A model's artefact stays as long as the model does.
CREATE TABLE model (
    id              uuid PRIMARY KEY,
    name            text NOT NULL,
    source          text NOT NULL,
    licence         text NOT NULL,
    artefact_id     uuid NOT NULL REFERENCES artefact,
    memory_mib      bigint NOT NULL CHECK (memory_mib >= 0),
    gpu_memory_mib  bigint NOT NULL CHECK (gpu_memory_mib >= 0),
    added_by        text NOT NULL,
    added_at        timestamptz NOT NULL
);
CREATE UNIQUE INDEX model_name ON model (lower(name));
CREATE INDEX model_artefact ON model (artefact_id);
