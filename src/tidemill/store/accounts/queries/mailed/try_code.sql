-- The newest letters to an address whose code may still be tried; each look is a try. Those who try at once wait for one
-- another, and see how many tries there were by then.
UPDATE mailed_token SET tries = tries + 1
WHERE tries < :tries_max AND id IN (
    SELECT id FROM mailed_token
    WHERE address_key = :address_key AND purpose = ANY (:purposes::text[]) AND expires_at > :now AND tries < :tries_max
    ORDER BY id DESC LIMIT 3
)
RETURNING id, code
