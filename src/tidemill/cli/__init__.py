"""The `tidemill` command: what people type, and what they read back."""
