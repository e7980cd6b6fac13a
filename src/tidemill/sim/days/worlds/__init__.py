"""Worlds for a simulated day: nodes, their hours, and what customers order."""
