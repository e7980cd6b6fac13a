"""What verified work is paid, written to the ledger."""
