"""The registry of models in the database."""
