-- What prevents a month from being archived: holds with something left, and captures and releases whose hold is not
-- older than the month's end.
SELECT (SELECT count(*) FROM hold WHERE id >= :first_id AND id < :end_id AND captured_uc + released_uc < amount_uc) AS open,
       (SELECT count(*) FROM transfer WHERE id >= :first_id AND id < :end_id AND hold_id >= :end_id)
     + (SELECT count(*) FROM hold_release WHERE id >= :first_id AND id < :end_id AND hold_id >= :end_id) AS later
