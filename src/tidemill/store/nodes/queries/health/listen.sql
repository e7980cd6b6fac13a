-- Write how long we have listened. Returns no row if another process has written since we looked; then its tick counts.
UPDATE listening
SET listened_us = :listened_us, at = :at, since = :since, deaf_since = :deaf_since
WHERE at IS NOT DISTINCT FROM :at_before AND listened_us = :listened_us_before
RETURNING at
