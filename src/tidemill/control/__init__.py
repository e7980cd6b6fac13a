"""The control plane: the HTTP API and the loops that turn decisions into state."""
