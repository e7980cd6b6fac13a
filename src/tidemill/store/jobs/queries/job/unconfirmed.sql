-- How many jobs an account ordered and never confirmed, and how large they are in the database.
SELECT count(*) AS jobs, coalesce(sum(pg_column_size(asked) + pg_column_size(quote)), 0)::bigint AS size_bytes
FROM job
WHERE account_id = :account_id AND confirmed_at IS NULL
