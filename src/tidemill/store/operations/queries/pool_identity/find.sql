-- The pool's key pair, sealed.
SELECT id, seed AS sealed FROM pool_identity
