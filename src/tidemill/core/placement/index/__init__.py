"""The candidates kept so that a placement is quick: columns, lanes and ranking."""
