-- One letter.
SELECT id, recipient, kind, language, parameters, made_at, state, tries, next_at, tried_since, sent_at, last_error
FROM mail WHERE id = :id
