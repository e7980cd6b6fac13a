"""Loops: load, decide, apply, again and again. How to add one: docs/how-to/add-a-loop.md."""
