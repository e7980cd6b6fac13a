"""How commands reach a pool: over HTTP as somebody, or in its database."""
