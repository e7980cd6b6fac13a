"""Artefacts: content-addressed bytes, who may read and delete them, how much may be kept, and how they are uploaded."""
