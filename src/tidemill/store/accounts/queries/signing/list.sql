-- The keys that sign access tokens, newest first.
SELECT id, private, public, made_at FROM signing_key ORDER BY id DESC
