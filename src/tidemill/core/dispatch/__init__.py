"""Dispatch: tasks that wait become attempts on nodes, and what nodes deliver becomes verdicts. Pure."""
