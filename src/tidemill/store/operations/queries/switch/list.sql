-- The switches that somebody has set. A newer program may know others, which we ignore.
SELECT name AS switch, stopped, reason, changed_by, changed_at FROM switch WHERE name = ANY (:names::text[])
