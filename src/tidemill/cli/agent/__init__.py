"""Commands for an owner's machine."""
