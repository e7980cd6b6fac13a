"""PostgreSQL: the embedded server, migrations, queries and typed functions. The only user of the driver."""
