"""The hardware challenge: a node shows that it has the memory and the speed it claims, at one moment, in one place."""
