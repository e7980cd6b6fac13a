-- How many letters wait to be sent.
SELECT count(*) AS waiting FROM mail WHERE state = 'waiting'
