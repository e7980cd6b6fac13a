-- Put letters that nobody sent into the outbox. Any number of processes may do this: each row is put aside once.
-- Letters that another process is sending are skipped.
UPDATE mail SET state = 'outbox', lease_token = NULL, leased_until = NULL
WHERE id IN (
    SELECT id FROM mail
    WHERE state = 'waiting' AND next_at <= :due_before AND (leased_until IS NULL OR leased_until <= :now)
    ORDER BY next_at, id LIMIT :limit FOR UPDATE SKIP LOCKED
)
RETURNING id
