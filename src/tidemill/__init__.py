"""One pool of the GPUs of many owners: sells their work, checks it was done, pays from books anyone can verify."""

__version__ = "0.1.0"
