-- Take a month of a table out of the database.
SELECT drop_month(:table, :month)
