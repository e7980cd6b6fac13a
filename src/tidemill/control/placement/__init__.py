"""Placement: waiting tasks go to nodes, and every decision explains itself."""
