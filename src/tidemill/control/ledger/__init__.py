"""The books, as operators read and correct them."""
