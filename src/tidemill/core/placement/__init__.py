"""Placement: which node gets which task, and why. Pure: the caller brings candidates, requests, time and chance."""
