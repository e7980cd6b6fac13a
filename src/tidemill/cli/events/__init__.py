"""Commands that read the log of events and the audit trail."""
