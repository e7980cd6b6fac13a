-- Write down how long we have listened, if nobody did since we looked; else no row comes back, and their tick counts.
UPDATE listening
SET listened_us = :listened_us, at = :at, since = :since, deaf_since = :deaf_since
WHERE at IS NOT DISTINCT FROM :at_before AND listened_us = :listened_us_before
RETURNING at
