"""Artefacts: uploads, downloads, and storage kept in order."""
