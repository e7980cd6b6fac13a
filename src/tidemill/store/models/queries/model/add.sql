-- A new model. Nothing comes back if there is one of that name already.
INSERT INTO model (id, name, source, licence, artefact_id, memory_mib, gpu_memory_mib, added_by, added_at)
VALUES (:id, :name, :source, :licence, :artefact_id, :memory_mib, :gpu_memory_mib, :added_by, :now)
ON CONFLICT (lower(name)) DO NOTHING
RETURNING id
