"""Runs in a container engine, through Docker's API."""
