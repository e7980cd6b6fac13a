"""Accounts: who asks, how they log in, and what they may change about themselves."""
