"""Nodes: who may link, what they report, what they are told, how healthy they are."""
