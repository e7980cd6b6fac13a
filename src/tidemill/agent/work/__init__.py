"""Work on this machine: attempts from the pool's assignment to the receipt that the pool has."""
