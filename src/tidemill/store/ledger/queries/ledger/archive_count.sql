-- How many entries of a month are in the tables, and when the last of its transfers was posted.
SELECT (SELECT count(*) FROM transfer WHERE id >= :first_id AND id < :end_id)
     + (SELECT count(*) FROM hold WHERE id >= :first_id AND id < :end_id)
     + (SELECT count(*) FROM hold_release WHERE id >= :first_id AND id < :end_id)
     + (SELECT count(*) FROM refused_entry WHERE id >= :first_id AND id < :end_id) AS entries,
       (SELECT max(at) FROM transfer WHERE id >= :first_id AND id < :end_id) AS last_at
