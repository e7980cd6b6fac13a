"""Runs in bubblewrap: seats made ready ahead of time, and the processes of a run."""
