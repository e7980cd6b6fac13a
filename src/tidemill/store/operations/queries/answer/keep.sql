-- Keep the answer with its key, in the transaction of its effect.
UPDATE answer SET status = :status, content = :content WHERE caller = :caller AND route = :route AND key = :key
