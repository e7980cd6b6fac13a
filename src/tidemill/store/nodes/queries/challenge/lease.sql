-- Lease challenges that can be concluded: opened, expired, or reported as impossible. SKIP LOCKED lets copies of the
-- loop take different ones; an expired lease is taken again, under a new token.
UPDATE challenge SET lease_token = :token, leased_until = :leased_until
WHERE id IN (
    SELECT c.id FROM challenge AS c JOIN challenge_round AS r ON r.id = c.round_id
    WHERE c.concluded_at IS NULL AND r.drawn_at IS NOT NULL AND (c.state <> 'drawn' OR r.open_by <= :now)
      AND (c.leased_until IS NULL OR c.leased_until <= :now OR c.leased_until > :implausible)
    ORDER BY c.id LIMIT :limit FOR UPDATE OF c SKIP LOCKED
)
RETURNING id
