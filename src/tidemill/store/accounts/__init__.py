"""Accounts, sessions, keys, second factors and limits in the database."""
