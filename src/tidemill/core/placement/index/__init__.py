"""The candidates indexed for quick placement: columns, lanes and ranking."""
