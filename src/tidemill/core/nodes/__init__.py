"""Nodes: their life cycle, their owners' rules, and why one gets no work."""
