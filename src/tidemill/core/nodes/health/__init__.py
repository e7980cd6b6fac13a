"""The health of a node: its beats, its silences, and what its owner should attend to."""
