-- The key of the pool's verification, sealed.
SELECT id, private FROM verification_key
