"""Tidemill: one pool of the GPUs of many owners."""

__version__ = "0.1.0"
