-- Note when keys were last used. Written in batches; the time never goes back.
UPDATE api_key k SET last_used_at = u.at
FROM unnest(:ids::uuid[], :ats::timestamptz[]) AS u (id, at)
WHERE k.id = u.id AND (k.last_used_at IS NULL OR k.last_used_at < u.at)
