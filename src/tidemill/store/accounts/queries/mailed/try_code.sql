-- The newest tokens of an address whose code may still be tried. Each look counts as a try. Callers who try at once
-- wait for each other, and then see the current number of tries.
UPDATE mailed_token SET tries = tries + 1
WHERE tries < :tries_max AND id IN (
    SELECT id FROM mailed_token
    WHERE address_key = :address_key AND purpose = ANY (:purposes::text[]) AND expires_at > :now AND tries < :tries_max
    ORDER BY id DESC LIMIT 3
)
RETURNING id, code
