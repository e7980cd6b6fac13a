"""The log of events as a live stream, and the audit trail."""
