"""The registry of models."""
