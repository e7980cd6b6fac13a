-- Delete rounds that were closed long ago; their outcomes stay in events.
DELETE FROM challenge_round WHERE id IN (
    SELECT id FROM challenge_round WHERE closed_at < :closed_before LIMIT :limit FOR UPDATE SKIP LOCKED
)
RETURNING id
