"""Tests: unit (core), store (real PostgreSQL), system (real processes), browser (Chromium), tidy (house rules)."""
