"""The log of events and the audit trail in the database."""
