"""Commands for whoever runs a pool."""
