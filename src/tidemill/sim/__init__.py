"""Simulation: production's decisions in worlds that come from files. No clock and no network; chance has a seed."""
