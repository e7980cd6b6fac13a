-- The key of the pool's verification, sealed.
SELECT id, private AS sealed FROM verification_key
