"""Whose work is checked, how often, by whom, and what follows: the rules of trust, as functions over plain values."""
