"""Work on this machine: attempts from the pool's offer to the receipt that the pool has."""
