-- A letter was sent: empty its text at once. A row that somebody else has leased since is left alone.
UPDATE mail
SET state = 'sent', sent_at = :now, tries = tries + 1, parameters = NULL, last_error = '',
    lease_token = NULL, leased_until = NULL
WHERE id = :id AND lease_token = :token AND state = 'waiting'
RETURNING id
