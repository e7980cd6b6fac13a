-- Remember an archive: its file, by its hash, and the number of its checkpoints.
INSERT INTO ledger_archive (month, archived_at, number, end_id, last_at, file, sha256, entries)
VALUES (:month, :archived_at, :number, :end_id, :last_at, :file, :sha256, :entries)
