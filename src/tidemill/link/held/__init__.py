"""The pool's end of links: who is connected here, and what passes through."""
