-- The pool's verification key, sealed.
SELECT id, private AS sealed FROM verification_key
