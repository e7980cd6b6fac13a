-- Keep what an operator decided. Of two who decide at once, the first counts.
UPDATE audit SET decided = :decided, decided_by = :by, decided_for = :reason
WHERE id = :attempt_id AND asked_at IS NOT NULL AND decided IS NULL
RETURNING id
