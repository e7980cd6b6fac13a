-- Events of a generation that has not begun, or of a transaction that the server has not reached.
SELECT count(*) AS events,
       count(*) FILTER (
           WHERE generation > (SELECT generation FROM pool)
              OR (generation = (SELECT generation FROM pool) AND transaction > pg_snapshot_xmax(pg_current_snapshot()))
       ) AS wrong
FROM event
