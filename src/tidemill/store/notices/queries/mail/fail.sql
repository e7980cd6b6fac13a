-- Give letters up. Their text stays sealed for a while, so that an operator can have them tried again. Rows that
-- somebody else has leased since are left alone, so each failure is told once.
UPDATE mail AS m
SET state = 'failed', tries = f.tries, last_error = f.error, lease_token = NULL, leased_until = NULL
FROM unnest(:ids::uuid[], :tries::integer[], :errors::text[]) AS f (id, tries, error)
WHERE m.id = f.id AND m.lease_token = :token AND m.state = 'waiting'
RETURNING m.id
