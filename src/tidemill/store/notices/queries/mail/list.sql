-- The newest letters, without their text.
SELECT id, recipient, kind, language, NULL::bytea AS sealed, made_at, state, tries, next_at, tried_since, sent_at,
    last_error
FROM mail ORDER BY id DESC LIMIT :limit
