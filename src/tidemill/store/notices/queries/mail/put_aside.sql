-- Put letters into the outbox that nobody came to send. Any number of processes may: each row is put aside once. What
-- another process is sending at the moment is left to it.
UPDATE mail SET state = 'outbox', lease_token = NULL, leased_until = NULL
WHERE id IN (
    SELECT id FROM mail
    WHERE state = 'waiting' AND next_at <= :due_before AND (leased_until IS NULL OR leased_until <= :now)
    ORDER BY next_at, id LIMIT :limit FOR UPDATE SKIP LOCKED
)
RETURNING id
