-- Count the uses of tokens. The caller has locked their rows, and a constraint keeps them within their bounds.
UPDATE join_token AS t
SET uses = t.uses + u.uses, letter_at = CASE WHEN u.letter THEN :now ELSE t.letter_at END
FROM unnest(:ids::uuid[], :uses::integer[], :letters::boolean[]) AS u (id, uses, letter)
WHERE t.id = u.id
