-- Insert a model. Returns no row if the name is taken.
INSERT INTO model (id, name, source, licence, artefact_id, memory_mib, gpu_memory_mib, added_by, added_at)
VALUES (:id, :name, :source, :licence, :artefact_id, :memory_mib, :gpu_memory_mib, :added_by, :now)
ON CONFLICT (lower(name)) DO NOTHING
RETURNING id
