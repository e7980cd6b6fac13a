"""Placement, as tables and as properties."""
