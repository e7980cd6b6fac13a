"""Sandboxes, where tasks run: isolation by the means that the machine has, behind one interface."""
