"""Commands for the operator of a pool."""
