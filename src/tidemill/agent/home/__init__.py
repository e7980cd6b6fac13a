"""What an agent keeps on its machine's disk: who it is, its owner's rules, its status, and its service."""
