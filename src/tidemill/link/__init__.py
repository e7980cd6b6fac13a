"""The server side of agents' links: who is connected here, and what passes through."""
