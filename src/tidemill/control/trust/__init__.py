"""Verification: results become verdicts."""
