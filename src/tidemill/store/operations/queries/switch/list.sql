-- The switches that somebody has set.
SELECT name, stopped, reason, changed_by, changed_at FROM switch
