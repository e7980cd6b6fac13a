-- Keys whose last token is long over.
DELETE FROM signing_key WHERE made_at < :made_before RETURNING id
