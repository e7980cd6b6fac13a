-- Lease letters that are due, oldest first. SKIP LOCKED lets copies of the loop take different rows at once; an expired
-- lease is taken again, under a new token. A lease from a clock that ran far ahead is ignored.
UPDATE mail SET lease_token = :token, leased_until = :leased_until
WHERE id IN (
    SELECT id FROM mail
    WHERE state = 'waiting' AND next_at <= :now
      AND (leased_until IS NULL OR leased_until <= :now OR leased_until > :implausible)
    ORDER BY next_at, id LIMIT :limit FOR UPDATE SKIP LOCKED
)
RETURNING id, recipient, kind, language, parameters AS sealed, made_at, state, tries, next_at, tried_since, sent_at,
    last_error
