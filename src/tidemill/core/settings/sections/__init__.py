"""The settings themselves, a module a section."""
