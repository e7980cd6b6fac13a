"""Placement: which node gets which task, and why. Pure: the caller brings candidates, demands, time and chance."""
