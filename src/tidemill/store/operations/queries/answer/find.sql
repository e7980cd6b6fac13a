-- The answer that was given for a key.
SELECT body_sha256, status, content FROM answer WHERE caller = :caller AND route = :route AND key = :key
