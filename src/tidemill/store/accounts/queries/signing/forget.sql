-- Delete signing keys whose last token expired long ago.
DELETE FROM signing_key WHERE made_at < :made_before RETURNING id
