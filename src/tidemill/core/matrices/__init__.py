"""Matrices: drawn from a seed, multiplied exactly, and read from files of strangers. Light to import: tasks do so."""
