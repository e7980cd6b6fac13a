-- Write a letter, in the transaction of its cause. Of kinds that strangers can cause, none is written if the recipient
-- (in any case of the address) got one since `quiet_since`. Two callers at once may each write one; a letter too many
-- does no harm.
INSERT INTO mail (id, recipient, kind, language, parameters, made_at, state, tries, next_at, tried_since, last_error)
SELECT :id, :recipient, :kind, :language, :parameters, :now, 'waiting', 0, :now, :now, ''
WHERE :quiet_since::timestamptz IS NULL OR NOT EXISTS (
    SELECT FROM mail WHERE lower(recipient) = lower(:recipient) AND kind = :kind AND made_at > :quiet_since
)
