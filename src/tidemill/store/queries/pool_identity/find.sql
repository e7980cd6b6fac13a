-- The pool's key pair, sealed.
SELECT id, seed FROM pool_identity
