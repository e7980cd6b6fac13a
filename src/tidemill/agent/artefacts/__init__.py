"""Artefacts on this machine: its cache, and its transfers with the pool."""
