-- Delete old jobs that nobody confirmed. Jobs that somebody else changes at this moment are skipped.
SELECT forget_unconfirmed_jobs(:before, :limit) AS forgotten
