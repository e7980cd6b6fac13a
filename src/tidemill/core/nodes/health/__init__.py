"""How a node is: its beats, its silences, and what its owner should see to."""
