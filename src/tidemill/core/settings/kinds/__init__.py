"""Kinds of settings: how their values are read, shown and bounded."""
