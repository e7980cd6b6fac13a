-- Give letters back to be tried later, each with its number of tries, its next time and its error. Rows that somebody
-- else has leased since are left alone.
UPDATE mail AS m
SET tries = l.tries, next_at = l.next_at, last_error = l.error, lease_token = NULL, leased_until = NULL
FROM unnest(:ids::uuid[], :tries::integer[], :next_ats::timestamptz[], :errors::text[]) AS l (id, tries, next_at, error)
WHERE m.id = l.id AND m.lease_token = :token AND m.state = 'waiting'
RETURNING m.id
