"""The pool's own small pages."""
