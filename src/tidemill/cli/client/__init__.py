"""How commands reach a pool: over HTTP with credentials, or in its database."""
