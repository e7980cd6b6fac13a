"""Commands that read and change the books."""
