-- Drop a month of a table from the database.
SELECT drop_month(:table, :month)
