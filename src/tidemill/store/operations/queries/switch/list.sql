-- The switches that somebody has touched.
SELECT name, stopped, reason, changed_by, changed_at FROM switch
