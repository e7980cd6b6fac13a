-- One letter.
SELECT id, recipient, kind, language, parameters AS sealed, made_at, state, tries, next_at, tried_since, sent_at,
    last_error
FROM mail WHERE id = :id
