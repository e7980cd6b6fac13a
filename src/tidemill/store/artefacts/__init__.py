"""Artefacts, their uploads and grants in the database."""
