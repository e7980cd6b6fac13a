"""Strategies of owners in the simulated economy."""
